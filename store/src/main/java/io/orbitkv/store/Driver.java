package io.orbitkv.store;

import org.agrona.concurrent.Agent;

/** Who makes the agents of a store work: threads of their own, or whoever calls. */
interface Driver {
    /** Lets the agents get on while the caller waits for something of theirs. */
    void pause();

    /**
     * Starts one more agent, which is stopped before the logs. It may hang with a drive: a stop doesn't wait for that.
     *
     * @return ends a sleep of its thread; null where it has none, and whoever waits makes it work
     */
    Runnable startBeside(Agent agent);

    /** The same for an agent that never has to hurry, and gives way to everybody else. */
    void startAtRest(Agent agent);

    /** Starts to fill the index, which ends by itself, or with {@link #stop} before all else. */
    void startFill(Filling filling);

    /** Stops the agents cleanly; false when one of them, or a drive's log, could not be brought to a clean end in time. */
    boolean stop();

    /**
     * Does the last work on the data folders, after {@link #stop()}.
     *
     * @param work what to do
     * @param timeoutNanos longest wait for it where it may hang
     * @return whether it is done
     */
    boolean finish(Runnable work, long timeoutNanos);

    /** Whether drives get on only while the caller steps them: what was left under way then never lands. */
    boolean isStepped();

    /** Whether no thread of the store is left: until then a drive may still read or write the store's memory. */
    boolean isDrained();
}
