package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.orbitkv.kit.Seed;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.Tier;
import java.util.SplittableRandom;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/**
 * Goal: a match is right where the directory was overtaken for some of the keys looked up at once and has to be asked
 * again, so that what was copied of the runs behind them comes to stand elsewhere.
 *
 * <p>Method: one prefix in full runs whose extents turn at random; a directory that answers {@link Directory#AGAIN} by
 * chance; every extent of every match is compared.
 */
class MatcherTest {
    private static final int BLOCKS = 64 * Runs.BLOCKS_MAX;
    private static final int NAMESPACE = 1;
    private static final int SEGMENTS = 8;
    private static final int MATCHES = 3000;

    @Test
    void lookUpsThatAreOvertakenChangeNoAnswer() {
        SplittableRandom random = new SplittableRandom(Seed.of(MatcherTest.class));
        UnsafeBuffer keys = new UnsafeBuffer(new byte[BLOCKS * PrefixIndex.KEY_BYTES]);
        long[] extents = new long[BLOCKS];
        try (Generations host = new Generations(SEGMENTS);
                Generations nvme = new Generations(SEGMENTS);
                Runs runs = new Runs(BLOCKS, host, nvme);
                Overtaken directory = new Overtaken(new OpenAddressing(BLOCKS, 1), random.split())) {
            fill(random, keys, extents, runs, directory);
            Matcher matcher = new Matcher(directory, runs, host, nvme);
            Match match = new Match(BLOCKS);
            for (int i = 0; i < MATCHES; i++) {
                int from = random.nextInt(BLOCKS);
                int count = 1 + random.nextInt(BLOCKS - from);
                match.begin(keys, from * PrefixIndex.KEY_BYTES, count);
                assertEquals(count, matcher.match(NAMESPACE, PrefixIndex.salt(NAMESPACE), count, match));
                for (int k = 0; k < count; k++) {
                    assertEquals(extents[from + k], match.extent(Tier.NVME, k), "block " + k + " from " + from);
                    assertEquals(from + k, match.bytes(k));
                }
                assertEquals(count, match.blocks(Tier.NVME));
                assertEquals(0, match.blocks(Tier.HOST));
            }
        }
    }

    private static void fill(
            SplittableRandom random, UnsafeBuffer keys, long[] extents, Runs runs, Directory directory) {
        long run = Place.NONE;
        int segment = 0;
        for (int i = 0; i < BLOCKS; i++) {
            if (i % Runs.BLOCKS_MAX == 0) {
                run = runs.start(Runs.CLASS_MAX, NAMESPACE, i, 0);
            }
            segment = random.nextInt(20) == 0 ? random.nextInt(SEGMENTS) : segment;
            extents[i] = Extent.pack(segment, random.nextInt(Extent.PAGES_MAX), 1);
            long key0 = random.nextLong();
            long tag = random.nextLong();
            keys.putLong(i * PrefixIndex.KEY_BYTES, key0);
            keys.putLong(i * PrefixIndex.KEY_BYTES + Long.BYTES, tag);
            long place = runs.append(run, key0, tag, Tier.NVME, extents[i], Runs.size(i, 0));
            directory.put(PrefixIndex.hash(key0, PrefixIndex.salt(NAMESPACE)), place);
        }
    }

    /** Answers AGAIN now and then, as any directory may. */
    private static final class Overtaken implements Directory {
        private final Directory inner;
        private final SplittableRandom random;

        Overtaken(Directory inner, SplittableRandom random) {
            this.inner = inner;
            this.random = random;
        }

        @Override
        public long find(long hash) {
            return random.nextInt(8) == 0 ? AGAIN : inner.find(hash);
        }

        @Override
        public long get(long hash) {
            return inner.get(hash);
        }

        @Override
        public void put(long hash, long place) {
            inner.put(hash, place);
        }

        @Override
        public void repoint(long hash, long place) {
            inner.repoint(hash, place);
        }

        @Override
        public void remove(long hash) {
            inner.remove(hash);
        }

        @Override
        public long bytes() {
            return inner.bytes();
        }

        @Override
        public long hugeBytes() {
            return inner.hugeBytes();
        }

        @Override
        public void close() {
            inner.close();
        }
    }
}
