package io.orbitkv.tiers;

/** What a tier still does. */
public enum TierState {
    /** Reads and writes. */
    SERVING,
    /** Was stopped cleanly: everything that it took over is durable. */
    STOPPED,
    /** A write or flush failed: takes no reads, writes nothing, and its positions stand still. */
    FAILED
}
