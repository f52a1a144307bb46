package io.orbitkv.kit;

/**
 * What goes wrong on a simulated drive, as probabilities from 0 (never, the default) to 1, and how slow it is.
 *
 * <p>Not thread-safe: set before the work starts, or from the thread that steps it.
 */
public final class Faults {
    /** Least time that a transfer takes, in nanoseconds. */
    public static final long LATENCY_NANOS_MIN = 10_000;

    /** Longest time that most transfers take; one in {@link #SLOW_ONE_IN} takes up to ten times as long. */
    public static final long LATENCY_NANOS_MAX = 200_000;

    /** One transfer in so many is slow, so that it is overtaken by many later ones. */
    public static final int SLOW_ONE_IN = 16;

    private static final int SLOW_FACTOR = 10;
    private static final int EIO = 5;
    private static final int ENOSPC = 28;

    private double readError;
    private double writeError;
    private double flushFailure;
    private double noSpace;
    private double bitRot;
    private double lyingFlush;
    private boolean bootIdStays;
    private int writeErrno = EIO;
    private boolean hangs;
    private long slowerNanos;

    Faults() {}

    /** Reads that answer EIO. */
    public Faults readError(double probability) {
        readError = checked(probability);
        return this;
    }

    /** Writes that answer EIO; some of their sectors may have been written. */
    public Faults writeError(double probability) {
        writeError = checked(probability);
        return this;
    }

    /**
     * Flushes that answer EIO. What was written to that file before is not made durable by any later flush, though it
     * answers that all is well: what a kernel does that dropped the pages.
     */
    public Faults flushFailure(double probability) {
        flushFailure = checked(probability);
        return this;
    }

    /**
     * Flushes that answer that all is well and make nothing durable: a drive that lies, which no store can survive. For
     * controls that show that a test would notice a loss.
     */
    public Faults lyingFlush(double probability) {
        lyingFlush = checked(probability);
        return this;
    }

    /**
     * Whether the boot id outlives a power loss, so that one looks like a kill: no machine does so. For controls that
     * show that a test would notice a recovery that trusts too much.
     */
    public Faults bootIdStays(boolean stays) {
        bootIdStays = stays;
        return this;
    }

    /** Whether writes that fail answer ENOSPC instead of EIO, as on a drive that is full behind the file system. */
    public Faults writesFindNoSpace(boolean full) {
        writeErrno = full ? ENOSPC : EIO;
        return this;
    }

    /**
     * Whether the drive hangs: transfers of rings don't end, and reads don't land, until it is taken back, or the ring is
     * closed.
     */
    public Faults hang(boolean now) {
        hangs = now;
        return this;
    }

    /** So much longer takes every transfer of a ring from now on, in nanoseconds. */
    public Faults slowerNanos(long nanos) {
        slowerNanos = nanos;
        return this;
    }

    /** Creations of files that find the drive full. */
    public Faults noSpace(double probability) {
        noSpace = checked(probability);
        return this;
    }

    /** Reads that deliver one flipped bit. */
    public Faults bitRot(double probability) {
        bitRot = checked(probability);
        return this;
    }

    double readError() {
        return readError;
    }

    double writeError() {
        return writeError;
    }

    double flushFailure() {
        return flushFailure;
    }

    double noSpace() {
        return noSpace;
    }

    double bitRot() {
        return bitRot;
    }

    double lyingFlush() {
        return lyingFlush;
    }

    int writeErrno() {
        return writeErrno;
    }

    boolean hangs() {
        return hangs;
    }

    boolean isBootIdKept() {
        return bootIdStays;
    }

    long latencyNanos(Gen gen) {
        long nanos = gen.between(LATENCY_NANOS_MIN, LATENCY_NANOS_MAX);
        return slowerNanos + (gen.below(SLOW_ONE_IN) == 0 ? nanos * SLOW_FACTOR : nanos);
    }

    private static double checked(double probability) {
        if (!(probability >= 0 && probability <= 1)) {
            throw new IllegalArgumentException("a probability is 0 to 1, got " + probability);
        }
        return probability;
    }
}
