package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: both directories answer what a map would, and a reader beside the writer never misses a key that stays.
 * Method: seeded random changes to both of them and to a {@link HashMap}, each the other's oracle; then one thread that
 * changes a crowded directory beside one that looks up keys which stay. Replay with {@code -Dorbitkv.seed=N}.
 */
class DirectoryTest {
    private static final int KEYS_MAX = 3000;
    private static final int STEPS = 60_000;
    private static final long MILLIS = 1500;

    /** A busy machine takes longer for so many. */
    private static final int CHANGES_MIN = 10_000;

    private final long seed = Seed.of(DirectoryTest.class);
    private final Gen gen = new Gen(seed);
    private volatile boolean stop;
    private volatile String failure;

    @Test
    void bothAnswerAsAMapWould() {
        Map<Long, Long> model = new HashMap<>();
        List<Long> known = new ArrayList<>();
        try (Directory table = Directory.create(DirectoryKind.OPEN_ADDRESSING, KEYS_MAX);
                Directory twin = Directory.create(DirectoryKind.CHRONICLE, KEYS_MAX)) {
            for (int step = 0; step < STEPS; step++) {
                boolean fill = model.size() < KEYS_MAX && gen.chance(step % 20_000 < 10_000 ? 0.6 : 0.3);
                if (fill || known.isEmpty()) {
                    long hash = gen.nextLong() | 1;
                    long place = gen.nextLong() >>> 1;
                    if (model.putIfAbsent(hash, place) == null) {
                        known.add(hash);
                        table.put(hash, place);
                        twin.put(hash, place);
                    }
                } else if (gen.coin()) {
                    long hash = gen.pick(known);
                    long place = gen.nextLong() >>> 1;
                    model.put(hash, place);
                    table.repoint(hash, place);
                    twin.repoint(hash, place);
                } else {
                    int at = gen.below(known.size());
                    long hash = known.get(at);
                    known.set(at, known.get(known.size() - 1));
                    known.remove(known.size() - 1);
                    model.remove(hash);
                    table.remove(hash);
                    twin.remove(hash);
                    expect(hash, Place.NONE, table, twin);
                }
                long hash = known.isEmpty() || gen.chance(0.2) ? gen.nextLong() | 1 : gen.pick(known);
                expect(hash, model.getOrDefault(hash, Place.NONE), table, twin);
            }
            model.forEach((hash, place) -> expect(hash, place, table, twin));
            assertTrue(table.bytes() >= KEYS_MAX * 16L && twin.bytes() >= KEYS_MAX * 16L);
        }
    }

    private void expect(long hash, long place, Directory table, Directory twin) {
        assertEquals(place, table.get(hash), () -> "table, seed " + seed);
        assertEquals(place, table.find(hash), () -> "table, seed " + seed);
        assertEquals(place, twin.get(hash), () -> "twin, seed " + seed);
        assertEquals(place, twin.find(hash), () -> "twin, seed " + seed);
    }

    @ParameterizedTest
    @EnumSource
    void keysThatComeTogetherStandAsIfTheyHadComeOneByOne(DirectoryKind kind) {
        Map<Long, Long> model = new HashMap<>();
        List<Long> known = new ArrayList<>();
        long salt = gen.nextLong();
        try (Directory directory = Directory.create(kind, KEYS_MAX)) {
            while (model.size() < KEYS_MAX - 64) {
                int from = gen.below(5);
                int count = gen.between(1, 64);
                long[] key0s = new long[from + count + 1];
                for (int i = from; i < from + count; i++) {
                    key0s[i] = gen.chance(0.01) && i > from ? key0s[gen.between(from, i - 1)] : gen.nextLong();
                    key0s[i] = gen.chance(0.01) && !known.isEmpty() ? gen.pick(known) : key0s[i];
                }
                int absent = 0;
                while (absent < count && !model.containsKey(key0s[from + absent])) {
                    absent++;
                }
                directory.approach(key0s, from, count, salt);
                assertEquals(absent, directory.absent(key0s, from, count, salt), () -> "seed " + seed);
                long place = gen.nextLong() >>> 2;
                int put = 0;
                while (put < absent && model.putIfAbsent(key0s[from + put], place + put) == null) {
                    known.add(key0s[from + put]);
                    put++;
                }
                assertEquals(put, directory.put(key0s, from, absent, salt, place), () -> "seed " + seed);
            }
            model.forEach((key0, place) ->
                    assertEquals(place, directory.get(PrefixIndex.hash(key0, salt)), () -> "seed " + seed));
        }
    }

