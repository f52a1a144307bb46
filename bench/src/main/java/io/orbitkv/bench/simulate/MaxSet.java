package io.orbitkv.bench.simulate;

/** A set of numbers below a bound that knows its largest: a tree of bit words, 64 wide. */
final class MaxSet {
    private final long[][] levels;

    MaxSet(int bound) {
        int depth = 1;
        for (long words = words(bound); words > 1; words = words(words)) {
            depth++;
        }
        levels = new long[depth][];
        long size = bound;
        for (int level = 0; level < depth; level++) {
            size = Math.max(1, words(size));
            levels[level] = new long[(int) size];
        }
    }

    private static long words(long bits) {
        return (bits + Long.SIZE - 1) / Long.SIZE;
    }

    void add(int number) {
        int at = number;
        for (long[] level : levels) {
            level[at >> 6] |= 1L << at;
            at >>= 6;
        }
    }

    void remove(int number) {
        int at = number;
        for (long[] level : levels) {
            level[at >> 6] &= ~(1L << at);
            if (level[at >> 6] != 0) {
                return;
            }
            at >>= 6;
        }
    }

    /** The largest number; the set is not empty. */
    int max() {
        int at = 0;
        for (int level = levels.length - 1; level >= 0; level--) {
            long word = levels[level][at];
            assert word != 0 : "empty";
            at = (at << 6) + Long.SIZE - 1 - Long.numberOfLeadingZeros(word);
        }
        return at;
    }
}
