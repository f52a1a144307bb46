package io.orbitkv.tiers;

/** When the log flushes by itself; on request it always does. */
public enum Durability {
    /**
     * Never: what is written is enough. Segments are put to use again without a flush too, so after a power loss the payloads
     * of all of them are read and checked.
     */
    WRITTEN,
    /** As soon as something has been written for an interval. */
    INTERVAL,
    /** As soon as something has been written. */
    ALWAYS;

    /** Whether a segment's new header is durable before anything is written behind it, so that a power loss can't bring the old one back. */
    public boolean flushesBeforeReuse() {
        return this != WRITTEN;
    }
}
