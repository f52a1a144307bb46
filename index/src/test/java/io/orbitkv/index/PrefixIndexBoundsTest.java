package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.PrefixIndex.Publication;
import io.orbitkv.kit.HeapUse;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.Tier;
import java.util.SplittableRandom;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: the index keeps its bounds (memory, blocks, namespaces, heap), refuses misuse with a clear error, and comes
 * back from a snapshot as it was.
 * Method: fill it in the ways that cost most, measure, and try what is not allowed.
 */
class PrefixIndexBoundsTest {
    private static final int KEY_BYTES = PrefixIndex.KEY_BYTES;
    private static final long LIVE = Extent.pack(0, 0, 1);

    private final Generations host = new Generations(8);
    private final Generations nvme = new Generations(8);
    private final SplittableRandom random = new SplittableRandom(7);

    @AfterEach
    void close() {
        host.close();
        nvme.close();
    }

    private UnsafeBuffer keys(int count) {
        UnsafeBuffer keys = new UnsafeBuffer(new byte[count * KEY_BYTES]);
        for (int i = 0; i < count * KEY_BYTES; i += Long.BYTES) {
            keys.putLong(i, random.nextLong());
        }
        return keys;
    }

    private static Publication publish(PrefixIndex index, int namespace, UnsafeBuffer keys, int i, boolean first) {
        return index.publish(
                namespace, first ? null : keys, (i - 1) * KEY_BYTES, keys, i * KEY_BYTES, 100, i, Tier.HOST, LIVE);
    }

    @Test
    void memoryOfABlock() {
        int blocks = 64_000;
        UnsafeBuffer keys = keys(blocks);
        for (int length : new int[] {1, 2, 4, 5, 16, 17, 64, 1000}) {
            try (PrefixIndex index = new PrefixIndex(blocks, host, nvme)) {
                int namespace = index.newNamespace();
                for (int i = 0; i < blocks; i++) {
                    assertEquals(Publication.PUBLISHED, publish(index, namespace, keys, i, i % length == 0));
                }
                double bytesPerBlock = (double) index.usedBytes() / blocks;
                System.err.printf("prefixes of %d blocks: %.1f bytes a block%n", length, bytesPerBlock);
                // Directory 27, and the slabs of the four classes that are in part empty.
                assertTrue(bytesPerBlock < 27 + (length >= 64 ? 48 : 176) + 16.5, "bytes a block: " + bytesPerBlock);
                assertEquals(Publication.FULL, publish(index, namespace, keys(2), 1, true));
            }
        }
    }

    @Test
    void fullIsAValueAndSpaceComesBackForOtherLengths() {
        int blocks = 3000;
        try (PrefixIndex index = new PrefixIndex(blocks, host, nvme)) {
            int namespace = index.newNamespace();
            long reserved = index.bytes();
            for (int round = 0; round < 24; round++) {
                int length = new int[] {1, 17, 64, 5, 200, 2}[round % 6];
                UnsafeBuffer keys = keys(blocks + 1);
                for (int i = 0; i < blocks; i++) {
                    assertEquals(
                            Publication.PUBLISHED, publish(index, namespace, keys, i, i % length == 0), "block " + i);
                }
                assertEquals(Publication.FULL, publish(index, namespace, keys, blocks, false));
                assertEquals(Publication.PRESENT, publish(index, namespace, keys, 5, true));
                assertEquals(reserved, index.bytes());
                index.retire(namespace);
                long sweeps = index.completedSweeps();
                while (index.completedSweeps() < sweeps + 2) {
                    index.sweep(64);
                }
                assertEquals(0, index.blocks());
                namespace = index.newNamespace();
            }
        }
    }

    @Test
    void deadTailsAreCutAndStaleExtentsZeroed() {
        try (PrefixIndex index = new PrefixIndex(1000, host, nvme)) {
            int namespace = index.newNamespace();
            UnsafeBuffer keys = keys(64);
            for (int i = 0; i < 64; i++) {
                long extent = Extent.pack(i < 10 ? 0 : 1, i, 1);
                index.publish(
                        namespace,
                        i == 0 ? null : keys,
                        (i - 1) * KEY_BYTES,
                        keys,
                        i * KEY_BYTES,
                        1,
                        1,
                        Tier.HOST,
                        extent);
            }
            host.raise(1);
            assertEquals(54, index.sweep(100_000));
            assertEquals(10, index.blocks());
            Match match = new Match(64);
            assertEquals(10, index.match(namespace, keys, 0, 64, match));
            // The generation comes round to the same number: what was swept stays dead.
            for (int i = 0; i < Extent.GENERATION_MAX - 1; i++) {
                host.raise(1);
            }
            assertTrue(host.isLive(Extent.pack(1, 10, 1)));
            assertEquals(10, index.match(namespace, keys, 0, 64, match));
            assertEquals(Publication.PUBLISHED, publish(index, namespace, keys, 10, false));
            assertEquals(11, index.match(namespace, keys, 0, 64, match));
            assertEquals(1, index.runs());
        }
    }

