package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.LeakCheck;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: what host memory held at a clean stop is there again behind the next start, what was used last first, and whatever
 * stands in the file, nothing else is found. Method: a store that is stopped and opened again; every restored byte is judged.
 */
class LastUsedTest {
    private static final int BLOCK_BYTES = 4 << 10;
    private static final int BLOCKS = 24;
    private static final int PROMPTS = 20;
    private static final long POOL_BYTES = 4 << 20;

    private final TestFolders folders = new TestFolders();
    private final Gen gen = new Gen(Seed.of(LastUsedTest.class));
    private final Path folder = folders.make("used");
    private final Path file = folder.resolve("snapshot/USED");
    private final List<Prompt> prompts = new ArrayList<>();
    private final Modelled.Model model = new Modelled.Model();

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private KvStore open(long poolBytes) {
        return WholeStore.open(WholeStore.optionsIn(folder)
                .poolBytes(poolBytes)
                .capBytes(64 << 20)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES)
                .remembersUsed(true));
    }

    private Modelled shard(KvStore store) {
        return new Modelled(
                store, store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0), model, BLOCKS);
    }

    /** A life that ends cleanly; the pool has room for all that it saves. */
    private void life() {
        try (KvStore store = open(POOL_BYTES);
                Modelled shard = shard(store)) {
            for (int i = 0; i < PROMPTS; i++) {
                Prompt prompt = Prompt.random(gen, BLOCKS);
                prompts.add(prompt);
                shard.saveAll(prompt, 0, BLOCKS);
            }
        }
    }

    private static int hostBlocks(Modelled shard, Prompt prompt) {
        try (Lease lease = shard.store.query(shard.shard.family(), prompt.keys, 0, BLOCKS)) {
            assertEquals(BLOCKS, lease.blocks());
            return lease.hostBlocks();
        }
    }

    @Test
    void whatHostMemoryHeldIsThereAgainOnce() {
        LeakCheck leaks = LeakCheck.take();
        life();
        assertTrue(Files.exists(file));
        try (KvStore store = open(POOL_BYTES);
                Modelled shard = shard(store)) {
            assertEquals(0, hostBlocks(shard, prompts.get(3)));
            assertEquals(PROMPTS * BLOCKS, store.promoteLastUsed(() -> true));
            assertFalse(Files.exists(file), "it counts once");
            assertEquals(PROMPTS * BLOCKS, store.stats().promotedBlocks());
            for (Prompt prompt : prompts) {
                assertEquals(BLOCKS, hostBlocks(shard, prompt));
                assertEquals(BLOCKS, shard.restore(prompt, 0, BLOCKS, gen));
            }
            assertEquals(PROMPTS * BLOCKS, store.stats().restoredHostBlocks(), "none came from the drive again");
            assertEquals(0, store.promoteLastUsed(() -> true));
        }
        leaks.assertNothingLeaked();
    }

    @Test
    void itFillsASmallerPoolWithWhatWasUsedLastAndEvictsNothing() {
        life();
        Prompt used = prompts.get(1);
        try (KvStore store = open(POOL_BYTES);
                Modelled shard = shard(store)) {
            store.promoteLastUsed(() -> true);
            assertEquals(BLOCKS, shard.restore(used, 0, BLOCKS, gen));
        }
        try (KvStore store = open(1 << 20);
                Modelled shard = shard(store)) {
            int back = store.promoteLastUsed(() -> true);
            assertTrue(back >= 128 && back < PROMPTS * BLOCKS, back + " blocks in a pool of 256");
            assertEquals(0, store.stats().hostSegmentsReused(), "segments evicted");
            assertEquals(BLOCKS, hostBlocks(shard, used), "it was used last");
        }
    }

    @Test
    void itEndsWhenItIsToldTo() {
        life();
        try (KvStore store = open(POOL_BYTES)) {
            AtomicInteger asked = new AtomicInteger();
            int back = store.promoteLastUsed(() -> asked.incrementAndGet() <= 2);
            assertEquals(3, asked.get());
            assertTrue(back > 0 && back <= 2 * BLOCKS, back + " blocks");
        }
    }

    @Test
    void whatWasClearedStaysForgotten() {
        life();
        try (KvStore store = open(POOL_BYTES);
                Modelled shard = shard(store)) {
            store.clear(shard.shard.family());
            assertEquals(0, store.promoteLastUsed(() -> true));
        }
    }

    @Test
    void damageCostsItsPageAndWhatLiesBehindIt() throws IOException {
        life();
        byte[] bytes = Files.readAllBytes(file);
        bytes[4096 + gen.below(4096)] ^= (byte) (1 << gen.below(8));
        Files.write(file, bytes, StandardOpenOption.WRITE);
        try (KvStore store = open(POOL_BYTES);
                Modelled shard = shard(store)) {
            assertEquals(85, store.promoteLastUsed(() -> true), "one page of names");
            for (Prompt prompt : prompts) {
                assertEquals(BLOCKS, shard.restore(prompt, 0, BLOCKS, gen));
            }
        }
    }
}
