package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.Tier;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/**
 * Goal: readers without lock never get another block's extents, and never miss a block that stays.
 * Method: one writer publishes, grows, forks, reclaims and sweeps prefixes in a small index as fast as it can, so that
 * runs, directory slots and slabs are reused at once; readers match prefixes that come and go and prefixes that
 * stay. Checksum, bytes and page of every row are functions of the key, so that each row proves whose it is; the bytes
 * name the segment too, which an answer puts together with the page.
 */
class PrefixIndexConcurrencyTest {
    private static final long SECONDS = 4;
    private static final long SECONDS_MAX = 60;
    private static final int STABLE_PREFIXES = 24;
    private static final int STABLE_BLOCKS = 300;
    private static final int CHURN_PREFIXES = 200;
    private static final int CHURN_BLOCKS = 150;
    private static final int CHURN_SEGMENTS = 16;
    private static final int STABLE_SEGMENT = CHURN_SEGMENTS;

    /** Enough for all of them, a power of two. */
    private static final int SEGMENTS_ROUNDED = 32;

    private final long seed = Long.getLong("orbitkv.seed", System.nanoTime());
    private volatile boolean stop;
    private volatile Throwable failure;

    /** Which directory the index has; its twin's test says another. */
    DirectoryKind kind() {
        return DirectoryKind.OPEN_ADDRESSING;
    }

    @Test
    void readersSeeWholeBlocksAndMissNone() throws InterruptedException {
        System.err.println("seed " + seed);
        try (Generations host = new Generations(CHURN_SEGMENTS + 1);
                Generations nvme = new Generations(CHURN_SEGMENTS + 1);
                PrefixIndex index = new PrefixIndex(STABLE_PREFIXES * STABLE_BLOCKS + 9000, host, nvme, kind())) {
            int namespace = index.newNamespace();
            Writer writer = new Writer(index, host, nvme, namespace, seed);
            // Stable prefixes are saved piece by piece between others, so that their directory slots are crowded.
            for (int block = 0; block < STABLE_BLOCKS; block += 20) {
                for (int prefix = 0; prefix < STABLE_PREFIXES; prefix++) {
                    writer.save(prefix, block, block + 20, STABLE_SEGMENT);
                }
            }
            Reader[] readers = {new Reader(index, namespace, seed + 1), new Reader(index, namespace, seed + 2)};
            Thread[] threads = {
                new Thread(guarded(writer)), new Thread(guarded(readers[0])), new Thread(guarded(readers[1]))
            };
            for (Thread thread : threads) {
                thread.start();
            }
            long start = System.nanoTime();
            long end = start + TimeUnit.SECONDS.toNanos(SECONDS);
            long latest = start + TimeUnit.SECONDS.toNanos(SECONDS_MAX); // on a machine with other work
            while (failure == null && (isBefore(end) || isBefore(latest) && !sawEnough(writer, readers[0]))) {
                Thread.sleep(10);
            }
            stop = true;
            for (Thread thread : threads) {
                thread.join();
            }
            assertNull(failure, () -> "seed " + seed + ": " + failure);
            assertTrue(
                    sawEnough(writer, readers[0]),
                    "blocks of the writer that were swept: " + writer.freed + ", rows seen that come and go: "
                            + readers[0].churnRows);
        }
    }

    private static boolean isBefore(long nanoTime) {
        return System.nanoTime() - nanoTime < 0;
    }

    private static boolean sawEnough(Writer writer, Reader reader) {
        return writer.freed > 10_000 && reader.churnRows > 1000;
    }

    private Runnable guarded(Runnable task) {
        return () -> {
            try {
                task.run();
            } catch (RuntimeException | Error e) {
                failure = e;
                stop = true;
            }
        };
    }

    /** Prefixes fork: prefix p of the churn shares its first p % 60 blocks with its neighbour. */
    private static void key(int prefix, int block, UnsafeBuffer into, int offset) {
        int owner = prefix >= STABLE_PREFIXES && block < prefix % 60 ? prefix - prefix % 2 : prefix;
        long word = new SplittableRandom((long) owner << 32 | block).nextLong();
        into.putLong(offset, word);
        into.putLong(offset + 8, word * 31 + 7);
        into.putLong(offset + 16, word);
        into.putLong(offset + 24, word);
    }

    private static int checksum(long key0) {
        return (int) (key0 >>> 32);
    }

    private static int bytes(long key0, int segment) {
        return (int) key0 & -SEGMENTS_ROUNDED | segment;
    }

    private static int page(long key0, Tier tier) {
        return (int) (key0 >>> 16 + tier.ordinal()) & (Extent.PAGES_MAX - 1);
    }

