package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.nativeio.OrbitKvException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/**
 * Goal: the history knows what was used lately, forgets the rest by halves, and keeps to its bytes.
 * Method: seeded uses, beside two {@link HashSet}s that change places as the history's do; then readers beside the one
 * that sees, and allocation counters. Replay with {@code -Dorbitkv.seed=N}.
 */
class HistoryTest {
    private static final long MIB = 1 << 20;

    private final long seed = Seed.of(HistoryTest.class);
    private final Gen gen = new Gen(seed);
    private volatile boolean stop;
    private volatile String failure;

    @Test
    void knowsWhatTwoSetsThatTakeTurnsWouldKnow() {
        try (History history = new History(MIB, 1500)) {
            long turnTags = history.tagsMax() / 2;
            assertEquals(1024, turnTags);
            Set<Long> young = new HashSet<>();
            Set<Long> old = new HashSet<>();
            List<Long> used = new ArrayList<>();
            int turns = 0;
            int known = 0;
            for (int step = 0; step < 30_000; step++) {
                long tag = used.isEmpty() || gen.chance(0.4)
                        ? gen.pick(gen.nextLong(), (long) gen.below(50) - 25)
                        : used.get(Math.max(0, used.size() - 1 - gen.below(3000)));
                used.add(tag);
                boolean expected = young.contains(tag) || old.contains(tag);
                assertEquals(expected, history.seen(tag), () -> "seed " + seed);
                assertEquals(expected, history.see(tag), () -> "seed " + seed);
                if (!young.contains(tag)) {
                    if (young.size() == turnTags) {
                        old = young;
                        young = new HashSet<>();
                        turns++;
                    }
                    young.add(tag);
                }
                known += expected ? 1 : 0;
                assertEquals(young.size() + old.size(), history.tags());
            }
            assertEquals(turns, history.turns());
            assertTrue(turns > 5 && known > 5_000, turns + " turns, " + known + " known");
        }
    }

    @Test
    void whatIsUsedAgainIsYoungAgainAndWhatIsNotIsForgotten() {
        try (History history = new History(MIB, 1500)) {
            history.see(1);
            history.see(2);
            for (long tag = 1000; history.turns() < 4; tag++) {
                history.see(tag);
                history.see(1);
            }
            assertTrue(history.seen(1), "used all the time");
            assertFalse(history.seen(2), "used once, long ago");
        }
    }

    @Test
    void staysWithinItsBytesHoweverMuchItSees() {
        try (History history = new History(4 * MIB, Long.MAX_VALUE)) {
            assertTrue(history.bytes() <= 4 * MIB, history.bytes() + " bytes when made");
            assertTrue(history.tagsMax() > 80_000, "it uses what it is given: " + history.tagsMax());
            for (long tag = 0; history.turns() < 5; tag++) {
                history.see(tag * 0x9E3779B97F4A7C15L);
                assertTrue(history.tags() <= history.tagsMax());
            }
            assertTrue(history.bytes() <= 4 * MIB, history.bytes() + " bytes when full");
        }
        assertThrows(OrbitKvException.class, () -> new History(MIB - 1, 10));
    }

    @Test
    void theSameKeyHasAnotherTagInAnotherNamespace() {
        UnsafeBuffer key = new UnsafeBuffer(gen.bytes(2 * PrefixIndex.KEY_BYTES));
        assertNotEquals(History.tag(1, key, 0), History.tag(2, key, 0));
        assertNotEquals(History.tag(1, key, 0), History.tag(1, key, PrefixIndex.KEY_BYTES));
        assertEquals(History.tag(1, key, 0), History.tag(1, key, 0));
    }

    @Test
    void readersKnowWhatIsUsedAllTheTimeAndAllocateNothing() throws InterruptedException {
        try (History history = new History(MIB, 1500)) {
            history.see(1);
            long[] allocated = new long[1];
            Thread reader = new Thread(() -> {
                ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
                for (int window = 0; window < 6 && !stop; window++) {
                    long before = threads.getCurrentThreadAllocatedBytes();
                    for (int i = 0; i < 10_000 && !stop; i++) {
                        if (!history.seen(1)) {
                            failure = "a tag in use was forgotten after " + history.turns() + " turns";
                            return;
                        }
                        history.seen(-i);
                    }
                    allocated[0] = threads.getCurrentThreadAllocatedBytes() - before;
                }
                stop = true;
            });
            reader.start();
            for (long tag = 1000; !stop && failure == null; tag++) {
                history.see(tag);
                if (tag % 256 == 0) {
                    history.see(1); // four times a turn
                }
            }
            reader.join();
            assertNull(failure);
            assertTrue(history.turns() > 2, history.turns() + " turns");
            // Windows on the way of the JIT compilers show some bytes; a path of ours that allocates shows 24 a call.
            assertTrue(allocated[0] < 10_000, allocated[0] + " bytes in 20,000 calls");
        }
    }
}
