package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.HeapUse;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.Machine;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.store.SaveResult.DropReason;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: a store that may use a part of its pool takes memory for that part only, and works all the same. Method: a store with a
 * shared pool saves several times the part; the kernel says what the pool takes.
 */
class PoolPartTest {
    private static final int BLOCK_BYTES = 4 << 10;
    private static final int BLOCKS = 8;
    private static final long POOL_BYTES = 4 << 20;
    private static final long PART_BYTES = POOL_BYTES / 8;
    private static final int WAITING_MAX = (int) (POOL_BYTES / 2 / BLOCK_BYTES);

    private final TestFolders folders = new TestFolders();
    private final Gen gen = new Gen(Seed.of(PoolPartTest.class));

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private StoreOptions options() {
        return WholeStore.optionsIn(folders.make("part"))
                .poolBytes(POOL_BYTES)
                .usablePoolBytes(PART_BYTES)
                .capBytes(128 << 20)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES)
                .pageKind(PageKind.SMALL)
                .sharedPool(true);
    }

    private KvStore open() {
        StoreOptions options = options();
        return KvStore.openStepped(options, HostFolder.open(options.folder()), System::nanoTime, 7);
    }

    private static Modelled shard(KvStore store) {
        return new Modelled(
                store, store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0), new Modelled.Model(), BLOCKS);
    }

    private static long takenBytes(KvStore store) {
        return Machine.takenBytes(
                Path.of("/proc/self/fd/" + store.arena().pool().fd()));
    }

    /** Saves more than the pool holds; every prompt is there afterwards, from the drive mostly. */
    private void saveMuch(KvStore store, Modelled shard) {
        Prompt[] prompts = new Prompt[2 * (int) (POOL_BYTES / BLOCK_BYTES / BLOCKS)];
        for (int i = 0; i < prompts.length; i++) {
            prompts[i] = Prompt.random(gen, BLOCKS);
            shard.saveAll(prompts[i], 0, BLOCKS);
            shard.written();
        }
        for (Prompt prompt : prompts) {
            assertEquals(BLOCKS, shard.restore(prompt, 0, BLOCKS, gen));
        }
        assertEquals(0, store.stats().droppedBlocks());
    }

    @Test
    void onlyThePartThatMayBeUsedTakesMemory() {
        try (KvStore store = open();
                Modelled shard = shard(store)) {
            assertEquals(PART_BYTES, store.usablePoolBytes());
            saveMuch(store, shard);
            assertEquals(PART_BYTES, takenBytes(store));
            store.usePool(POOL_BYTES / 2);
            assertEquals(PART_BYTES, takenBytes(store), "growing takes nothing by itself");
            saveMuch(store, shard);
            assertEquals(POOL_BYTES / 2, takenBytes(store));
            store.usePool(PART_BYTES);
            assertEquals(POOL_BYTES / 2, store.usablePoolBytes(), "never less");
            store.usePool(Long.MAX_VALUE / 2);
            assertEquals(POOL_BYTES, store.usablePoolBytes());
            saveMuch(store, shard);
            assertEquals(POOL_BYTES, takenBytes(store));
        }
    }

    @Test
    void whatWaitsForTheDriveNeverKeepsMoreThanItsPartOfTheUsablePool() {
        try (KvStore store = open();
                Modelled shard = shard(store)) {
            assertEquals(WAITING_MAX / 8, saveUntilRefused(shard));
            store.usePool(POOL_BYTES / 2);
            assertEquals(WAITING_MAX / 2 - WAITING_MAX / 8, saveUntilRefused(shard));
            store.usePool(POOL_BYTES);
            assertEquals(WAITING_MAX / 2, saveUntilRefused(shard));
            shard.written();
            assertEquals(WAITING_MAX, saveUntilRefused(shard));
        }
    }

    /** Nothing steps the store meanwhile, so nothing is written. */
    private int saveUntilRefused(Modelled shard) {
        int accepted = 0;
        SaveResult result;
        do {
            result = shard.save(Prompt.random(gen, BLOCKS), 0, BLOCKS);
            accepted += result.accepted();
        } while (result.dropped() == 0);
        assertEquals(DropReason.QUEUE_FULL, result.reason());
        return accepted;
    }

    @Test
    void saveQueryAndGrowthAllocateNothingInAPart() {
        try (KvStore store = WholeStore.open(options());
                Modelled shard = shard(store)) {
            Prompt prompt = Prompt.random(gen, BLOCKS);
            SaveResult result = new SaveResult();
            Blocks blocks = Blocks.unset().set(store.arena().pool(), 0);
            long[] grown = {PART_BYTES};
            long bytes = HeapUse.fewestBytes(20, () -> {
                for (int i = 0; i < 32; i++) {
                    prompt.keys.putLong(0, prompt.keys.getLong(0) + 1);
                    store.save(shard.shard, null, 0, prompt.keys, 0, 1, blocks, result);
                    store.query(shard.shard.family(), prompt.keys, 0, 1).close();
                }
                store.usePool(grown[0] += 64 << 10);
            });
            assertEquals(0, bytes);
            assertTrue(store.stats().savedBlocks() > 0);
        }
    }
}
