package io.orbitkv.tiers;

/** What a segment of the log holds. */
public enum SegmentState {
    /** Nothing that counts, or blocks that were just given up. */
    FREE,
    /** Batches, and more will come. */
    OPEN,
    /** Batches and a footer, perhaps not durable. */
    SEALED,
    /** Batches and a footer, all flushed. */
    DURABLE,
    /** No pages: it was given up for the cap. */
    ABSENT
}
