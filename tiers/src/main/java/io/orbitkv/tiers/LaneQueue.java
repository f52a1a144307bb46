package io.orbitkv.tiers;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Blocks on their way into one lane of the log, in order of their positions: waiting, taken into the batch in flight,
 * settled.
 *
 * <pre>
 *   settled          taken            tail
 * ----+-----------------+----------------+----
 *     | batch in flight | waiting        |
 * </pre>
 *
 * <p>One producer (the caller, under the store's lock) and one consumer (the agent). Numbers of blocks grow for ever;
 * a block's place is its number modulo the capacity.
 */
final class LaneQueue {
    /** What {@link #firstUnsettled} answers when there is none. */
    static final long NONE = Long.MAX_VALUE;

    private final long[] extents;
    private final long[] positions;
    private final int mask;
    private final AtomicLong tail = new AtomicLong();
    private final AtomicLong settled = new AtomicLong();
    private long taken;

    /** A queue with room for at least so many blocks; the caller never offers more. */
    LaneQueue(int blocks) {
        int capacity = Integer.highestOneBit(Math.max(1, blocks - 1)) << 1;
        this.extents = new long[capacity];
        this.positions = new long[capacity];
        this.mask = capacity - 1;
    }

    /** Caller. */
    void offer(long extent, long position) {
        long number = tail.getPlain();
        assert number - settled.getAcquire() <= mask : "offered more than queueFree() allows";
        extents[(int) number & mask] = extent;
        positions[(int) number & mask] = position;
        tail.setRelease(number + 1); // partner: tail()
    }

    /**
     * Caller, after its offer: blocks that aren't settled. Either this sees what the agent has settled, or the agent sees
     * the offer before it sleeps: both write in the total order of volatile accesses, then read (partner: {@link
     * #settleTaken}).
     */
    int unsettledAfterOffer() {
        return (int) (tail.getPlain() - settled.get());
    }

    /** Blocks that aren't settled. Any thread; from the caller's it is never too small. */
    int unsettled() {
        long done = settled.getAcquire();
        return (int) (tail.getAcquire() - done);
    }

    // ---- agent ----

    /** The number after the last block. */
    long tail() {
        return tail.getAcquire();
    }

    /** The number of the first block that waits. */
    long taken() {
        return taken;
    }

    long extent(long number) {
        return extents[(int) number & mask];
    }

    long position(long number) {
        return positions[(int) number & mask];
    }

    /** The first blocks that wait belong to a batch from now on. */
    void take(int count) {
        taken += count;
    }

    /** All blocks that were taken are done with; their places are free. */
    void settleTaken() {
        settled.set(taken); // partner: unsettledAfterOffer(), and the places are free
    }

    /** The number of the first block that isn't settled. */
    long settled() {
        return settled.getPlain();
    }

    /** The smallest position that isn't settled, or {@link #NONE}. */
    long firstUnsettled() {
        long first = settled.getPlain();
        return first == tail.getAcquire() ? NONE : position(first);
    }
}
