package io.orbitkv.kit;

import io.orbitkv.nativeio.MemoryRegion;
import java.util.List;

/**
 * Seeded generator of test data (SplitMix64): the same seed gives the same values on every machine and JDK.
 *
 * <p>Allocates nothing in steady state. Not thread-safe; {@link #fork} makes independent ones.
 */
public final class Gen {
    private static final long GOLDEN = 0x9e3779b97f4a7c15L;
    private static final double TWO_POW_MINUS_53 = 0x1.0p-53;

    private long state;

    /** Creates a generator. */
    public Gen(long seed) {
        this.state = mix(seed);
    }

    /** Spreads the bits of a number over all 64 (the finalizer of SplitMix64). */
    public static long mix(long value) {
        long z = (value ^ (value >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }

    /** A generator of its own, which is a function of this one's state; this one moves on by one value. */
    public Gen fork() {
        return new Gen(nextLong());
    }

    /** Any long. */
    public long nextLong() {
        state += GOLDEN;
        return mix(state);
    }

    /** Any int. */
    public int nextInt() {
        return (int) (nextLong() >>> 32);
    }

    /**
     * A number of a range.
     *
     * @param from lowest
     * @param to highest, itself possible; at least {@code from}
     */
    public int between(int from, int to) {
        return (int) between((long) from, (long) to);
    }

    /**
     * A number of a range.
     *
     * @param from lowest
     * @param to highest, itself possible; at least {@code from}, and less than 2^63 above it
     */
    public long between(long from, long to) {
        long span = to - from + 1;
        if (to < from || span <= 0) {
            throw new IllegalArgumentException("not a range: " + from + " to " + to);
        }
        // value * span / 2^63 in 128 bits; its bias, span / 2^63, is below what any test could see.
        long value = nextLong() >>> 1;
        return from + (Math.multiplyHigh(value, span) << 1 | (value * span) >>> 63);
    }

    /** Index below a count, which is at least 1. */
    public int below(int count) {
        return between(0, count - 1);
    }

    /** From 0 to below 1. */
    public double nextDouble() {
        return (nextLong() >>> 11) * TWO_POW_MINUS_53;
    }

    /** True with a probability from 0 to 1; asks for no value at 0, so that a switched-off fault changes nothing. */
    public boolean chance(double probability) {
        return probability > 0 && nextDouble() < probability;
    }

    /** A fair coin. */
    public boolean coin() {
        return nextLong() < 0;
    }

    /**
     * A size from a range in which small ones are as likely as large ones by magnitude: each doubling has the same
     * probability, which reaches the corners that a uniform size misses.
     *
     * @param min lowest, at least 1
     * @param max highest
     */
    public int size(int min, int max) {
        double magnitude = Math.log(max + 1.0) - Math.log(min);
        int size = (int) (min * Math.exp(nextDouble() * magnitude));
        return Math.min(max, Math.max(min, size));
    }

    /** How many failures before the first success of a coin with that probability, at most {@code max}. */
    public int geometric(double probability, int max) {
        int failures = 0;
        while (failures < max && !chance(probability)) {
            failures++;
        }
        return failures;
    }

    /** One of the values. */
    @SafeVarargs
    public final <T> T pick(T... values) {
        return values[below(values.length)];
    }

    /** One of the values. */
    public <T> T pick(List<T> values) {
        return values.get(below(values.size()));
    }

    /** One of the values. */
    public long pick(long[] values) {
        return values[below(values.length)];
    }

    /** Puts the numbers into any order, each equally likely. */
    public void shuffle(int[] values) {
        for (int i = values.length - 1; i > 0; i--) {
            int j = below(i + 1);
            int held = values[i];
            values[i] = values[j];
            values[j] = held;
        }
    }

    /** Puts the values into any order, each equally likely. */
    public <T> void shuffle(List<T> values) {
        for (int i = values.size() - 1; i > 0; i--) {
            T held = values.get(i);
            int j = below(i + 1);
            values.set(i, values.get(j));
            values.set(j, held);
        }
    }

    /** That many bytes. */
    public byte[] bytes(int count) {
        byte[] bytes = new byte[count];
        for (int i = 0; i < count; ) {
            long value = nextLong();
            for (int end = Math.min(count, i + Long.BYTES); i < end; i++, value >>>= 8) {
                bytes[i] = (byte) value;
            }
        }
        return bytes;
    }

    /** Fills a range of memory. */
    public void fill(MemoryRegion region, long offset, long bytes) {
        long end = offset + bytes;
        long at = offset;
        for (; at <= end - Long.BYTES; at += Long.BYTES) {
            region.putLong(at, nextLong());
        }
        for (long value = nextLong(); at < end; at++, value >>>= 8) {
            region.putByte(at, (byte) value);
        }
    }
}