    @Test
    void namespacesDontMeetAndNumbersComeBack() {
        try (PrefixIndex index = new PrefixIndex(1000, host, nvme)) {
            int one = index.newNamespace();
            int two = index.newNamespace();
            UnsafeBuffer keys = keys(3);
            publish(index, one, keys, 0, true);
            assertTrue(index.contains(one, keys, 0));
            assertFalse(index.contains(two, keys, 0));
            assertEquals(Publication.PUBLISHED, publish(index, two, keys, 0, true));
            index.retire(one);
            assertFalse(index.contains(one, keys, 0));
            assertTrue(index.contains(two, keys, 0));
            OrbitKvException retired = assertThrows(OrbitKvException.class, () -> publish(index, one, keys, 1, true));
            assertEquals(ErrorCode.BAD_ARGUMENT, retired.code());
            for (int i = 2; i < NamespaceNumbers.NUMBERS_MAX; i++) {
                index.newNamespace();
            }
            OrbitKvException over = assertThrows(OrbitKvException.class, index::newNamespace);
            assertEquals(ErrorCode.OVER_LIMIT, over.code());
            index.sweep(1_000_000);
            index.sweep(1_000_000);
            assertEquals(one, index.newNamespace());
            assertFalse(index.contains(one, keys, 0));
        }
    }

    @Test
    void equalFirstEightBytesAreRefused() {
        try (PrefixIndex index = new PrefixIndex(1000, host, nvme)) {
            int namespace = index.newNamespace();
            UnsafeBuffer keys = keys(2);
            keys.putLong(KEY_BYTES, keys.getLong(0));
            assertEquals(Publication.PUBLISHED, publish(index, namespace, keys, 0, true));
            assertTrue(index.collides(namespace, keys, KEY_BYTES));
            assertFalse(index.collides(namespace, keys, 0));
            assertEquals(Publication.COLLIDES, publish(index, namespace, keys, 1, true));
            assertTrue(index.contains(namespace, keys, 0));
            assertFalse(index.contains(namespace, keys, KEY_BYTES));
            assertEquals(0, index.match(namespace, keys, KEY_BYTES, 1, new Match(1)));
        }
    }

    @Test
    void misuseIsNamed() {
        assertThrows(OrbitKvException.class, () -> new PrefixIndex(0, host, nvme));
        assertThrows(OrbitKvException.class, () -> new Match(0));
        try (PrefixIndex index = new PrefixIndex(10, host, nvme)) {
            int namespace = index.newNamespace();
            UnsafeBuffer keys = keys(2);
            assertEquals(
                    ErrorCode.BAD_ARGUMENT,
                    assertThrows(OrbitKvException.class, () -> index.match(namespace, keys, 0, 2, new Match(1)))
                            .code());
            assertEquals(
                    ErrorCode.BAD_BUFFER,
                    assertThrows(OrbitKvException.class, () -> index.match(namespace, keys, 32, 2, new Match(2)))
                            .code());
            assertThrows(
                    OrbitKvException.class,
                    () -> index.publish(namespace, null, 0, keys, 0, 1, 1, Tier.HOST, Extent.NONE));
            assertEquals(0, index.match(-1, keys, 0, 1, new Match(1)));
            assertEquals(0, index.match(namespace, keys, 0, 0, new Match(1)));
        }
        assertEquals(0, MemoryPurpose.INDEX.bytes());
    }

