package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.tiers.EvictionPolicy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: what was restored from the drive lies in host memory afterwards, once, within the budget, with the right bytes and
 * key; and what is used stays in host memory while it is, where the policy says so. Method: stores stepped over a simulated
 * drive, whose host restores verify checksums; threads only where they are the point. Replay one failure with
 * {@code -Dorbitkv.seed=N}.
 */
class PromotionTest {
    private static final int BLOCK_BYTES = 5_000;
    private static final int BLOCKS = 12;

    private final Gen gen = new Gen(Seed.of(PromotionTest.class));
    private final TestFolders folders = new TestFolders();

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private static StoreOptions options() {
        return WholeStore.optionsIn(Path.of("simulated"))
                .poolBytes(2 << 20)
                .capBytes(8 << 20)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES)
                .indexBlocksMax(4096)
                .queryBlocksMax(64)
                .pageKind(PageKind.SMALL)
                .verifyHost(true);
    }

    private KvStore stepped(StoreOptions options) {
        SimulatedFolder folder = new SimulatedFolder(5, folders.make("promotion"));
        return KvStore.openStepped(options, folder, folder.clock(), 6);
    }

    private static Modelled modelled(KvStore store) {
        ShardHandle shard =
                store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0);
        return new Modelled(store, shard, new Modelled.Model(), BLOCKS);
    }

    private void save(Modelled modelled, Prompt prompt) {
        modelled.saveAll(prompt, 0, BLOCKS);
        modelled.written();
    }

    /** Saves as much as the pool holds, so that what was there is on the drive only, unless it was kept. */
    private void fillPool(Modelled modelled) {
        for (int i = 0; i < 2 * (2 << 20) / (BLOCKS * 8192); i++) {
            save(modelled, Prompt.random(gen, BLOCKS));
        }
    }

    private static int hostBlocks(Modelled modelled, Prompt prompt) {
        try (Lease lease = modelled.store.query(modelled.shard.family(), prompt.keys, 0, BLOCKS)) {
            assertEquals(BLOCKS, lease.blocks());
            return lease.hostBlocks();
        }
    }

    @Test
    void whatWasRestoredFromTheDriveIsInHostMemoryAfterwardsAndStaysOnTheDrive() {
        try (KvStore store = stepped(options());
                Modelled modelled = modelled(store)) {
            Prompt prompt = Prompt.random(gen, BLOCKS);
            save(modelled, prompt);
            fillPool(modelled);
            assertEquals(0, hostBlocks(modelled, prompt));
            long admitted = store.stats().nvmeAdmittedBlocks();
            Location before = store.locate(modelled.shard, prompt.keys, Prompt.keyOffset(3));
            assertEquals(BLOCKS, modelled.restore(prompt, 0, BLOCKS, gen));
            assertEquals(BLOCKS, hostBlocks(modelled, prompt));
            assertEquals(BLOCKS, store.stats().promotedBlocks());
            assertEquals((long) BLOCKS * BLOCK_BYTES, store.stats().promotedBytes());
            assertEquals(0, store.stats().promotionsSkipped());

            long reads = store.stats().nvmeReadBytes();
            assertEquals(BLOCKS, modelled.restore(prompt, 0, BLOCKS, gen));
            assertEquals(BLOCKS, store.stats().promotedBlocks(), "promoted once");
            assertEquals(reads, store.stats().nvmeReadBytes(), "and read from memory");
            modelled.written();
            assertEquals(admitted, store.stats().nvmeAdmittedBlocks(), "and not written to the drive again");
            Location after = store.locate(modelled.shard, prompt.keys, Prompt.keyOffset(3));
            assertEquals(before.segment(), after.segment());
            assertTrue(after.onDrive());

            // A save goes on behind a promoted block, and what is promoted can be evicted and promoted again.
            fillPool(modelled);
            assertEquals(BLOCKS, modelled.restore(prompt, 0, BLOCKS, gen));
            assertEquals(0, store.stats().corruptBlocks() + store.stats().keyCollisions());
        }
    }

    @Test
    void aBudgetOfNothingPromotesNothingAndATooSmallOneSome() {
        for (long budget : new long[] {0, 3 * 8192}) {
            try (KvStore store = stepped(options().promotionBytesMax(budget));
                    Modelled modelled = modelled(store)) {
                Prompt prompt = Prompt.random(gen, BLOCKS);
                save(modelled, prompt);
                fillPool(modelled);
                try (Lease lease = store.query(modelled.shard.family(), prompt.keys, 0, BLOCKS)) {
                    byte[] into = new byte[BLOCKS * BLOCK_BYTES];
                    assertEquals(BLOCKS, store.restore(lease, modelled.shard, 0, BLOCKS, Blocks.of(into)));
                }
                long expected = budget / 8192;
                assertEquals(expected, hostBlocks(modelled, prompt));
                assertEquals(expected, store.stats().promotedBlocks());
                assertEquals(BLOCKS - expected, store.stats().promotionsSkipped());
            }
        }
    }

    @Test
    void restoresOfTheSameBlocksAtOncePromoteEachOnce() throws Exception {
        StoreOptions options = WholeStore.optionsIn(folders.make("threads"))
                .poolBytes(32 << 20)
                .capBytes(64 << 20)
                .segmentBytes(256 << 10)
                .verifyHost(true);
        List<Prompt> prompts = new ArrayList<>();
        try (KvStore store = WholeStore.open(options);
                Modelled modelled = modelled(store)) {
            for (int i = 0; i < 40; i++) {
                prompts.add(Prompt.random(gen, BLOCKS));
                modelled.saveAll(prompts.get(i), 0, BLOCKS);
            }
        }
        try (KvStore store = WholeStore.open(options)) { // host memory is empty
            int threads = 4;
            ExecutorService pool = Executors.newFixedThreadPool(threads);
            try {
                List<Future<?>> all = new ArrayList<>();
                for (int t = 0; t < threads; t++) {
                    Gen own = gen.fork();
                    all.add(pool.submit(() -> {
                        try (Modelled modelled = modelled(store)) {
                            for (Prompt prompt : prompts) {
                                assertEquals(BLOCKS, modelled.restore(prompt, 0, BLOCKS, own));
                            }
                        }
                    }));
                }
                for (Future<?> one : all) {
                    one.get();
                }
            } finally {
                pool.shutdownNow();
            }
            StoreStats stats = store.stats();
            assertEquals(40L * BLOCKS, stats.promotedBlocks(), stats::toString);
            assertEquals(0, stats.corruptBlocks() + stats.missedBlocks(), stats::toString);
        }
    }

    @ParameterizedTest
    @EnumSource(EvictionPolicy.class)
    void whatIsUsedStaysInHostMemoryUnlessTheOldestAlwaysGoes(EvictionPolicy policy) {
        try (KvStore store = stepped(options().capBytes(16 << 20).policy(policy).promotionBytesMax(0));
                Modelled modelled = modelled(store)) {
            Prompt whole = Prompt.random(gen, BLOCKS);
            Prompt part = Prompt.random(gen, BLOCKS);
            while (lane(part) == lane(whole)) { // in one segment, what is used of one would keep the other
                part = Prompt.random(gen, BLOCKS);
            }
            save(modelled, whole);
            save(modelled, part);
            int used = 2; // too few of a segment's blocks for it to stay, so that they are appended again
            for (int i = 0; i < 100; i++) {
                save(modelled, Prompt.random(gen, BLOCKS));
                assertEquals(BLOCKS, modelled.restore(whole, 0, BLOCKS, gen));
                assertEquals(used, modelled.restore(part, 0, used, gen));
            }
            StoreStats stats = store.stats();
            assertTrue(stats.hostSegmentsReused() > 32, stats::toString);
            assertEquals(policy == EvictionPolicy.FIFO ? 0 : BLOCKS, hostBlocks(modelled, whole), stats::toString);
            if (policy == EvictionPolicy.SECOND_CHANCE) {
                assertEquals(used, hostBlocks(modelled, part));
                assertNotEquals(0, stats.hostSecondChances() * stats.hostReappendedBlocks(), stats::toString);
            } else {
                assertEquals(0, stats.hostSecondChances() + stats.hostReappendedBlocks(), stats::toString);
            }
            assertEquals(0, stats.corruptBlocks() + stats.keyCollisions(), stats::toString);
        }
    }

    private static long lane(Prompt prompt) {
        return Long.remainderUnsigned(
                prompt.keys.getLong(0), WholeStore.optionsIn(Path.of(".")).openSegments());
    }

    @Test
    void whatIsUsedStaysOnTheDriveThoughItsSegmentGoes() {
        try (KvStore store = stepped(options());
                Modelled modelled = modelled(store)) {
            List<Prompt> used = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                used.add(Prompt.random(gen, BLOCKS));
                save(modelled, used.get(i));
                save(modelled, Prompt.random(gen, BLOCKS)); // its neighbour is not used
            }
            for (int i = 0; i < 300; i++) {
                save(modelled, Prompt.random(gen, BLOCKS));
                if (i % 10 == 0) {
                    for (Prompt prompt : used) {
                        assertEquals(2, modelled.restore(prompt, 0, 2, gen));
                    }
                }
            }
            StoreStats stats = store.stats();
            assertTrue(stats.nvmeSegmentsReused() > 100, stats::toString);
            assertTrue(stats.nvmeReappendedBlocks() > 0, stats::toString);
            assertEquals(0, stats.corruptBlocks(), stats::toString);
        }
    }
}
