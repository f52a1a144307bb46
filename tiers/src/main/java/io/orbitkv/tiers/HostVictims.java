package io.orbitkv.tiers;

import io.orbitkv.nativeio.Generations;
import java.util.function.IntPredicate;

/**
 * The host segments that nobody fills: free ones, sealed ones, and those on their way from sealed to free.
 *
 * <pre>
 * sealed --chosen, nothing to keep--> given up --no pins--> free
 *   |                                    |                   ^
 *   +--chosen, used blocks--> waits --moved--+        drains -+
 * </pre>
 *
 * <p>Guarded by the store's writer lock, but for {@link #hasMoves} and counters.
 */
final class HostVictims {
    /** No segment. */
    static final int NOBODY = SegmentQueue.NONE;

    /** Most victims that wait for their used blocks to be appended again; one in {@link #SEGMENTS_A_MOVE} at most. */
    private static final int MOVES_MAX = 8;

    private static final int SEGMENTS_A_MOVE = 16;

    private final VictimPolicy policy;
    private final SegmentUse use;
    private final Generations generations;
    private final SegmentPins pins;
    private final IntPredicate canLeave;
    private final SegmentQueue free;
    private final SegmentQueue sealed;
    private final SegmentQueue draining;
    private final SegmentQueue waiting;
    private int usable;
    private int movesMax;
    private volatile int movesWaiting;
    private boolean moving;
    private long evictedSegments;
    private long usedBlocksDropped;

    /** None of the segments may be used before {@link #use}. */
    HostVictims(int segments, VictimPolicy policy, SegmentUse use, Generations generations, SegmentPins pins) {
        this.policy = policy;
        this.use = use;
        this.generations = generations;
        this.pins = pins;
        this.canLeave = pins::isFree;
        this.free = new SegmentQueue(segments);
        this.sealed = new SegmentQueue(segments);
        this.draining = new SegmentQueue(segments);
        this.waiting = new SegmentQueue(segments);
    }

    /** Lets the first so many segments be used; those that are used already stay so. */
    void use(int segments) {
        for (; usable < segments; usable++) {
            free.addLast(usable);
        }
        movesMax = movesMax(usable);
    }

    /** Most victims that wait in a tier of so many segments. */
    static int movesMax(int segments) {
        return Math.min(MOVES_MAX, segments / SEGMENTS_A_MOVE);
    }

    int freeSegments() {
        return free.size();
    }

    long evictedSegments() {
        return evictedSegments;
    }

    long usedBlocksDropped() {
        return usedBlocksDropped;
    }

    void seal(int segment, int blocks) {
        use.seal(segment, blocks);
        sealed.addLast(segment);
    }

    /** Whether a segment is sealed and not given up. */
    boolean isResting(int segment) {
        return sealed.contains(segment) || waiting.contains(segment);
    }

    /** A segment to fill, or {@link #NOBODY}. */
    int take() {
        int segment = free.isEmpty() ? NOBODY : free.removeFirst();
        if (segment == NOBODY) {
            segment = drained();
        }
        if (segment == NOBODY) {
            segment = evict(true);
        }
        if (segment != NOBODY) {
            use.clear(segment);
        }
        return segment;
    }

    /** Frees the policy's next victim with all its blocks; whether there was one. */
    boolean evictWhole() {
        int segment = evict(false);
        if (segment == NOBODY) {
            return false;
        }
        free.addLast(segment);
        return true;
    }

    private int drained() {
        for (int segment = draining.first(); segment != NOBODY; segment = draining.after(segment)) {
            if (pins.isFree(segment)) {
                draining.remove(segment);
                return segment;
            }
        }
        return NOBODY;
    }

    /** Gives up segments until one is free; those with used blocks are set aside where that is wanted and possible. */
    private int evict(boolean mayMove) {
        for (int left = sealed.size(); left > 0; left--) {
            int segment = policy.choose(sealed, use, canLeave);
            if (segment == NOBODY) {
                break;
            }
            sealed.remove(segment);
            int used = policy.appendsAgain() ? use.usedBlocks(segment) : 0;
            if (used > 0 && mayMove && waiting.size() < movesMax) {
                waiting.addLast(segment);
                movesWaiting = waiting.size();
            } else if (giveUp(segment, used)) {
                return segment;
            }
        }
        return evictWaiting();
    }

    /** Nothing else can leave: segments that wait to be moved go with their used blocks. */
    private int evictWaiting() {
        int segment = waiting.first();
        while (segment != NOBODY) {
            int next = waiting.after(segment);
            if (pins.isFree(segment)) {
                waiting.remove(segment);
                movesWaiting = waiting.size();
                if (giveUp(segment, use.usedBlocks(segment))) {
                    return segment;
                }
            }
            segment = next;
        }
        return NOBODY;
    }

    /** The written order: unlink (by generation), raise, pins zero, free. A reader that pinned meanwhile delays its segment. */
    private boolean giveUp(int segment, int usedBlocks) {
        generations.raise(segment);
        evictedSegments++;
        usedBlocksDropped += usedBlocks;
        if (pins.isFree(segment)) {
            return true;
        }
        draining.addLast(segment);
        return false;
    }

    boolean hasMoves() {
        return movesWaiting > 0;
    }

    int beginMove() {
        if (moving || waiting.isEmpty()) {
            return NOBODY;
        }
        moving = true;
        int segment = waiting.removeFirst();
        movesWaiting = waiting.size();
        pins.add(segment);
        return segment;
    }

    void endMove(int segment, int usedBlocksLeft) {
        moving = false;
        pins.remove(segment);
        if (giveUp(segment, usedBlocksLeft)) {
            free.addLast(segment);
        }
    }
}
