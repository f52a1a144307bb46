package io.orbitkv.bench.simulate;

/** Which segment leaves a tier, and what becomes of its blocks. */
public enum SegmentOrder {
    /** The one that was sealed first, with all of its blocks. */
    FIFO,
    /** The one whose last use is the longest ago, the deepest first, with all of its blocks. */
    LRU,
    /**
     * The one that was sealed first: with at least half of its blocks used it is queued again, otherwise its used blocks
     * are appended again.
     */
    SECOND_CHANCE
}
