package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.store.SaveResult.DropReason;
import io.orbitkv.tiers.EvictionPolicy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: whatever is restored is what was saved under that key; what was saved and not evicted is found in full length.
 * Method: random prompts that fork at every depth against a real store in a real folder, beside a set of the keys that
 * were accepted; payloads are a function of the key. Replay one failure with {@code -Dorbitkv.seed=N}.
 */
class PrefixPropertyTest {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;

    private final Gen gen = new Gen(Seed.of(PrefixPropertyTest.class));
    private final TestFolders folders = new TestFolders();

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private static StoreOptions large(Path folder) {
        return WholeStore.optionsIn(folder)
                .poolBytes(16 * MIB)
                .capBytes(64 * MIB)
                .segmentBytes(256 * KIB);
    }

    @Test
    void promptsThatForkAtEveryDepthAreFoundInFullFromAnyBlockOnAndAfterARestart() {
        Path folder = folders.make("forks");
        List<Prompt> prompts = new ArrayList<>();
        Modelled.Model model = new Modelled.Model();
        try (KvStore store = WholeStore.open(large(folder))) {
            ShardHandle shard =
                    store.openFamily(Modelled.family(4 * KIB).build()).shard(0);
            try (Modelled modelled = new Modelled(store, shard, model, 256)) {
                for (int i = 0; i < 60; i++) {
                    Prompt prompt = i == 0 || gen.chance(0.15)
                            ? Prompt.random(gen, gen.size(1, 200))
                            : forkOf(prompts.get(gen.below(prompts.size())));
                    prompts.add(prompt);
                    saveInPieces(modelled, prompt);
                    expectAsInModel(modelled, prompts.get(gen.below(prompts.size())));
                }
                for (Prompt prompt : prompts) {
                    expectAsInModel(modelled, prompt);
                }
                modelled.written();
            }
        }
        try (KvStore store = WholeStore.open(large(folder))) {
            ShardHandle shard =
                    store.openFamily(Modelled.family(4 * KIB).build()).shard(0);
            try (Modelled modelled = new Modelled(store, shard, model, 256)) {
                for (Prompt prompt : prompts) {
                    expectAsInModel(modelled, prompt);
                }
                // What is there already is present, all of it, and what hangs on it can be saved.
                for (Prompt prompt : prompts) {
                    modelled.saveAll(prompt, 0, prompt.blocks());
                    assertEquals(prompt.blocks(), modelled.restore(prompt, 0, prompt.blocks(), gen));
                }
                assertEquals(0, store.stats().corruptBlocks() + store.stats().missedBlocks(), store.stats()::toString);
            }
        }
    }

    private Prompt forkOf(Prompt of) {
        int shared = gen.between(0, of.blocks());
        return of.fork(gen, shared, shared + gen.size(1, 60));
    }

    /** One block at a time, in batches, twice, or only from the middle on. */
    private void saveInPieces(Modelled modelled, Prompt prompt) {
        int from = gen.chance(0.2) ? gen.below(prompt.blocks()) : 0;
        int pieceMax = gen.pick(1, 2, 7, 64, 256);
        while (from < prompt.blocks()) {
            int count = Math.min(gen.between(1, pieceMax), prompt.blocks() - from);
            modelled.saveAll(prompt, from, count);
            if (gen.chance(0.1)) {
                modelled.save(prompt, from, count);
                assertEquals(count, modelled.result.present(), "saved a second time");
            }
            from += gen.chance(0.1) ? gen.between(0, count) : count; // overlapping pieces
        }
    }

    private void expectAsInModel(Modelled modelled, Prompt prompt) {
        for (int turn = 0; turn < 4; turn++) {
            int from = turn == 0 ? 0 : gen.below(prompt.blocks());
            int count = turn == 0 ? prompt.blocks() : gen.between(0, prompt.blocks() - from);
            int expected = Math.min(count, modelled.model.length(prompt, from));
            assertEquals(expected, modelled.restore(prompt, from, count, gen), "from block " + from);
        }
    }