    @Test
    void matchAndPublishAllocateNothing() {
        int blocks = 400_000;
        UnsafeBuffer keys = keys(4096);
        try (PrefixIndex index = new PrefixIndex(blocks, host, nvme)) {
            int namespace = index.newNamespace();
            Match match = new Match(4096);
            long fewest = HeapUse.fewestBytes(60, () -> {
                for (int i = 0; i < keys.capacity(); i += Long.BYTES) {
                    keys.putLong(i, random.nextLong());
                }
                for (int i = 0; i < 4096; i++) {
                    publish(index, namespace, keys, i, i % 600 == 0);
                }
                for (int i = 0; i < 20; i++) {
                    index.match(namespace, keys, i * KEY_BYTES, 4096 - i, match);
                    index.contains(namespace, keys, i * KEY_BYTES);
                }
                index.sweep(500);
            });
            assertEquals(4096 - 19, match.length());
            assertEquals(0, fewest, "bytes on the heap in each of 60 rounds");
        }
    }

    @Test
    void aKeyThatIsListedTwiceHasOnePlace() {
        for (int twin = 0; twin < 64; twin++) {
            for (int second = twin + 1; second < 64; second += 1 + random.nextInt(12)) {
                long[] key0s = random.longs(64).toArray();
                long[] tags = random.longs(64).toArray();
                long[] extents = new long[64];
                for (int i = 0; i < 64; i++) {
                    extents[i] = Extent.pack(1, i, 1);
                }
                key0s[second] = key0s[twin];
                try (PrefixIndex index = new PrefixIndex(1000, host, nvme)) {
                    int namespace = index.newNamespace();
                    // A run of a few blocks is there already, so that some are appended to it and others start one.
                    int before = random.nextInt(20);
                    long[] others = random.longs(20).toArray();
                    assertEquals(
                            before,
                            index.recoverNew(namespace, false, 0, 0, others, others, extents, others, 0, before));
                    boolean follows = before > 0;
                    long parent = follows ? others[before - 1] : 0;
                    assertEquals(
                            second,
                            index.recoverNew(namespace, follows, parent, parent, key0s, tags, extents, tags, 0, 64));
                    assertEquals(before + second, index.blocks());
                    assertEquals(
                            0,
                            index.recoverNew(
                                    namespace,
                                    true,
                                    key0s[second - 1],
                                    tags[second - 1],
                                    key0s,
                                    tags,
                                    extents,
                                    tags,
                                    second,
                                    64 - second));
                    long[] visited = new long[1];
                    index.visit((number, continues, key0, tag, extent, bytes, checksum, depth) -> visited[0]++);
                    assertEquals(before + second, visited[0]);
                }
            }
        }
    }

    @Test
    void snapshotRowsComeBackAsTheyWere() {
        UnsafeBuffer keys = keys(3000);
        try (PrefixIndex from = new PrefixIndex(10_000, host, nvme);
                PrefixIndex to = new PrefixIndex(10_000, host, nvme)) {
            int namespace = from.newNamespace();
            to.newNamespace();
            int loaded = to.newNamespace();
            for (int i = 0; i < 3000; i++) {
                boolean first = i % 300 == 0;
                Tier tier = i % 97 == 3 ? Tier.HOST : Tier.NVME;
                long extent = Extent.pack(i % 50 == 7 ? 1 : 0, i, 1);
                from.publish(
                        namespace, first ? null : keys, (i - 1) * KEY_BYTES, keys, i * KEY_BYTES, i, ~i, tier, extent);
            }
            nvme.raise(1);
            long[] before = new long[2];
            from.visit((number, continuesRun, key0, tag, extent, bytes, checksum, depth) -> {
                assertEquals(namespace, number);
                assertEquals(bytes % 300, depth);
                int answer = to.recover(
                        loaded,
                        continuesRun,
                        before[0],
                        before[1],
                        key0,
                        tag,
                        extent,
                        bytes,
                        checksum,
                        depth,
                        older -> false);
                assertEquals(PrefixIndex.RECOVERED, answer);
                before[0] = key0;
                before[1] = tag;
            });
            host.raise(0);
            host.raise(1);
            Match expected = new Match(300);
            Match actual = new Match(300);
            for (int i = 0; i < 3000; i++) {
                int count = 300 - i % 300;
                int length = from.match(namespace, keys, i * KEY_BYTES, count, expected);
                assertEquals(length, to.match(loaded, keys, i * KEY_BYTES, count, actual), "from block " + i);
                for (int k = 0; k < length; k++) {
                    assertEquals(expected.extent(Tier.NVME, k), actual.extent(Tier.NVME, k));
                    assertEquals(expected.bytes(k), actual.bytes(k));
                    assertEquals(expected.checksum(k), actual.checksum(k));
                }
            }
            assertNotEquals(0, to.blocks());
        }
    }
}
