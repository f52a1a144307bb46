package io.orbitkv.store;

/** How {@link KvStore#sync} ended. */
public enum SyncOutcome {
    /** Every block up to the position is as safe as was asked for. */
    REACHED,
    /** The time ran out first; the store goes on writing. */
    TIMED_OUT,
    /**
     * A drive went out of service: of the blocks up to the position some were not written, and are in host memory only. For
     * positions of the outage itself this stays so; of a later position one caller is told, and a sync that comes after says
     * how the blocks since then are.
     */
    FAILED
}
