package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.LeakCheck;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.SimulatedCrash;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.StorageFile;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Goal: used blocks outlive their segment in the log with the same bytes and position, at any crash; a segment that is
 * used much stays where it is; the log gets on whatever is used; policies that append nothing again do not.
 * Method: the real log over the kit's simulated drive, with marks at random; afterwards the drive is read by a second
 * reader that knows only docs/format.md. Replay one failure with {@code -Dorbitkv.seed=N}.
 */
class SegmentMoverTest {
    private static final int SEGMENT_BYTES = 64 << 10;
    private static final int BLOCK_BYTES = 5_000;
    private static final TestFolders FOLDERS = new TestFolders();

    @AfterAll
    static void removeFolders() {
        FOLDERS.close();
    }

    /** Among them two that lose blocks where a victim is given up before its blocks' copies are flushed. */
    static LongStream seeds() {
        return LongStream.of(Seed.many(38, 10));
    }

    /** A log of some segments, and what is used of it. */
    private static final class Run implements AutoCloseable {
        final Gen gen;
        final SimulatedFolder folder;
        final LogGeometry geometry;
        final LogRig rig;

        Run(long seed, int segments, EvictionPolicy policy) {
            gen = new Gen(seed);
            folder = new SimulatedFolder(seed, FOLDERS.make("mover"));
            geometry = new LogGeometry(SEGMENT_BYTES, segments, Listings.STORE_ID);
            LogRig.createFiles(folder, geometry);
            NvmeOptions options = NvmeOptions.defaults()
                    .withOpenSegments(gen.between(1, 4))
                    .withDurability(gen.pick(Durability.values()), gen.between(0L, 20_000_000L))
                    .withRing(gen.between(8, 64), 4)
                    .withEviction(policy);
            rig = new LogRig(
                    folder, geometry, new LogState(segments), 128 << 10, folder.clock(), folder.probe(), options, seed);
            rig.log.onStart();
        }

        void step() {
            int choice = gen.below(10);
            if (choice < 3) {
                rig.save(gen.below(4), gen.between(1, 2 * BLOCK_BYTES), gen);
            } else if (choice < 5) {
                use();
            } else if (gen.below(200) == 0) {
                rig.log.requestFlush();
            } else {
                rig.step();
            }
        }

        /** Some old block is used, which may be about to go. */
        private void use() {
            long newest = rig.lastWritten;
            LogRig.Written block = newest == 0 ? null : rig.written.get(gen.between(Math.max(1, newest - 400), newest));
            if (block != null) {
                rig.log.markUsed(block.extent(), rig.log.nextUse());
            }
        }

        @Override
        public void close() {
            rig.close();
        }
    }

    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void usedBlocksAreAppendedAgainAsTheyWere(long seed) {
        LeakCheck leaks = LeakCheck.take();
        try (Run run = new Run(seed, 40, EvictionPolicy.SECOND_CHANCE)) {
            LogRig rig = run.rig;
            for (int i = 0; i < 5_000; i++) {
                run.step();
            }
            rig.stop();
            NvmeCounters counters = rig.log.counters();
            assertTrue(rig.moved > 20, "hardly anything was appended again: " + rig.moved);
            assertEquals(rig.moved, counters.reappendedBlocks());
            assertTrue(rig.log.secondChances() > 0, "no segment stayed");
            assertEquals(rig.written.size(), counters.blocksWritten(), "what is appended again counts by itself");
            LogWalk walk = new LogWalk(run.folder, run.geometry);
            int live = 0;
            for (LogRig.Written block : rig.written.values()) {
                if (rig.generations.isLive(block.extent())) {
                    live++;
                    LogWalk.Found found = walk.copies.get(block.position()).stream()
                            .filter(copy -> copy.segment() == Extent.segment(block.extent()))
                            .findFirst()
                            .orElseThrow();
                    assertTrue(found.isWhole(), () -> "not as it was: " + block);
                    assertEquals(Extent.page(block.extent()), found.page());
                    assertEquals(block.bytes(), found.bytes());
                    assertEquals(block.use(), found.use());
                }
            }
            assertTrue(live > 100, "blocks left: " + live);
        }
        leaks.assertNothingLeaked();
    }

    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void aCrashFindsEitherCopy(long seed) {
        crash(seed, false);
        crash(seed, true);
    }

