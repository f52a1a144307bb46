package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Family;
import io.orbitkv.index.KeyChain;
import io.orbitkv.kit.LeakCheck;
import io.orbitkv.kit.Payload;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.recovery.OpeningKind;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/**
 * Goal: what is saved is found and restored byte by byte, from memory, from the drive, and after a restart. Method: a
 * real store in a real folder; payloads are a function of the key.
 */
class KvStoreTest {
    private static final int BLOCK_BYTES = 64 << 10;
    private static final int BLOCK_TOKENS = 16;
    private static final long SEED = 7;

    @Test
    void savesAreRestoredFromBothTiersAndAfterARestart() {
        try (TestFolders folders = new TestFolders()) {
            KvStore.open(options(folders.make("warm-up"))).close(); // libraries keep descriptors of their own
            LeakCheck leaks = LeakCheck.take();
            Path folder = folders.make("store");
            int prompts = 60;
            int blocks = 20; // 75 MiB through a pool of 32 MiB: most of them end on the drive
            try (KvStore store = WholeStore.open(options(folder));
                    Prompts prompt = new Prompts(store, blocks)) {
                assertEquals(OpeningKind.FRESH, store.openReport().kind());
                for (int i = 0; i < prompts; i++) {
                    prompt.save(i);
                }
                for (int i = prompts - 1; i >= 0; i--) { // the youngest are in memory still
                    assertEquals(blocks, prompt.restore(i), "prompt " + i);
                }
                StoreStats stats = store.stats();
                assertTrue(stats.restoredNvmeBlocks() > 0 && stats.restoredHostBlocks() > 0, stats::toString);
                assertEquals(0, stats.corruptBlocks());
                assertTrue(stats.ownBytes() <= stats.capBytes(), stats::toString);
            }
            try (KvStore store = WholeStore.open(options(folder));
                    Prompts prompt = new Prompts(store, blocks)) {
                assertEquals(OpeningKind.CLEAN, store.openReport().kind());
                for (int i = 0; i < prompts; i++) {
                    assertEquals(blocks, prompt.restore(i), "prompt " + i + " after the restart");
                }
                store.clear(prompt.family);
                assertEquals(0, prompt.restore(3), "cleared");
            }
            try (KvStore store = WholeStore.open(options(folder));
                    Prompts prompt = new Prompts(store, blocks)) {
                assertEquals(0, prompt.restore(3), "what was cleared stays cleared");
            }
            leaks.assertNothingLeaked();
        }
    }

    /** Keys that no chain makes: the match believes the last of them, and the restore finds out. */
    @Test
    void aMatchThatPromisedTooMuchCostsNobodysBlock() throws IOException {
        try (TestFolders folders = new TestFolders()) {
            Path folder = folders.make("store");
            int blocks = 8;
            try (KvStore store = WholeStore.open(options(folder));
                    Prompts prompt = new Prompts(store, blocks)) {
                prompt.save(1);
            }
            try (KvStore store = WholeStore.open(options(folder)); // host memory is empty
                    Prompts prompt = new Prompts(store, blocks)) {
                UnsafeBuffer keys = prompt.keysOf(1);
                for (int at = 32; at < (blocks - 1) * 32; at++) {
                    keys.putByte(at, (byte) ~keys.getByte(at)); // all but the first and the last
                }
                try (Lease lease = store.query(prompt.family, keys, 0, blocks)) {
                    assertEquals(blocks, lease.blocks());
                    int restored = store.restore(lease, prompt.family.shard(0), 0, blocks, Blocks.of(prompt.memory));
                    assertEquals(1, restored);
                }
                assertEquals(blocks, prompt.restore(1));
            }
            Files.delete(folder.resolve("snapshot/MARKER")); // so that the log is scanned, and quarantine counts
            try (KvStore store = WholeStore.open(options(folder));
                    Prompts prompt = new Prompts(store, blocks)) {
                assertEquals(blocks, prompt.restore(1), "after a restart");
                assertEquals(0, store.stats().corruptBlocks());
            }
        }
    }

    @Test
    void aGeometryIsThatOfTheStoreThatIsMade() {
        try (TestFolders folders = new TestFolders()) {
            for (int count = 1; count <= 2; count++) {
                StoreOptions options = WholeStore.optionsIn(
                                folders.make("one-" + count),
                                count == 1 ? new Path[0] : new Path[] {folders.make("other")})
                        .poolBytes(32 << 20)
                        .capBytes(161 << 20);
                StoreGeometry geometry = StoreGeometry.of(options);
                try (KvStore store = WholeStore.open(options)) {
                    StoreStats stats = store.stats();
                    assertEquals(geometry.logSegmentBytes(), store.logSegmentBytes());
                    assertEquals(
                            geometry.logSegments(),
                            store.openReport().accounting().preallocatedPages()
                                    * MemoryRegion.PAGE_BYTES
                                    / geometry.logSegmentBytes(),
                            stats::toString);
                }
            }
        }
    }

    private static StoreOptions options(Path folder) {
        return WholeStore.optionsIn(folder).poolBytes(32 << 20).capBytes(160 << 20);
    }

    static Family family() {
        return Family.builder()
                .modelId("test-model")
                .weightsDigest(new byte[32])
                .tokenizerDigest(new byte[32])
                .kvDtype("bf16")
                .layout("BLNHC".getBytes(StandardCharsets.US_ASCII))
                .blockBytes(BLOCK_BYTES)
                .blockTokens(BLOCK_TOKENS)
                .engine("test")
                .hash("sha256", "0")
                .scope("test")
                .build();
    }

    /** Saves and restores prompts by number. */
    static final class Prompts implements AutoCloseable {
        final KvStore store;
        final FamilyHandle family;
        private final int blocks;
        private final UnsafeBuffer keys;
        private final MemoryRegion memory;
        private final SaveResult result = new SaveResult();

        Prompts(KvStore store, int blocks) {
            this.store = store;
            this.family = store.openFamily(family());
            this.blocks = blocks;
            this.keys = new UnsafeBuffer(new byte[blocks * 32]);
            this.memory = MemoryRegion.anonymous((long) blocks * BLOCK_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
        }

        private void keys(int prompt) {
            int[] tokens = new int[blocks * BLOCK_TOKENS];
            java.util.Arrays.fill(tokens, prompt);
            new KeyChain(BLOCK_TOKENS).keys(null, 0, tokens, 0, blocks, keys, 0);
        }

        UnsafeBuffer keysOf(int prompt) {
            keys(prompt);
            return keys;
        }

        void save(int prompt) {
            keys(prompt);
            for (int i = 0; i < blocks; i++) {
                Payload.fill(memory, (long) i * BLOCK_BYTES, BLOCK_BYTES, keys.getLong(i * 32), SEED);
            }
            store.save(family.shard(0), null, 0, keys, 0, blocks, Blocks.of(memory), result);
            assertEquals(0, result.dropped(), result::toString);
            assertEquals(SyncOutcome.REACHED, store.sync(result.position(), Level.WRITTEN, 10_000));
        }

        int restore(int prompt) {
            keys(prompt);
            try (Lease lease = store.query(family, keys, 0, blocks)) {
                int restored = store.restore(lease, family.shard(0), 0, lease.blocks(), Blocks.of(memory));
                for (int i = 0; i < restored; i++) {
                    long at = Payload.firstDifference(
                            memory, (long) i * BLOCK_BYTES, BLOCK_BYTES, keys.getLong(i * 32), SEED);
                    assertEquals(Payload.NO_DIFFERENCE, at, "block " + i);
                }
                return restored;
            }
        }

        @Override
        public void close() {
            memory.close();
        }
    }
}
