package io.orbitkv.tiers;

import java.util.function.IntPredicate;

/** Chooses the sealed segment of a tier that leaves next. Called by one thread at a time; allocates nothing. */
interface VictimPolicy {
    /** What {@link #choose} answers when no segment can leave. */
    int NONE = SegmentQueue.NONE;

    /**
     * Chooses, and may queue segments again that stay. It always ends: each segment is looked at a bounded number of times.
     *
     * @param sealed the candidates in the order in which they were sealed or queued again
     * @param use what was used of them
     * @param canLeave whether a segment can leave now
     * @return a segment, still in the queue, or {@link #NONE}
     */
    int choose(SegmentQueue sealed, SegmentUse use, IntPredicate canLeave);

    /** Whether the used blocks of a victim are appended again. */
    boolean appendsAgain();
}
