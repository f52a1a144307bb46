package io.orbitkv.store;

/** Who makes the agents of a store work: threads of their own, or whoever calls. */
interface Driver {
    /** Lets the agents get on while the caller waits for something of theirs. */
    void pause();

    /** Stops the agents cleanly; false when the log could not be brought to a clean end in time. */
    boolean stop();
}
