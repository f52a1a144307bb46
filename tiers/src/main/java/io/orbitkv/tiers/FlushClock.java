package io.orbitkv.tiers;

/**
 * How long the flush of one drive that is under way will still take: a read that is submitted meanwhile is served behind it.
 *
 * <p>A round of flushes is one flush here: it covers what was written before its first, and ends with its last. What rounds
 * took teaches what the next will take, by a fixed part and the bytes covered.
 *
 * <p>The log's agent begins and ends; any thread asks. Nothing is allocated.
 */
final class FlushClock {
    private static final long IDLE = Long.MIN_VALUE;

    /** Of the expected time, what is taken to be left however long the flush has lasted already. */
    private static final double LEFT_MIN = 0.125;

    private final LearnedCost cost = new LearnedCost(1_000_000, 1, 1);

    /** Since when flushes are under way, {@link #IDLE} when none is. */
    private volatile long since = IDLE;

    private volatile double expectedNanos;

    // The agent's.
    private int underWay;
    private long bytes;

    /** A flush was submitted that covers so many bytes which no flush has covered yet. */
    void begun(long covered, long nowNanos) {
        if (underWay++ > 0) {
            return; // of the same round, or right behind it
        }
        bytes = covered;
        expectedNanos = cost.nanos(1, 0, bytes);
        since = nowNanos;
    }

    /** A flush has ended, well or not. */
    void ended(long nowNanos) {
        if (--underWay == 0) {
            cost.learn(1, 0, bytes, nowNanos - since);
            since = IDLE;
        }
    }

    /** Nanoseconds that the flush under way is expected to take from now on; 0 when there is none. */
    double leftNanos(long nowNanos) {
        long began = since;
        if (began == IDLE) {
            return 0;
        }
        double expected = expectedNanos;
        return Math.max(LEFT_MIN * expected, expected - (nowNanos - began));
    }
}
