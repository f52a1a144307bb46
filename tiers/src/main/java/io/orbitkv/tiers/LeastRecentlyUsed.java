package io.orbitkv.tiers;

import java.util.function.IntPredicate;

/**
 * Chooses the segment of which a block was used longest ago; of those that were used together, the one sealed last, for it
 * holds the deepest blocks of their prefix. Looks at every sealed segment: about a nanosecond each, once a segment's life.
 */
final class LeastRecentlyUsed implements VictimPolicy {
    @Override
    public int choose(SegmentQueue sealed, SegmentUse use, IntPredicate canLeave) {
        int chosen = NONE;
        long earliest = Long.MAX_VALUE;
        for (int segment = sealed.first(); segment != NONE; segment = sealed.after(segment)) {
            if (use.lastUse(segment) <= earliest && canLeave.test(segment)) {
                earliest = use.lastUse(segment);
                chosen = segment;
            }
        }
        return chosen;
    }

    @Override
    public boolean appendsAgain() {
        return false;
    }
}