    @ParameterizedTest
    @EnumSource
    void aKeyThatIsNotThereCanNeitherBeMovedNorRemoved(DirectoryKind kind) {
        try (Directory directory = Directory.create(kind, 100)) {
            directory.put(5, 7);
            assertThrows(OrbitKvException.class, () -> directory.repoint(6, 1));
            assertThrows(OrbitKvException.class, () -> directory.remove(6));
            assertEquals(7, directory.get(5));
        }
    }

    @ParameterizedTest
    @EnumSource
    void readersMissNoKeyThatStays(DirectoryKind kind) throws InterruptedException {
        int staying = 500;
        long[] stay = new long[staying];
        try (Directory directory = Directory.create(kind, KEYS_MAX)) {
            for (int i = 0; i < staying; i++) {
                stay[i] = gen.nextLong() | 1;
                directory.put(stay[i], i);
            }
            Thread reader = new Thread(() -> {
                for (int i = 0; !stop; i = i + 1 == staying ? 0 : i + 1) {
                    long place = directory.find(stay[i]);
                    for (int look = 0; place == Directory.AGAIN && look < 1_000_000; look++) {
                        place = directory.find(stay[i]);
                    }
                    // A place is the present one or the one before: i, or i + staying.
                    if (place != i && place != i + staying) {
                        failure = "key " + i + " is at " + place + ", seed " + seed;
                        return;
                    }
                }
            });
            reader.start();
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(MILLIS);
            long[] come = new long[KEYS_MAX - staying];
            int changes = 0;
            while ((System.nanoTime() - end < 0 || changes < CHANGES_MIN) && failure == null) {
                int at = gen.below(come.length);
                if (come[at] == 0) {
                    come[at] = gen.nextLong() | 1;
                    directory.put(come[at], at);
                } else {
                    directory.remove(come[at]);
                    come[at] = 0;
                }
                int moved = gen.below(staying);
                directory.repoint(stay[moved], gen.coin() ? moved : moved + staying);
                changes++;
            }
            stop = true;
            reader.join();
            assertNull(failure);
        }
    }

    @Test
    void thePropertyChoosesAndSaysWhatItKnows() {
        String before = System.getProperty(DirectoryKind.PROPERTY);
        try {
            System.setProperty(DirectoryKind.PROPERTY, "chronicle");
            assertEquals(DirectoryKind.CHRONICLE, DirectoryKind.configured());
            System.setProperty(DirectoryKind.PROPERTY, "open-addressing");
            assertEquals(DirectoryKind.OPEN_ADDRESSING, DirectoryKind.configured());
            System.setProperty(DirectoryKind.PROPERTY, "btree");
            OrbitKvException refused = assertThrows(OrbitKvException.class, DirectoryKind::configured);
            assertTrue(refused.getMessage().contains("btree")
                    && refused.getMessage().contains("chronicle"));
            System.clearProperty(DirectoryKind.PROPERTY);
            assertEquals(DirectoryKind.OPEN_ADDRESSING, DirectoryKind.configured());
        } finally {
            if (before == null) {
                System.clearProperty(DirectoryKind.PROPERTY);
            } else {
                System.setProperty(DirectoryKind.PROPERTY, before);
            }
        }
    }
}
