package io.orbitkv.tiers;

import java.util.function.IntPredicate;

/**
 * Chooses the segment that was sealed first. Not the one that was put to use first: a lane that gets few blocks keeps its
 * segment open for long, and what it got last is young.
 */
final class OldestFirst implements VictimPolicy {
    @Override
    public int choose(SegmentQueue sealed, SegmentUse use, IntPredicate canLeave) {
        int segment = sealed.first();
        while (segment != NONE && !canLeave.test(segment)) {
            segment = sealed.after(segment);
        }
        return segment;
    }

    @Override
    public boolean appendsAgain() {
        return false;
    }
}
