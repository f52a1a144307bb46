package io.orbitkv.tiers;

import java.util.function.IntPredicate;

/**
 * Chooses the oldest segment of which less than half was used since its last turn. One that was used more stays where it
 * is: its use bits are cleared and it is queued again, which costs no byte of traffic.
 *
 * <p>Turns of one choice are bounded by the number of segments: after one round every use bit is cleared, so that the next
 * look finds a victim even where readers use everything all the time.
 */
final class SecondChance implements VictimPolicy {
    @Override
    public int choose(SegmentQueue sealed, SegmentUse use, IntPredicate canLeave) {
        int oldest = NONE;
        int segment = sealed.first();
        for (int looks = sealed.size(); looks > 0; looks--) {
            int next = sealed.after(segment);
            if (canLeave.test(segment)) {
                if (!use.isHot(segment)) {
                    return segment;
                }
                use.giveSecondChance(segment);
                sealed.remove(segment);
                sealed.addLast(segment);
                oldest = oldest == NONE ? segment : oldest;
            }
            segment = next;
        }
        return oldest;
    }

    @Override
    public boolean appendsAgain() {
        return true;
    }
}