    @Test
    void threadsThatSaveTheSamePrefixesAtOnceLeaveOneRightCopyOfEach() throws Exception {
        int threads = 4;
        int prompts = 40;
        try (KvStore store = WholeStore.open(large(folders.make("same")))) {
            ShardHandle shard =
                    store.openFamily(Modelled.family(8 * KIB).build()).shard(0);
            Modelled.Model model = new Modelled.Model();
            List<Prompt> all = new ArrayList<>();
            for (int i = 0; i < prompts; i++) {
                all.add(i % 4 == 0 ? Prompt.random(gen, gen.between(1, 40)) : forkOf(all.get(i - 1)));
            }
            List<Callable<Void>> savers = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                Gen own = gen.fork();
                savers.add(() -> {
                    try (Modelled modelled = new Modelled(store, shard, model, 256)) {
                        for (Prompt prompt : all) {
                            int pieceMax = own.pick(1, 5, 256);
                            for (int from = 0; from < prompt.blocks(); ) {
                                int count = Math.min(own.between(1, pieceMax), prompt.blocks() - from);
                                modelled.saveAll(prompt, from, count);
                                from += count;
                            }
                            assertEquals(prompt.blocks(), modelled.restore(prompt, 0, prompt.blocks(), own));
                        }
                    }
                    return null;
                });
            }
            runAll(savers);
            try (Modelled modelled = new Modelled(store, shard, model, 256)) {
                for (Prompt prompt : all) {
                    assertEquals(prompt.blocks(), modelled.restore(prompt, 0, prompt.blocks(), gen));
                }
            }
            assertEquals(model.keys().size(), store.stats().savedBlocks(), "each key was accepted once");
            assertEquals(model.keys().size(), store.stats().indexBlocks(), store.stats()::toString);
        }
    }

    private static void runAll(List<Callable<Void>> tasks) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(tasks.size());
        try {
            for (Future<Void> future : pool.invokeAll(tasks, 120, TimeUnit.SECONDS)) {
                future.get();
            }
        } finally {
            pool.shutdownNow();
        }
    }

    @ParameterizedTest
    @EnumSource(EvictionPolicy.class)
    void evictionDuringRestoresMakesThemShortButNeverWrong(EvictionPolicy policy) throws Exception {
        StoreOptions options = WholeStore.optionsIn(folders.make("eviction"))
                .poolBytes(MIB)
                .capBytes(6 * MIB)
                .segmentBytes(64 * KIB)
                .blockBytesLargest(12 * KIB)
                .policy(policy);
        try (KvStore store = WholeStore.open(options)) {
            ShardHandle shard = store.openFamily(Modelled.family(9_000).build()).shard(0);
            Modelled.Model model = new Modelled.Model();
            List<Prompt> all = new ArrayList<>();
            for (int i = 0; i < 150; i++) {
                all.add(i % 3 == 0 ? Prompt.random(gen, gen.between(1, 30)) : forkOf(all.get(i - 1)));
            }
            AtomicBoolean done = new AtomicBoolean();
            List<Callable<Void>> tasks = new ArrayList<>();
            Gen saving = gen.fork();
            tasks.add(() -> {
                try (Modelled modelled = new Modelled(store, shard, model, 256)) {
                    for (int round = 0; round < 2; round++) {
                        for (Prompt prompt : all) {
                            modelled.saveAll(prompt, 0, prompt.blocks());
                            int restored = modelled.restore(prompt, 0, prompt.blocks(), saving);
                            assertTrue(restored <= prompt.blocks());
                        }
                    }
                } finally {
                    done.set(true);
                }
                return null;
            });
            for (int i = 0; i < 3; i++) {
                Gen own = gen.fork();
                tasks.add(() -> {
                    try (Modelled modelled = new Modelled(store, shard, model, 256)) {
                        while (!done.get()) {
                            Prompt prompt = all.get(own.below(all.size()));
                            int from = own.below(prompt.blocks());
                            modelled.restore(prompt, from, prompt.blocks() - from, own);
                        }
                    }
                    return null;
                });
            }
            runAll(tasks);
            StoreStats stats = store.stats();
            assertTrue(stats.hostSegmentsReused() > 0 && stats.nvmeSegmentsReused() > 0, stats::toString);
            assertTrue(stats.restoredHostBlocks() > 0 && stats.restoredNvmeBlocks() > 0, stats::toString);
            assertEquals(0, stats.corruptBlocks(), "a reader that is overtaken is no damage: " + stats);
        }
    }

    @ParameterizedTest(name = "index of {0} blocks of {1} bytes")
    @CsvSource({"64, 4096", "64, 40000", "500, 4096", "500, 1"})
    void aFullIndexDropsSavesAndTakesThemAgainOnceItHasEvicted(int indexBlocks, int blockBytes)
            throws InterruptedException {
        StoreOptions options = WholeStore.optionsIn(folders.make("full-index"))
                .poolBytes(4 * MIB)
                .capBytes(32 * MIB)
                .segmentBytes(256 * KIB)
                .indexBlocksMax(indexBlocks)
                .policy(gen.pick(EvictionPolicy.values()));
        try (KvStore store = WholeStore.open(options)) {
            ShardHandle shard =
                    store.openFamily(Modelled.family(blockBytes).build()).shard(0);
            int full = 0;
            try (Modelled modelled = new Modelled(store, shard, new Modelled.Model(), 40)) {
                for (int i = 0; i < 100; i++) {
                    Prompt prompt = Prompt.random(gen, gen.between(1, 40));
                    int from = 0;
                    for (int attempt = 0; from < prompt.blocks(); attempt++) {
                        assertTrue(attempt < 5_000, "saves are refused for good: " + modelled.result + store.stats());
                        modelled.save(prompt, from, prompt.blocks() - from);
                        from += modelled.result.present() + modelled.result.accepted();
                        if (modelled.result.reason() == DropReason.INDEX_FULL) {
                            full++;
                        }
                        if (modelled.result.dropped() > 0) {
                            Thread.sleep(1); // the log's thread gives up a segment
                        }
                    }
                    assertTrue(modelled.restore(prompt, 0, prompt.blocks(), gen) <= prompt.blocks());
                    assertTrue(store.stats().indexBlocks() <= indexBlocks, store.stats()::toString);
                }
                assertTrue(full > 0, "the index was never full");
                assertEquals(0, store.stats().corruptBlocks());
            }
        }
    }

    @ParameterizedTest(name = "segments of {0} KiB, blocks of {1} bytes")
    @CsvSource({"64, 40000", "256, 4096", "1024, 65536", "64, 4097"})
    void aCapOf16MibIsNeverExceededOverSeveralWrapArounds(int segmentKib, int blockBytes) throws Exception {
        Path folder = folders.make("cap");
        long cap = 16L * MIB;
        StoreOptions options = WholeStore.optionsIn(folder)
                .poolBytes(8L * MIB)
                .capBytes(cap)
                .segmentBytes((long) segmentKib * KIB)
                .blockBytesLargest(blockBytes);
        Modelled.Model model = new Modelled.Model();
        AtomicBoolean stop = new AtomicBoolean();
        long[] most = new long[1];
        Thread sampler = new Thread(() -> {
            try (HostFolder looked = HostFolder.open(folder)) {
                while (!stop.get()) {
                    most[0] = Math.max(most[0], looked.allocatedBytes(""));
                    LockSupport.parkNanos(200_000);
                }
            }
        });
        sampler.start();
        try {
            for (int life = 0; life < 3; life++) {
                try (KvStore store = WholeStore.open(options)) {
                    ShardHandle shard = store.openFamily(
                                    Modelled.family(blockBytes).build())
                            .shard(0);
                    long written = 0;
                    try (Modelled modelled = new Modelled(store, shard, model, 64)) {
                        while (written < 2 * cap) {
                            Prompt prompt = Prompt.random(gen, gen.between(1, 64));
                            modelled.saveAll(prompt, 0, prompt.blocks());
                            modelled.written();
                            written += (long) prompt.blocks() * shard.paddedBytes();
                            assertEquals(
                                    prompt.blocks(),
                                    modelled.restore(prompt, 0, prompt.blocks(), gen),
                                    "what was saved last is there");
                        }
                    }
                    assertTrue(store.stats().ownBytes() <= cap, store.stats()::toString);
                    assertTrue(store.stats().nvmeSegmentsReused() > 0, store.stats()::toString);
                }
            }
        } finally {
            stop.set(true);
            sampler.join();
        }
        assertTrue(most[0] > cap / 2 && most[0] <= cap, "allocated at most " + most[0] + " of " + cap);
    }
}
