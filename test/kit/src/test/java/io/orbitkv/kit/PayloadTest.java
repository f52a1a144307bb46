package io.orbitkv.kit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: payloads betray any byte that is wrong, shifted, of another block or stale.
 * Method: fill, damage, and look where the first difference is said to be.
 */
class PayloadTest {
    private static final int BYTES = 64 << 10;

    private final Gen gen = new Gen(Seed.of(getClass()));
    private final MemoryRegion region = MemoryRegion.anonymous(2L * BYTES, PageKind.SMALL, MemoryPurpose.TOOL);

    @AfterEach
    void free() {
        region.close();
    }

    private long difference(long offset, long bytes, long key, long seed) {
        return Payload.firstDifference(region, offset, bytes, key, seed);
    }

    @Test
    void everyLengthAndPlaceComesBackWhole() {
        for (int i = 0; i < 2_000; i++) {
            int bytes = gen.below(300);
            int offset = gen.below(100);
            region.fill(0, 500, (byte) 0x55);
            Payload.fill(region, offset, bytes, i, 1);
            assertEquals(Payload.NO_DIFFERENCE, difference(offset, bytes, i, 1));
            assertEquals(0x55, region.getByte(offset + bytes), "wrote past its end");
            assertTrue(offset == 0 || region.getByte(offset - 1) == 0x55, "wrote before its start");
        }
    }

    @Test
    void oneChangedBitIsFoundWhereItIs() {
        for (int i = 0; i < 5_000; i++) {
            int bytes = gen.between(1, 4_000);
            Payload.fill(region, 0, bytes, 9, i);
            int at = gen.below(bytes);
            region.putByte(at, (byte) (region.getByte(at) ^ 1 << gen.below(8)));
            assertEquals(at, difference(0, bytes, 9, i));
        }
    }

    @Test
    void shiftedBytesAreFound() {
        Payload.fill(region, 0, BYTES, 9, 1);
        for (int shift = 1; shift <= 4096; shift += shift < 64 ? 1 : 8) {
            long at = difference(shift, 512, 9, 1);
            assertTrue(at >= 0 && at < 8, "shift by " + shift + " found at " + at);
        }
    }

    @Test
    void otherKeysAndSeedsAreFound() {
        for (int i = 0; i < 2_000; i++) {
            long key = gen.nextLong();
            long seed = gen.nextLong();
            Payload.fill(region, 0, 64, key, seed);
            assertNotEquals(Payload.NO_DIFFERENCE, difference(0, 64, key ^ 1L << gen.below(64), seed));
            assertNotEquals(Payload.NO_DIFFERENCE, difference(0, 64, key, seed + 1));
            assertNotEquals(Payload.NO_DIFFERENCE, difference(0, 64, seed, key));
        }
    }

    @Test
    void noTwoPositionsAreAlike() {
        Payload.fill(region, 0, BYTES, 3, 4);
        Set<Long> words = new HashSet<>();
        for (int at = 0; at < BYTES; at += Long.BYTES) {
            assertTrue(words.add(region.getLong(at)), "repeats at " + at);
        }
    }
}