    private final class Writer implements Runnable {
        final PrefixIndex index;
        final Generations host;
        final Generations nvme;
        final int namespace;
        final SplittableRandom random;
        final UnsafeBuffer keys = new UnsafeBuffer(new byte[2 * PrefixIndex.KEY_BYTES]);
        volatile long freed;

        Writer(PrefixIndex index, Generations host, Generations nvme, int namespace, long seed) {
            this.index = index;
            this.host = host;
            this.nvme = nvme;
            this.namespace = namespace;
            this.random = new SplittableRandom(seed);
        }

        @Override
        public void run() {
            while (!stop) {
                int prefix = STABLE_PREFIXES + random.nextInt(CHURN_PREFIXES);
                int from = random.nextBoolean() ? 0 : random.nextInt(CHURN_BLOCKS);
                int count = random.nextInt(3) == 0 ? 1 : 1 + random.nextInt(CHURN_BLOCKS);
                if (random.nextBoolean()) {
                    index.expect(count);
                }
                save(prefix, from, Math.min(CHURN_BLOCKS, from + count), random.nextInt(CHURN_SEGMENTS));
                if (random.nextInt(4) == 0) {
                    host.raise(random.nextInt(CHURN_SEGMENTS));
                    nvme.raise(random.nextInt(CHURN_SEGMENTS));
                }
                freed = freed + index.sweep(random.nextInt(300)); // no other thread writes it
            }
        }

        void save(int prefix, int from, int to, int segment) {
            for (int block = from; block < to; block++) {
                if (block > 0) {
                    key(prefix, block - 1, keys, 0);
                }
                key(prefix, block, keys, PrefixIndex.KEY_BYTES);
                long key0 = keys.getLong(PrefixIndex.KEY_BYTES);
                long hostExtent = Extent.pack(segment, page(key0, Tier.HOST), host.current(segment));
                PrefixIndex.Publication answer = index.publish(
                        namespace,
                        block == 0 ? null : keys,
                        0,
                        keys,
                        PrefixIndex.KEY_BYTES,
                        bytes(key0, segment),
                        checksum(key0),
                        Tier.HOST,
                        hostExtent);
                if (answer == PrefixIndex.Publication.PUBLISHED && random.nextBoolean()) {
                    long nvmeExtent = Extent.pack(segment, page(key0, Tier.NVME), nvme.current(segment));
                    index.place(namespace, keys, PrefixIndex.KEY_BYTES, Tier.HOST, hostExtent, Tier.NVME, nvmeExtent);
                }
            }
        }
    }

    private final class Reader implements Runnable {
        final PrefixIndex index;
        final int namespace;
        final SplittableRandom random;
        final Match match = new Match(STABLE_BLOCKS);
        final UnsafeBuffer keys = new UnsafeBuffer(new byte[STABLE_BLOCKS * PrefixIndex.KEY_BYTES]);
        volatile long churnRows;

        Reader(PrefixIndex index, int namespace, long seed) {
            this.index = index;
            this.namespace = namespace;
            this.random = new SplittableRandom(seed);
        }

        @Override
        public void run() {
            while (!stop) {
                boolean stable = random.nextBoolean();
                int prefix =
                        stable ? random.nextInt(STABLE_PREFIXES) : STABLE_PREFIXES + random.nextInt(CHURN_PREFIXES);
                int blocks = stable ? STABLE_BLOCKS : CHURN_BLOCKS;
                int from = random.nextInt(blocks);
                int count = blocks - from;
                for (int i = 0; i < count; i++) {
                    key(prefix, from + i, keys, i * PrefixIndex.KEY_BYTES);
                }
                int matched = index.match(namespace, keys, 0, count, match);
                if (stable) {
                    assertEquals(count, matched, "a stable prefix was short, from " + from);
                    assertTrue(index.contains(namespace, keys, 0));
                } else {
                    churnRows = churnRows + matched; // no other thread writes it
                }
                for (int i = 0; i < matched; i++) {
                    check(i);
                }
            }
        }

        private void check(int i) {
            long key0 = keys.getLong(i * PrefixIndex.KEY_BYTES);
            assertEquals(checksum(key0), match.checksum(i));
            int segment = match.bytes(i) & SEGMENTS_ROUNDED - 1;
            assertEquals(bytes(key0, segment), match.bytes(i));
            long host = match.extent(Tier.HOST, i);
            long nvme = match.extent(Tier.NVME, i);
            assertTrue((host | nvme) != Extent.NONE, "a matched block lies nowhere");
            if (host != Extent.NONE) {
                assertEquals(page(key0, Tier.HOST), Extent.page(host));
                assertEquals(segment, Extent.segment(host));
            }
            if (nvme != Extent.NONE) {
                assertEquals(page(key0, Tier.NVME), Extent.page(nvme));
                assertEquals(segment, Extent.segment(nvme));
            }
        }
    }
}