    private static void crash(long seed, boolean powerLoss) {
        try (Run run = new Run(seed, 32, EvictionPolicy.SECOND_CHANCE)) {
            LogRig rig = run.rig;
            try {
                for (int i = 0; i < 2_000; i++) {
                    run.step();
                }
                run.folder.crashAfter(run.gen.between(1L, 2_000L));
                for (int i = 0; i < 4_000; i++) {
                    run.step();
                }
            } catch (SimulatedCrash expected) {
                assertTrue(run.folder.isCrashed());
            }
            long promised = powerLoss ? rig.log.durablePosition() : rig.log.writtenPosition();
            if (powerLoss) {
                run.folder.powerLoss();
            } else {
                run.folder.kill();
            }
            LogWalk walk = new LogWalk(run.folder.reopen(), run.geometry, !powerLoss);
            for (LogRig.Written block : rig.written.values()) {
                if (block.position() <= promised && rig.generations.isLive(block.extent())) {
                    List<LogWalk.Found> copies = walk.copies.getOrDefault(block.position(), List.of());
                    assertTrue(
                            copies.stream().anyMatch(LogWalk.Found::isWhole),
                            () -> "lost though promised: " + block + " of " + promised + ", copies " + copies);
                }
            }
        }
    }

    @Test
    void aSegmentThatIsUsedMuchStaysWhereItIs() {
        try (Run run = new Run(3, 32, EvictionPolicy.SECOND_CHANCE)) {
            LogRig rig = run.rig;
            for (int i = 0; i < 60; i++) {
                assertTrue(rig.save(0, BLOCK_BYTES, null));
                rig.drain();
            }
            List<LogRig.Written> loved = new ArrayList<>();
            for (long position = 1; position <= 50; position++) {
                loved.add(rig.written.get(position));
            }
            for (int i = 0; i < 1_000; i++) {
                if (i % 50 == 0) {
                    loved.forEach(block -> rig.log.markUsed(block.extent(), rig.log.nextUse()));
                }
                assertTrue(rig.save(0, BLOCK_BYTES, null));
                rig.drain();
            }
            loved.subList(0, 40)
                    .forEach(block -> assertTrue(rig.generations.isLive(block.extent()), "moved or gone: " + block));
            assertTrue(rig.log.secondChances() > 10, "turns: " + rig.log.secondChances());
            rig.stop();
        }
    }

    @ParameterizedTest
    @EnumSource(EvictionPolicy.class)
    void theLogGetsOnThoughEverythingIsUsedAllTheTime(EvictionPolicy policy) {
        try (Run run = new Run(4, 24, policy)) {
            LogRig rig = run.rig;
            for (int i = 0; i < 800; i++) {
                rig.save(i % 4, BLOCK_BYTES, null);
                rig.written.values().forEach(block -> rig.log.markUsed(block.extent(), rig.log.nextUse()));
                rig.step();
            }
            rig.drain();
            assertTrue(
                    rig.log.counters().segmentsReused() > 24,
                    "reused: " + rig.log.counters().segmentsReused());
            rig.stop();
            assertEquals(rig.offered.keySet(), rig.written.keySet(), "everything that was offered was written");
            if (policy != EvictionPolicy.SECOND_CHANCE) {
                assertEquals(0, rig.moved + rig.log.secondChances(), "appends nothing again");
            }
        }
    }

    @Test
    void aBlockThatRottedIsNotAppendedAgain() {
        try (Run run = new Run(5, 32, EvictionPolicy.SECOND_CHANCE)) {
            LogRig rig = run.rig;
            for (int i = 0; i < 60; i++) {
                assertTrue(rig.save(0, BLOCK_BYTES, null));
                rig.drain();
            }
            LogRig.Written rotten = rig.written.get(2L);
            LogRig.Written sound = rig.written.get(6L); // in another segment: two of one would keep it in place
            flipByte(run, rotten);
            for (int i = 0; i < 600; i++) {
                if (rig.generations.isLive(sound.extent()) && rig.moved == 0) {
                    rig.log.markUsed(rotten.extent(), rig.log.nextUse());
                    rig.log.markUsed(sound.extent(), rig.log.nextUse());
                }
                assertTrue(rig.save(0, BLOCK_BYTES, null));
                rig.drain();
            }
            rig.stop();
            assertEquals(rotten, rig.written.get(2L), "appended again with wrong bytes");
            assertFalse(rig.generations.isLive(rotten.extent()));
            assertEquals(1, rig.moved, "its neighbour was appended again, once");
            assertTrue(rig.log.counters().usedBlocksDropped() >= 1);
        }
    }

    private static void flipByte(Run run, LogRig.Written block) {
        int segment = Extent.segment(block.extent());
        try (MemoryRegion page = Listings.pages(1);
                StorageFile file = run.folder.open(LogGeometry.fileName(run.geometry.file(segment)), true)) {
            long at = run.geometry.fileOffset(segment, Extent.page(block.extent()));
            file.read(at, page, 0, MemoryRegion.PAGE_BYTES);
            page.putByte(100, (byte) ~page.getByte(100));
            file.write(at, page, 0, MemoryRegion.PAGE_BYTES);
            file.flush();
        }
    }
}
