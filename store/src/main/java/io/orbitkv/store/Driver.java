package io.orbitkv.store;

import org.agrona.concurrent.Agent;

/** Who makes the agents of a store work: threads of their own, or whoever calls. */
interface Driver {
    /** Lets the agents get on while the caller waits for something of theirs. */
    void pause();

    /** Starts one more agent, which is stopped before the others. */
    void startBeside(Agent agent);

    /** The same for an agent that never has to hurry, and gives way to everybody else. */
    void startAtRest(Agent agent);

    /** Starts to fill the index, which ends by itself, or with {@link #stop} before all else. */
    void startFill(Filling filling);

    /** Stops the agents cleanly; false when the log could not be brought to a clean end in time. */
    boolean stop();
}
