package io.orbitkv.store;

/** How {@link KvStore#sync} ended. */
public enum SyncOutcome {
    /** Every block up to the position is as safe as was asked for. */
    REACHED,
    /** The time ran out first; the store goes on writing. */
    TIMED_OUT,
    /** A drive failed: blocks that were not written yet are in host memory only. */
    FAILED
}
