package io.orbitkv.kit;

import java.util.Arrays;

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
    /** Shortest and longest hang, in nanoseconds of the simulated clock. */
    private static final long HANG_NANOS_MIN = 50_000_000;

    private static final long HANG_NANOS_MAX = 3_000_000_000L;

    private static final Fault[] ALL = Fault.values();

    private final double[] probabilities = new double[ALL.length];
    private final long[] counts = new long[ALL.length];

    /** Each kind draws from a generator of its own, so that leaving one out changes nothing of the others. */
    private final Gen[] gens = new Gen[ALL.length];

    private final boolean[] forbidden = new boolean[ALL.length];
    private int slowness = 1;
    private boolean bootIdStays;
    private boolean flushesNothing;
    private boolean paused;
    private boolean hangs;
    private long slowerNanos;

    Faults(long seed) {
        Arrays.setAll(gens, i -> new Gen(Gen.mix(seed) + i));
    }

    /**
     * Sets how likely a kind is, each time that it could happen.
     *
     * @param fault one that the drive injects; deaths of the machine are the test's to time
     * @param probability from 0, never, to 1
     * @return this
     */
    public Faults set(Fault fault, double probability) {
        probabilities[fault.ordinal()] = checked(probability);
        return this;
    }

    /** Reads that answer EIO. */
    public Faults readError(double probability) {
        return set(Fault.READ_ERROR, probability);
    }

    /** Writes that answer EIO; some of their sectors may have been written. */
    public Faults writeError(double probability) {
        return set(Fault.WRITE_ERROR, probability);
    }

    /**
     * Flushes that answer EIO. What was written to that file before is not made durable by any later flush, though it
     * answers that all is well: what a kernel does that dropped the pages.
     */
    public Faults flushFailure(double probability) {
        return set(Fault.FLUSH_FAILURE, probability);
    }

    /** Flushes that answer that all is well and make nothing durable: a drive that lies. */
    public Faults lyingFlush(double probability) {
        return set(Fault.LYING_FLUSH, probability);
    }

    /**
     * Whether the boot id outlives a power loss, so that one looks like a kill: no machine does so. For controls that
     * show that a test would notice a recovery that trusts too much.
     */
    public Faults bootIdStays(boolean stays) {
        bootIdStays = stays;
        return this;
    }

    /**
     * Whether no flush makes anything durable, with nobody told, not even {@link #count} and the harms: for controls that show
     * that a test would notice a store that acknowledges too early.
     */
    public Faults flushesNothing(boolean nothing) {
        flushesNothing = nothing;
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

    /** Creations of files and writes that find the drive full. */
    public Faults noSpace(double probability) {
        return set(Fault.NO_SPACE, probability);
    }

    /** Reads that deliver one flipped bit. */
    public Faults bitRot(double probability) {
        return set(Fault.ROT_ON_READ, probability);
    }

    /** Makes all transfers take so many times as long. */
    public Faults slowness(int factor) {
        if (factor < 1) {
            throw new IllegalArgumentException("a drive is at most as fast as it is: " + factor);
        }
        slowness = factor;
        return this;
    }

    /** While paused nothing goes wrong that has not gone wrong before; harm that was done stays. */
    public void pause(boolean pauses) {
        paused = pauses;
    }

    /** Keeps a drive from what its contract would let it do; it is all allowed at first. */
    public Faults forbid(Fault fault) {
        forbidden[fault.ordinal()] = true;
        return this;
    }

    /** Whether something that the contract lets the drive do happens, and counts it. */
    boolean mayHappen(Fault fault) {
        counts[fault.ordinal()] += forbidden[fault.ordinal()] ? 0 : 1;
        return !forbidden[fault.ordinal()];
    }

    /** How often a kind has happened. */
    public long count(Fault fault) {
        return counts[fault.ordinal()];
    }

    /** Notes that a kind has happened that this class doesn't decide. */
    public void happened(Fault fault) {
        counts[fault.ordinal()]++;
    }

    /** Decides whether a kind happens now, and counts it. */
    boolean strikes(Fault fault) {
        int i = fault.ordinal();
        if (paused || !gens[i].chance(probabilities[i])) {
            return false;
        }
        counts[i]++;
        return true;
    }

    /** Where a kind's further choices come from. */
    Gen gen(Fault fault) {
        return gens[fault.ordinal()];
    }

    boolean isFlushingNothing() {
        return flushesNothing;
    }

    boolean hangs() {
        return hangs;
    }

    boolean isBootIdKept() {
        return bootIdStays;
    }

    long latencyNanos(Gen gen) {
        long nanos = gen.between(LATENCY_NANOS_MIN, LATENCY_NANOS_MAX);
        long usual = slowerNanos + (gen.below(SLOW_ONE_IN) == 0 ? nanos * SLOW_FACTOR : nanos) * slowness;
        return strikes(Fault.HANG) ? usual + gen(Fault.HANG).between(HANG_NANOS_MIN, HANG_NANOS_MAX) : usual;
    }

    private static double checked(double probability) {
        if (!(probability >= 0 && probability <= 1)) {
            throw new IllegalArgumentException("a probability is 0 to 1, got " + probability);
        }
        return probability;
    }
}
