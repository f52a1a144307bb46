package io.orbitkv.tiers;

/**
 * What work of one kind costs on this machine: so much a turn, a block and a byte, learned from what it took. Restores over
 * one path are such work, and flushes, which have no blocks.
 *
 * <p>Each turn that was measured moves the three prices by a share of its relative error, each in proportion to its part
 * of the estimate, so that prices stay positive and small turns teach as much as large ones. Errors are cut off, so that
 * prices follow what turns mostly take and not the few that met a busy drive or core. Older turns count exponentially
 * less.
 *
 * <p>Any thread reads and learns, without a lock: of two that learn at once one may be lost, which costs one turn's worth.
 */
public final class LearnedCost {
    /** A settled price moves by so much of the error: some twenty turns forget what was before. */
    private static final double STEP = 1.0 / 8;

    /** The start values are guesses: the first turns move them fast. */
    private static final double STEP_FIRST = 1.0 / 2;

    /** Of the logarithm of measured by estimated: what is more than twice off counts as twice off. */
    private static final double ERROR_MAX = 0.7;

    /** Prices stay within what hardware can be: up to 1 s a turn or block, 1 MB/s to 1 TB/s. */
    private static final double NANOS_MIN = 1;

    private static final double NANOS_MAX = 1e9;
    private static final double BYTE_NANOS_MIN = 1e-3;
    private static final double BYTE_NANOS_MAX = 1e3;

    private volatile double turnNanos;
    private volatile double blockNanos;
    private volatile double byteNanos;
    private volatile double step = STEP_FIRST;

    /**
     * Starts with guesses.
     *
     * @param turnNanos price of a turn, above 0
     * @param blockNanos price of a block, above 0
     * @param byteNanos price of a byte, above 0
     */
    public LearnedCost(double turnNanos, double blockNanos, double byteNanos) {
        this.turnNanos = turnNanos;
        this.blockNanos = blockNanos;
        this.byteNanos = byteNanos;
    }

    /** What turns with so many blocks and bytes in all will take, in nanoseconds. */
    public double nanos(double turns, double blocks, double bytes) {
        return turns * turnNanos + blocks * blockNanos + bytes * byteNanos;
    }

    /** Takes in what turns took. */
    public void learn(double turns, double blocks, double bytes, long nanos) {
        double turnPart = turns * turnNanos;
        double blockPart = blocks * blockNanos;
        double bytePart = bytes * byteNanos;
        double estimate = turnPart + blockPart + bytePart;
        double measured = Math.max(1, nanos);
        double error = within(-ERROR_MAX, ERROR_MAX, Math.log(measured / estimate));
        double move = step * error / estimate;
        turnNanos = within(NANOS_MIN, NANOS_MAX, turnNanos * (1 + move * turnPart));
        blockNanos = within(NANOS_MIN, NANOS_MAX, blockNanos * (1 + move * blockPart));
        byteNanos = within(BYTE_NANOS_MIN, BYTE_NANOS_MAX, byteNanos * (1 + move * bytePart));
        double settling = step;
        step = Math.max(STEP, settling - settling / 8);
    }

    private static double within(double smallest, double largest, double value) {
        return Math.max(smallest, Math.min(largest, value));
    }
}
