package io.orbitkv.tiers;

/** When the log flushes by itself; on request it always does. */
public enum Durability {
    /** Never: what is written is enough. */
    WRITTEN,
    /** As soon as something has been written for an interval. */
    INTERVAL,
    /** As soon as something has been written. */
    ALWAYS
}
