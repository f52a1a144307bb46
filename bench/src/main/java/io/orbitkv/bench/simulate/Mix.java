package io.orbitkv.bench.simulate;

/** Spreads numbers over 64 bits. */
final class Mix {
    private Mix() {}

    /** A bijection that changes about half of the bits for each bit of its argument (splitmix64's end). */
    static long hash(long value) {
        long h = value + 0x9E3779B97F4A7C15L;
        h = (h ^ (h >>> 30)) * 0xBF58476D1CE4E5B9L;
        h = (h ^ (h >>> 27)) * 0x94D049BB133111EBL;
        return h ^ (h >>> 31);
    }
}
