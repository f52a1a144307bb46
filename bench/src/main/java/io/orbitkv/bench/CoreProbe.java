package io.orbitkv.bench;

/**
 * Tells whether this thread has its core for itself: times a piece of arithmetic that keeps all of a core's adders busy.
 * Beside a busy hardware thread of the same core, which may be another guest's and shows in no clock of ours, it takes
 * up to twice as long.
 *
 * <p>Not thread-safe.
 */
final class CoreProbe {
    /** Of the fastest time seen lately: above it somebody shares the core. */
    private static final double SHARED_FROM = 1.2;

    /** The fastest time is forgotten slowly, so that one lucky reading does not rule for ever. */
    private static final double FORGET = 1.00002;

    private static final int ROUNDS = 2000;

    private double fastestNanos = Double.MAX_VALUE;
    private int sink;

    /** Takes some 2 to 5 µs. */
    boolean hasOwnCore() {
        long start = System.nanoTime();
        sink += sixChains(sink);
        long nanos = System.nanoTime() - start;
        fastestNanos = Math.min(fastestNanos * FORGET, nanos);
        return nanos <= SHARED_FROM * fastestNanos;
    }

    private static int sixChains(int seed) {
        int a = seed;
        int b = seed + 1;
        int c = seed + 2;
        int d = seed + 3;
        int e = seed + 4;
        int f = seed + 5;
        for (int k = 0; k < ROUNDS; k++) {
            a ^= k;
            b += a >>> 1;
            c ^= k + 3;
            d += c >>> 2;
            e ^= k + 5;
            f += e >>> 3;
        }
        return a + b + c + d + e + f;
    }
}
