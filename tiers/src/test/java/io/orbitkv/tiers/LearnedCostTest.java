package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.HeapUse;
import io.orbitkv.kit.Seed;
import org.junit.jupiter.api.Test;

/**
 * Goal: prices of a path come to what turns take, whatever they start with, and outliers, idle stretches and impossible
 * times don't spoil them.
 * Method: turns of random sizes on simulated hardware whose prices are known.
 */
class LearnedCostTest {
    private static final int BLOCK_BYTES = 64 << 10;

    private final long seed = Seed.of(LearnedCostTest.class);
    private final Gen gen = new Gen(seed);

    /** What a turn takes on a drive that answers in 90 us and gives 1.2 GB/s, with a fifth of jitter. */
    private long turnNanos(int blocks, double slower) {
        double exact = 150_000 + blocks * 8_000.0 + blocks * (double) BLOCK_BYTES / 1.2;
        return (long) (exact * slower * (0.8 + gen.below(400) / 1000.0));
    }

    private static double estimate(LearnedCost cost, int blocks) {
        return cost.nanos(1, blocks, (double) blocks * BLOCK_BYTES);
    }

    private double withinTwo(LearnedCost cost, int turns, double slower) {
        int good = 0;
        for (int i = 0; i < turns; i++) {
            int blocks = 1 << gen.below(8);
            long nanos = turnNanos(blocks, slower);
            double ratio = estimate(cost, blocks) / nanos;
            good += ratio >= 0.5 && ratio <= 2 ? 1 : 0;
            cost.learn(1, blocks, (double) blocks * BLOCK_BYTES, nanos);
        }
        return (double) good / turns;
    }

    @Test
    void learnsFromAnyStart() {
        for (double start : new double[] {1e4, 1e5, 1e6}) {
            LearnedCost cost = new LearnedCost(start, start, start / 1e3);
            withinTwo(cost, 200, 1);
            double share = withinTwo(cost, 1000, 1);
            assertTrue(share > 0.9, "seed " + seed + ", start " + start + ": " + share + " of the turns within 2x");
        }
    }

    @Test
    void followsADriveThatBecomesTenTimesSlower() {
        LearnedCost cost = new LearnedCost(200_000, 5_000, 0.6);
        withinTwo(cost, 300, 1);
        withinTwo(cost, 60, 10);
        double share = withinTwo(cost, 300, 10);
        assertTrue(share > 0.95, "seed " + seed + ": " + share + " of the turns within 2x");
    }

    @Test
    void isNotLedAwayByAFewTurnsThatMetABusyDrive() {
        LearnedCost cost = new LearnedCost(200_000, 5_000, 0.6);
        withinTwo(cost, 300, 1);
        int good = 0;
        int usual = 0;
        for (int i = 0; i < 1000; i++) {
            int blocks = 1 << gen.below(8);
            boolean busy = gen.below(10) == 0;
            long nanos = turnNanos(blocks, busy ? 50 : 1);
            double ratio = estimate(cost, blocks) / nanos;
            usual += busy ? 0 : 1;
            good += !busy && ratio >= 0.5 && ratio <= 2 ? 1 : 0;
            cost.learn(1, blocks, (double) blocks * BLOCK_BYTES, nanos);
        }
        assertTrue(good > 0.97 * usual, "seed " + seed + ": " + good + " of " + usual + " usual turns within 2x");
    }

    @Test
    void staysWithinBoundsWhateverItIsTold() {
        LearnedCost cost = new LearnedCost(200_000, 5_000, 0.6);
        for (long nanos : new long[] {0, -5, 1, Long.MAX_VALUE}) {
            for (int i = 0; i < 2_000; i++) {
                cost.learn(1, 1 + i % 64, (1 + i % 64) * (double) BLOCK_BYTES, nanos);
            }
            double one = estimate(cost, 1);
            assertTrue(one > 0 && one <= 2e9 + BLOCK_BYTES * 1e3, "told of " + nanos + " ns: " + one);
            assertTrue(estimate(cost, 64) >= one, "more blocks never take less");
        }
    }

    @Test
    void allocatesNothing() {
        LearnedCost cost = new LearnedCost(200_000, 5_000, 0.6);
        double[] sum = {0};
        long fewest = HeapUse.fewestBytes(5, () -> {
            for (int i = 1; i < 20_000; i++) {
                cost.learn(1, i & 63, (i & 63) * 4096.0 + 1, i * 1_000L);
                sum[0] += cost.nanos(1, i, i * 4096.0);
            }
        });
        assertEquals(0, fewest, "bytes allocated, sum " + (sum[0] > 0));
    }
}
