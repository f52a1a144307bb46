package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import org.junit.jupiter.api.Test;

/**
 * Goal: what is left of a flush is told within a factor of two once some have ended, falls while it lasts, and is nothing
 * between flushes. Method: flushes of random bytes on a simulated drive that takes 1 ms and 2 ns a byte.
 */
class FlushClockTest {
    private static final long FIXED_NANOS = 1_000_000;
    private static final long BYTE_NANOS = 2;

    private final long seed = Seed.of(FlushClockTest.class);
    private final Gen gen = new Gen(seed);
    private final FlushClock clock = new FlushClock();
    private long now = 5;

    @Test
    void learnsWhatFlushesTake() {
        int good = 0;
        for (int i = 0; i < 400; i++) {
            long bytes = gen.below(32 << 20);
            long takes = FIXED_NANOS + BYTE_NANOS * bytes;
            clock.begun(bytes, now);
            double ratio = clock.leftNanos(now) / takes;
            good += i >= 200 && ratio > 0.5 && ratio < 2 ? 1 : 0;
            assertTrue(clock.leftNanos(now + takes / 2) <= clock.leftNanos(now), "it falls; seed " + seed);
            assertTrue(clock.leftNanos(now + 100 * takes) > 0, "a late one is still under way; seed " + seed);
            now += takes;
            clock.ended(now);
            assertEquals(0, clock.leftNanos(now));
            now += gen.below(1_000_000);
        }
        assertTrue(good > 180, good + " of 200 within two; seed " + seed);
    }

    @Test
    void aRoundOverSeveralFilesIsOneFlush() {
        clock.begun(8 << 20, now);
        double first = clock.leftNanos(now);
        clock.begun(0, now + 10);
        clock.begun(0, now + 20);
        clock.ended(now + 1_000);
        clock.ended(now + 2_000);
        assertTrue(clock.leftNanos(now + 2_000) > 0 && clock.leftNanos(now + 2_000) < first);
        clock.ended(now + 3_000);
        assertEquals(0, clock.leftNanos(now + 3_000));
    }

    @Test
    void aFlushThatEndsAtOnceTeachesWithoutHarm() {
        for (int i = 0; i < 1_000; i++) {
            clock.begun(0, now);
            clock.ended(now);
        }
        clock.begun(1 << 30, now);
        assertTrue(clock.leftNanos(now) > 0);
    }
}
