package io.orbitkv.bench.simulate;

import io.orbitkv.tiers.EvictionPolicy;
import java.util.Arrays;

/**
 * A tier of equal segments: blocks are appended to open ones, whole segments leave.
 *
 * <p>A segment's turn is the request in which it was sealed, last queued again, or (segment LRU) last used; segments stand
 * in a queue in the order of their turns, and of those with the oldest turn the deepest leaves first where the order or
 * the shape says so. A lane takes a segment when a block comes for which its own has no room.
 */
final class SegmentTier implements KeyTier {
    private static final int NOWHERE = -1;

    private final KeyTrace trace;
    private final EvictionPolicy order;
    private final boolean deepestFirst;
    private final int segmentBlocks;
    private final int lanes;

    // ---- by key ----
    private final int[] segmentOf;
    private final boolean[] used;

    // ---- by segment ----
    private final int[] blocks;
    private final int[] counts;
    private final int[] turns;
    private final int[] depths;
    private final KeyList sealed;
    private final int[] free;
    private int freeCount;

    /** Open segments: one a lane, and behind them, where the shape has it, the one for blocks that are appended again. */
    private final int[] open;

    private final int[] survivors;
    private int request;
    private long written;
    private long writtenAgain;

    SegmentTier(EvictionPolicy order, SegmentShape shape, KeyTrace trace) {
        this.order = order;
        this.trace = trace;
        deepestFirst =
                order == EvictionPolicy.SEGMENT_LRU || (order == EvictionPolicy.SECOND_CHANCE && shape.deepestFirst());
        segmentBlocks = shape.segmentBlocks();
        lanes = shape.lanes();
        segmentOf = new int[trace.uniqueBlocks()];
        Arrays.fill(segmentOf, NOWHERE);
        used = new boolean[trace.uniqueBlocks()];
        int segments = shape.segments();
        blocks = new int[Math.multiplyExact(segments, segmentBlocks)];
        counts = new int[segments];
        turns = new int[segments];
        depths = new int[segments];
        sealed = new KeyList(segments);
        free = new int[segments];
        for (int segment = segments - 1; segment >= 0; segment--) {
            free[freeCount++] = segment;
        }
        open = new int[lanes + (shape.laneForAgain() ? 1 : 0)];
        Arrays.fill(open, NOWHERE);
        survivors = new int[segmentBlocks];
    }

    @Override
    public void begin(int number) {
        request = number;
    }

    @Override
    public boolean has(int key) {
        return segmentOf[key] != NOWHERE;
    }

    @Override
    public void touch(int key) {
        used[key] = true;
        int segment = segmentOf[key];
        if (order == EvictionPolicy.SEGMENT_LRU && turns[segment] != request && sealed.has(segment)) {
            turns[segment] = request;
            sealed.moveLast(segment);
        }
    }

    @Override
    public void add(int key) {
        add(key, 0);
    }

    /** The lane whose open segment holds a key, or -1. */
    int laneOf(int key) {
        for (int lane = 0; lane < lanes; lane++) {
            if (open[lane] != NOWHERE && open[lane] == segmentOf[key]) {
                return lane;
            }
        }
        return NOWHERE;
    }

    /** Takes a key that is not held into a lane's open segment. */
    void add(int key, int lane) {
        append(key, lane);
        written++;
    }

    private void append(int key, int lane) {
        if (open[lane] == NOWHERE || counts[open[lane]] == segmentBlocks) {
            openSegment(lane);
        }
        int segment = open[lane];
        if (counts[segment] == 0) {
            depths[segment] = trace.depth(key);
        }
        blocks[segment * segmentBlocks + counts[segment]++] = key;
        segmentOf[key] = segment;
        used[key] = false;
    }

    private void openSegment(int lane) {
        if (open[lane] != NOWHERE) {
            turns[open[lane]] = request;
            sealed.addLast(open[lane]);
            open[lane] = NOWHERE;
        }
        while (open[lane] == NOWHERE && freeCount == 0) {
            makeRoom(open.length > lanes ? lanes : lane);
        }
        if (open[lane] == NOWHERE) {
            open[lane] = free[--freeCount];
        }
    }

    /** Frees a segment, which may be taken at once by what is appended again: less than half of it. */
    private void makeRoom(int laneForAgain) {
        int victim = victim();
        int kept = order == EvictionPolicy.SECOND_CHANCE ? usedBlocks(victim) : 0;
        while (kept > 0 && 2 * kept >= counts[victim]) {
            queueAgain(victim);
            victim = victim();
            kept = usedBlocks(victim);
        }
        drop(victim);
        for (int i = 0; i < kept; i++) {
            append(survivors[i], laneForAgain);
        }
        writtenAgain += kept;
    }

    private int victim() {
        int victim = sealed.first();
        if (!deepestFirst) {
            return victim;
        }
        int turn = turns[victim];
        for (int segment = sealed.after(victim);
                segment != KeyList.NONE && turns[segment] == turn;
                segment = sealed.after(segment)) {
            if (depths[segment] > depths[victim]) {
                victim = segment;
            }
        }
        return victim;
    }

    /** Collects the blocks of a segment that were used since its last turn; how many. */
    private int usedBlocks(int segment) {
        int count = 0;
        int first = segment * segmentBlocks;
        for (int i = first; i < first + counts[segment]; i++) {
            if (segmentOf[blocks[i]] == segment && used[blocks[i]]) {
                survivors[count++] = blocks[i];
            }
        }
        return count;
    }

    private void queueAgain(int segment) {
        int first = segment * segmentBlocks;
        for (int i = first; i < first + counts[segment]; i++) {
            used[blocks[i]] &= segmentOf[blocks[i]] != segment;
        }
        turns[segment] = request;
        sealed.moveLast(segment);
    }

    private void drop(int segment) {
        sealed.remove(segment);
        int first = segment * segmentBlocks;
        for (int i = first; i < first + counts[segment]; i++) {
            if (segmentOf[blocks[i]] == segment) {
                segmentOf[blocks[i]] = NOWHERE;
            }
        }
        counts[segment] = 0;
        free[freeCount++] = segment;
    }

    @Override
    public long written() {
        return written;
    }

    @Override
    public long writtenAgain() {
        return writtenAgain;
    }
}
