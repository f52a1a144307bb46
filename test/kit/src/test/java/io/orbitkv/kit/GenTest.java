package io.orbitkv.kit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Goal: generated values are a function of the seed, stay in their ranges, and are spread as promised.
 * Method: counts over many values of one seed; the bounds are some ten standard deviations wide, so no seed fails them.
 */
class GenTest {
    private final long seed = Seed.of(getClass());
    private final Gen gen = new Gen(seed);

    @Test
    void isAFunctionOfTheSeed() {
        Gen again = new Gen(seed);
        for (int i = 0; i < 1_000; i++) {
            assertEquals(gen.nextLong(), again.nextLong());
        }
        assertArrayEquals(new Gen(7).bytes(33), new Gen(7).bytes(33));
        assertFalse(Arrays.equals(new Gen(7).bytes(33), new Gen(8).bytes(33)));
        assertEquals(-4616330145664149646L, new Gen(1).nextLong(), "seeds must replay on any version of the kit");
    }

    @Test
    void rangesAreCoveredEvenly() {
        int[] counts = new int[10];
        for (int i = 0; i < 100_000; i++) {
            counts[gen.between(-3, 6) + 3]++;
        }
        for (int count : counts) {
            assertTrue(count > 9_000 && count < 11_000, () -> Arrays.toString(counts));
        }
        assertEquals(5, gen.between(5, 5));
        long wide = gen.between(0, Long.MAX_VALUE - 1);
        assertTrue(wide >= 0);
        assertThrows(IllegalArgumentException.class, () -> gen.between(2, 1));
    }

    @Test
    void sizesCoverEachMagnitudeAlike() {
        int[] byMagnitude = new int[10];
        for (int i = 0; i < 100_000; i++) {
            int size = gen.size(1, 1023);
            assertTrue(size >= 1 && size <= 1023);
            byMagnitude[31 - Integer.numberOfLeadingZeros(size)]++;
        }
        for (int count : byMagnitude) {
            assertTrue(count > 8_500 && count < 11_500, () -> Arrays.toString(byMagnitude));
        }
    }

    @Test
    void chancesComeTrueAsOftenAsTheySay() {
        int tenths = 0;
        int coins = 0;
        long failures = 0;
        for (int i = 0; i < 100_000; i++) {
            tenths += gen.chance(0.1) ? 1 : 0;
            coins += gen.coin() ? 1 : 0;
            failures += gen.geometric(0.25, 1_000);
            assertFalse(gen.chance(0));
            assertTrue(gen.chance(1));
        }
        assertTrue(tenths > 9_000 && tenths < 11_000, "one in ten: " + tenths);
        assertTrue(coins > 48_000 && coins < 52_000, "coins: " + coins);
        assertTrue(failures > 285_000 && failures < 315_000, "mean of 3 failures: " + failures);
    }

    @Test
    void aChanceOfZeroTakesNoValue() {
        Gen other = new Gen(seed);
        assertFalse(other.chance(0));
        assertEquals(gen.nextLong(), other.nextLong());
    }

    @Test
    void shufflesReachEveryOrder() {
        int[] counts = new int[6];
        for (int i = 0; i < 60_000; i++) {
            int[] values = {0, 1, 2};
            gen.shuffle(values);
            counts[values[0] * 2 + (values[1] > values[2] ? 1 : 0)]++;
        }
        for (int count : counts) {
            assertTrue(count > 9_000 && count < 11_000, () -> Arrays.toString(counts));
        }
        List<Integer> list = new ArrayList<>(List.of(1, 2, 3, 4, 5));
        gen.shuffle(list);
        list.sort(null);
        assertEquals(List.of(1, 2, 3, 4, 5), list);
    }

    @Test
    void fillStaysInItsRange() {
        try (MemoryRegion region = MemoryRegion.anonymous(4096, PageKind.SMALL, MemoryPurpose.TOOL)) {
            gen.fill(region, 101, 1_003);
            int zeros = 0;
            for (int i = 0; i < 4096; i++) {
                boolean within = i >= 101 && i < 1_104;
                assertTrue(within || region.getByte(i) == 0, "wrote outside at " + i);
                zeros += within && region.getByte(i) == 0 ? 1 : 0;
            }
            assertTrue(zeros < 40, "mostly zeros: " + zeros);
        }
    }

    @Test
    void forksGoTheirOwnWay() {
        Gen fork = gen.fork();
        assertFalse(fork.nextLong() == gen.nextLong());
    }
}
