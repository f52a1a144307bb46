package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.LeakCheck;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.SimulatedCrash;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: every block that was offered is written once and read back as it was, positions never run ahead, segments are
 * reused for ever, and a crash at any point loses nothing that was written (kill) or durable (power loss).
 * Method: the real log over the kit's simulated drive, stepped by one thread with seeded sizes, lanes, requests, pins and
 * reads; afterwards the drive is read by a second reader that knows only docs/format.md. Replay one failure with
 * {@code -Dorbitkv.seed=N}.
 */
class LogSimulationTest {
    private static final TestFolders FOLDERS = new TestFolders();

    @AfterAll
    static void removeFolders() {
        FOLDERS.close();
    }

    static LongStream seeds() {
        return LongStream.of(Seed.many(1, 40));
    }

    /** What a seed decides before the run. */
    private static final class Run implements AutoCloseable {
        final Gen gen;
        final LogGeometry geometry;
        final SimulatedFolder folder;
        final LogRig rig;
        final NvmeOptions options;
        final int blockBytesMax;
        final MemoryRegion target;
        final List<LogRig.Written> pinned = new ArrayList<>();
        final ReadBatch batch = new ReadBatch();
        int checkedReads;

        Run(long seed) {
            gen = new Gen(seed);
            int segmentBytes = 64 << 10 << gen.below(3);
            geometry = new LogGeometry(segmentBytes, gen.between(2, 40), Listings.STORE_ID);
            blockBytesMax =
                    Math.min(geometry.blockPagesMax() * 4096, gen.coin() ? 8 << 10 : gen.between(1, segmentBytes));
            folder = new SimulatedFolder(seed, FOLDERS.make("log"));
            LogRig.createFiles(folder, geometry);
            options = NvmeOptions.defaults()
                    .withOpenSegments(gen.between(1, 6))
                    .withQueueBlocks(gen.between(1, 300))
                    .withBatches(gen.between(1, 2 * segmentBytes), gen.between(0L, 3_000_000L))
                    .withDurability(gen.pick(Durability.values()), gen.between(0L, 20_000_000L))
                    .withRing(gen.between(8, 64), 4);
            rig = new LogRig(
                    folder,
                    geometry,
                    new LogState(geometry.segments()),
                    Math.max(segmentBytes, 128 << 10),
                    folder.clock(),
                    folder.probe(),
                    options,
                    seed);
            target = Listings.pages(geometry.segmentPages() * 2);
            rig.log.onStart();
        }

        void step() {
            int choice = gen.below(100);
            if (choice < 45) {
                rig.save(gen.below(4), gen.between(1, blockBytesMax), gen);
            } else if (choice < 47) {
                rig.log.requestFlush();
            } else if (choice < 49) {
                rig.log.requestWrite();
            } else if (choice < 55) {
                read();
            } else if (choice < 58) {
                pinForLater();
            } else {
                rig.step();
            }
        }

        private LogRig.Written someWritten() {
            if (rig.written.isEmpty()) {
                return null;
            }
            long newest = rig.lastPosition;
            return rig.written.get(gen.between(Math.max(1, newest - 200), newest));
        }

        /** A segment stays pinned for a while, as if by a slow reader: its bytes must stay. */
        private void pinForLater() {
            if (pinned.size() > gen.below(4)) {
                LogRig.Written block = pinned.remove(gen.below(pinned.size()));
                assertTrue(rig.read(block, batch, target), "pinned bytes were not read");
                assertTrue(rig.isRight(block, target, 0), "pinned bytes were overwritten");
                rig.log.unpin(block.extent());
                checkedReads++;
                return;
            }
            LogRig.Written block = someWritten();
            if (block != null && rig.log.pin(block.extent())) {
                pinned.add(block);
            }
        }

        private void read() {
            List<LogRig.Written> wanted = new ArrayList<>();
            batch.clear();
            long at = 0;
            for (int i = gen.between(1, 8); i > 0; i--) {
                LogRig.Written block = someWritten();
                if (block == null || at + NvmeTier.pagesBytes(block.bytes()) > target.bytes()) {
                    continue;
                }
                batch.add(block.extent(), block.bytes(), target, at); // not pinned: a stale one is told
                wanted.add(block);
                at += NvmeTier.pagesBytes(block.bytes());
            }
            assertTrue(rig.log.submit(batch));
            assertTrue(batch.await(Long.MAX_VALUE / 2) && batch.isDrained());
            for (int i = 0; i < batch.count(); i++) {
                boolean live = rig.generations.isLive(wanted.get(i).extent());
                assertTrue(!live || batch.result(i) == ReadResult.DONE, "a live block was not read");
                if (batch.result(i) == ReadResult.DONE) {
                    assertTrue(rig.isRight(wanted.get(i), target, batch.offset(i)), "wrong bytes");
                    checkedReads++;
                }
            }
        }

        void unpinAll() {
            pinned.forEach(block -> rig.log.unpin(block.extent()));
            pinned.clear();
        }

        @Override
        public void close() {
            rig.close();
            target.close();
        }
    }

    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void everythingIsWrittenAndRead(long seed) {
        try (Run run = new Run(seed)) {
            LogRig rig = run.rig;
            for (int i = 0; i < 4_000; i++) {
                run.step();
            }
            run.unpinAll();
            rig.drain();
            rig.log.requestFlush();
            for (int i = 0; rig.log.durablePosition() < rig.lastPosition; i++) {
                assertTrue(i < 100_000, "a requested flush never comes");
                rig.step();
            }
            assertEquals(rig.lastPosition, rig.log.writtenPosition());
            rig.stop();
            assertEquals(TierState.STOPPED, rig.log.state());
            assertEquals(rig.offered.keySet(), rig.written.keySet());
            assertEquals(0, rig.log.segmentsOpen());
            assertFalse(rig.segmentStates.containsValue(SegmentState.OPEN));
            SegmentState inTheEnd =
                    run.options.durability().flushesBeforeReuse() ? SegmentState.DURABLE : SegmentState.SEALED;
            assertFalse(
                    rig.segmentStates.values().stream()
                            .anyMatch(state -> state != SegmentState.FREE && state != inTheEnd),
                    () -> "in the end all segments that hold blocks are " + inTheEnd + ": " + rig.segmentStates);

            LogWalk walk = new LogWalk(run.folder, run.geometry);
            assertEquals(walk.segmentsWithBatches, walk.footers, "stop seals every open segment");
            assertTrue(walk.copies.values().stream().allMatch(copies -> copies.size() == 1), "a position listed twice");
            for (LogRig.Written block : rig.written.values()) {
                if (rig.generations.isLive(block.extent())) {
                    LogWalk.Found found = walk.blocks.get(block.position());
                    assertNotNull(found, () -> "lost: " + block);
                    assertTrue(found.isWhole());
                    assertEquals(Extent.segment(block.extent()), found.segment());
                    assertEquals(Extent.page(block.extent()), found.page());
                    assertEquals(block.use(), found.use());
                    assertEquals(block.bytes(), found.bytes());
                }
            }
            long pages = rig.written.values().stream()
                    .mapToLong(block -> NvmeTier.pagesBytes(block.bytes()))
                    .sum();
            assertEquals(pages, rig.log.counters().payloadBytes());
        }
    }

    /** One run that is known to reuse each segment many times. */
    @Test
    void wrapsAroundManyTimes() {
        long seed = Seed.of(LogSimulationTest.class);
        try (Run run = new Run(seed)) {
            LogRig rig = run.rig;
            long target = 8L * run.geometry.segments();
            while (rig.log.counters().segmentsReused() < target) {
                rig.save(run.gen.below(4), run.gen.between(run.blockBytesMax / 2 + 1, run.blockBytesMax), run.gen);
                rig.step();
                if (run.gen.below(10) == 0) {
                    run.read();
                }
            }
            rig.stop();
            assertTrue(run.checkedReads > 0);
            LogWalk walk = new LogWalk(run.folder, run.geometry);
            for (LogRig.Written block : rig.written.values()) {
                if (rig.generations.isLive(block.extent())) {
                    assertTrue(walk.blocks.get(block.position()).isWhole());
                }
            }
        }
    }

    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void crashKeepsWhatWasPromised(long seed) {
        crash(seed, false);
        crash(seed, true);
    }

    private static void crash(long seed, boolean powerLoss) {
        try (Run run = new Run(seed)) {
            LogRig rig = run.rig;
            run.folder.crashAfter(new Gen(seed ^ 77).between(1L, 3_000L));
            try {
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
                LogWalk.Found found = walk.blocks.get(block.position());
                if (block.position() <= promised && found == null) {
                    long now = walk.uses.getOrDefault(Extent.segment(block.extent()), 0L);
                    boolean reused = now > block.use() || !rig.generations.isLive(block.extent());
                    assertTrue(reused, () -> "lost though promised: " + block + " of " + promised);
                } else if (block.position() <= promised) {
                    // Where reuse waits for no flush, the loss may bring an old header back over new payloads.
                    boolean mayBeOld = powerLoss
                            && !run.options.durability().flushesBeforeReuse()
                            && !rig.generations.isLive(block.extent());
                    assertTrue(found.isWhole() || mayBeOld, () -> "torn though promised: " + block);
                }
            }
            if (!powerLoss) {
                walk.blocks.forEach((position, found) ->
                        assertTrue(found.isWhole(), () -> "a header on the drive proves its payloads: " + position));
            }
        }
    }

    /** Segments of 64 MiB have a file each: the seeds of the whole store are too small for a second one. */
    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {1, 2})
    void everyFileThatARoundCoversIsFlushed(long seed) {
        SimulatedFolder folder = new SimulatedFolder(seed, FOLDERS.make("files"));
        LogGeometry geometry = new LogGeometry(64 << 20, 12, Listings.STORE_ID);
        assertEquals(12, geometry.files());
        LogRig.createFiles(folder, geometry);
        NvmeOptions options = NvmeOptions.defaults().withOpenSegments(3);
        try (LogRig rig = new LogRig(
                folder, geometry, new LogState(12), 128 << 10, folder.clock(), folder.probe(), options, seed)) {
            rig.log.onStart();
            for (int block = 0; block < 12; block++) {
                assertTrue(rig.save(block % 3, 4096, null));
            }
            rig.log.requestFlush();
            while (rig.log.durablePosition() < rig.lastPosition) {
                rig.step();
            }
            folder.powerLoss();
            LogWalk walk = new LogWalk(folder.reopen(), geometry, false);
            assertEquals(
                    3,
                    walk.blocks.values().stream()
                            .mapToInt(LogWalk.Found::segment)
                            .distinct()
                            .count(),
                    "files with blocks");
            for (long position = 1; position <= rig.lastPosition; position++) {
                LogWalk.Found found = walk.blocks.get(position);
                assertTrue(found != null && found.isWhole(), "lost though durable: " + position);
            }
        }
    }

    @Test
    void writesGoOneAtATimeWhileSomebodyReads() {
        SimulatedFolder folder = new SimulatedFolder(13, FOLDERS.make("reads"));
        LogGeometry geometry = new LogGeometry(256 << 10, 12, Listings.STORE_ID);
        LogRig.createFiles(folder, geometry);
        try (LogRig rig = new LogRig(
                        folder,
                        geometry,
                        new LogState(12),
                        256 << 10,
                        folder.clock(),
                        folder.probe(),
                        NvmeOptions.defaults(),
                        13);
                MemoryRegion target = Listings.pages(2)) {
            rig.log.onStart();
            assertTrue(rig.save(0, 4000, null) && rig.save(2, 4000, null));
            rig.drain(); // two lanes have a segment
            assertEquals(2, writesOfAStep(rig));
            LogRig.Written block = rig.written.get(1L);
            assertTrue(rig.read(block, new ReadBatch(), target));
            assertTrue(rig.isRight(block, target, 0));
            assertEquals(1, writesOfAStep(rig));
            folder.clock().advance(60_000_000);
            assertEquals(2, writesOfAStep(rig));
            rig.stop();
        }
    }

    /** How many writes of payloads one step starts of two lanes that each have some blocks; then all is written. */
    private static long writesOfAStep(LogRig rig) {
        for (int i = 0; i < 6; i++) {
            assertTrue(rig.save(i % 2 * 2, 4000, null));
        }
        rig.log.requestWrite();
        long before = rig.log.counters().payloadWrites();
        rig.log.doWork();
        long started = rig.log.counters().payloadWrites() - before;
        rig.drain();
        return started;
    }

    @Test
    void neighboursAreWrittenInOneTransfer() {
        SimulatedFolder folder = new SimulatedFolder(12, FOLDERS.make("neighbours"));
        LogGeometry geometry = new LogGeometry(256 << 10, 8, Listings.STORE_ID);
        LogRig.createFiles(folder, geometry);
        try (LogRig rig = new LogRig(
                folder,
                geometry,
                new LogState(8),
                256 << 10,
                folder.clock(),
                folder.probe(),
                NvmeOptions.defaults(),
                12)) {
            for (int i = 0; i < 30; i++) {
                assertTrue(rig.save(0, 4000, null));
            }
            rig.drain();
            assertEquals(1, rig.log.counters().batches());
            assertEquals(1, rig.log.counters().payloadWrites());
            for (int i = 0; i < 30; i++) {
                assertTrue(rig.save(i % 2 * 2, 4000, null)); // two host segments, two lanes of the log
            }
            rig.drain();
            assertEquals(3, rig.log.counters().batches());
            assertEquals(3, rig.log.counters().payloadWrites());
            rig.stop();
        }
    }

    @Test
    void timedOutReadsBelongToTheLogUntilTheyDrain() {
        try (Run run = new Run(13)) {
            LogRig rig = run.rig;
            assertTrue(rig.save(0, 4096, null));
            rig.drain();
            LogRig.Written block = rig.written.get(1L);
            run.batch.add(block.extent(), block.bytes(), run.target, 0);
            assertTrue(rig.log.submit(run.batch));
            assertFalse(run.batch.await(0));
            assertFalse(run.batch.isDrained());
            assertEquals(ReadResult.PENDING, run.batch.result(0));
            assertThrows(OrbitKvException.class, run.batch::clear);
            assertThrows(OrbitKvException.class, () -> rig.log.submit(run.batch));
            while (!run.batch.isDrained()) {
                rig.step();
            }
            assertEquals(ReadResult.DONE, run.batch.result(0));
            assertTrue(rig.isRight(block, run.target, 0));
            rig.stop();
            assertFalse(rig.log.submit(run.batch), "a stopped log takes no reads");
        }
    }

    @Test
    void readsCanBeLookedAtAsTheyEnd() {
        try (Run run = new Run(15)) {
            LogRig rig = run.rig;
            assertTrue(rig.save(0, 4096, null));
            rig.drain();
            LogRig.Written block = rig.written.get(1L);
            int reads = 300;
            for (int i = 0; i < reads; i++) {
                run.batch.add(block.extent(), block.bytes(), run.target, 0);
            }
            assertTrue(rig.log.submit(run.batch));
            assertEquals(0, run.batch.awaitMore(0, 0), "nothing has ended, and the time is over");
            boolean[] seen = new boolean[reads];
            int partly = 0;
            for (int ended = 0; ended < reads; ) {
                rig.step();
                int now = run.batch.awaitMore(ended, 0);
                partly += now > 0 && now < reads && !run.batch.isDrained() ? 1 : 0;
                for (; ended < now; ended++) {
                    assertEquals(ReadResult.DONE, run.batch.endedResult(ended));
                    assertFalse(seen[run.batch.endedRead(ended)], "a read ended twice");
                    seen[run.batch.endedRead(ended)] = true;
                }
            }
            assertTrue(partly > 0, "all reads were seen at once");
            assertTrue(run.batch.await(Long.MAX_VALUE / 2));
            rig.stop();
        }
    }

    @Test
    void aShortBatchDoesNotWaitForALongOne() {
        try (Run run = new Run(16)) {
            LogRig rig = run.rig;
            assertTrue(rig.save(0, 4096, null));
            rig.drain();
            LogRig.Written block = rig.written.get(1L);
            ReadBatch small = new ReadBatch();
            small.add(block.extent(), block.bytes(), run.target, 0);
            for (int i = 0; i < ReadBatch.READS_MAX; i++) {
                run.batch.add(block.extent(), block.bytes(), run.target, 0);
            }
            assertTrue(rig.log.submit(run.batch));
            rig.step();
            assertTrue(rig.log.submit(small));
            while (!small.isDrained()) {
                rig.step();
            }
            assertEquals(ReadResult.DONE, small.result(0));
            assertFalse(run.batch.isDrained(), "the short batch came after all of the long one");
            assertTrue(run.batch.await(Long.MAX_VALUE / 2));
            rig.stop();
        }
    }

    @Test
    void readErrorsAreResultsAndTheLogServesOn() {
        try (Run run = new Run(14)) {
            LogRig rig = run.rig;
            assertTrue(rig.save(0, 4096, null));
            rig.drain();
            LogRig.Written block = rig.written.get(1L);
            run.folder.faults().readError(1);
            run.batch.add(block.extent(), block.bytes(), run.target, 0);
            assertTrue(rig.log.submit(run.batch));
            assertTrue(run.batch.await(Long.MAX_VALUE / 2));
            assertEquals(ReadResult.FAILED, run.batch.result(0));
            assertEquals(TierState.SERVING, rig.log.state());
            assertEquals(1, rig.log.counters().readsFailed());
            run.folder.faults().readError(0);
            assertTrue(rig.log.submit(run.batch));
            assertTrue(run.batch.await(Long.MAX_VALUE / 2));
            assertEquals(ReadResult.DONE, run.batch.result(0));
            rig.stop();
        }
    }

    /** Pins on all but the newest segments: reclaim takes what it can, waits for the rest, and goes on after. */
    @Test
    void pinsDelayReuseOfTheirSegmentOnly() {
        SimulatedFolder folder = new SimulatedFolder(7, FOLDERS.make("pins"));
        LogGeometry geometry = new LogGeometry(64 << 10, 8, Listings.STORE_ID);
        LogRig.createFiles(folder, geometry);
        NvmeOptions options = NvmeOptions.defaults().withOpenSegments(1);
        try (LogRig rig = new LogRig(
                        folder, geometry, new LogState(8), 128 << 10, folder.clock(), folder.probe(), options, 7);
                MemoryRegion target = Listings.pages(16)) {
            for (int i = 0; i < 30; i++) {
                assertTrue(rig.save(0, 13 * 4096, null));
                rig.drain();
            }
            LogRig.Written first = rig.written.values().stream()
                    .filter(block -> rig.generations.isLive(block.extent()))
                    .min(Comparator.comparingLong(LogRig.Written::position))
                    .orElseThrow();
            assertTrue(rig.log.pin(first.extent()));
            for (int i = 0; i < 60; i++) {
                assertTrue(rig.save(0, 13 * 4096, null));
                rig.drain();
            }
            assertFalse(rig.generations.isLive(first.extent()), "others went past it, so it was a victim");
            assertTrue(rig.read(first, new ReadBatch(), target));
            assertTrue(rig.isRight(first, target, 0), "its bytes stayed while it was pinned");
            assertEquals(0, rig.log.useSequence(Extent.segment(first.extent())));
            rig.log.unpin(first.extent());
            assertFalse(rig.log.pin(first.extent()), "a stale extent can't be pinned");
            for (int i = 0; i < 20; i++) {
                assertTrue(rig.save(0, 13 * 4096, null));
                rig.drain();
            }
            assertTrue(rig.log.useSequence(Extent.segment(first.extent())) > first.use(), "it is used again");
            rig.stop();
        }
    }

    @Test
    void everySegmentPinnedMeansWaiting() {
        SimulatedFolder folder = new SimulatedFolder(8, FOLDERS.make("pinned"));
        LogGeometry geometry = new LogGeometry(64 << 10, 4, Listings.STORE_ID);
        LogRig.createFiles(folder, geometry);
        NvmeOptions options = NvmeOptions.defaults().withOpenSegments(1).withQueueBlocks(10);
        try (LogRig rig =
                new LogRig(folder, geometry, new LogState(4), 128 << 10, folder.clock(), folder.probe(), options, 8)) {
            List<Long> pins = new ArrayList<>();
            for (int i = 0; i < 10_000 && rig.log.queueFree() > 0; i++) {
                rig.save(0, 13 * 4096, null);
                rig.step();
                rig.written.values().forEach(block -> {
                    if (!pins.contains(block.extent()) && rig.log.pin(block.extent())) {
                        pins.add(block.extent());
                    }
                });
            }
            assertEquals(0, rig.log.queueFree(), "the queue fills: back pressure");
            pins.forEach(rig.log::unpin);
            rig.drain();
            rig.stop();
            assertEquals(rig.offered.keySet(), rig.written.keySet());
        }
    }

    @Test
    void goesOnWhereAnEarlierLifeEnded() {
        SimulatedFolder folder = new SimulatedFolder(9, FOLDERS.make("lives"));
        LogGeometry geometry = new LogGeometry(64 << 10, 12, Listings.STORE_ID);
        LogRig.createFiles(folder, geometry);
        LogState state = new LogState(12);
        for (int life = 0; life < 6; life++) {
            try (LogRig rig = new LogRig(
                    folder, geometry, state, 128 << 10, folder.clock(), folder.probe(), NvmeOptions.defaults(), 9)) {
                assertEquals(state.lastPosition(), rig.log.writtenPosition());
                for (int i = 0; i < 25; i++) {
                    assertTrue(rig.save(i % 4, 5000, null));
                    rig.drain();
                }
                rig.stop();
                LogWalk walk = new LogWalk(folder, geometry);
                LogState next = new LogState(12).positions(rig.lastPosition, rig.log.durablePosition());
                walk.uses.values().forEach(next::passUse);
                walk.blocks.values().forEach(found -> next.seal(found.segment(), found.use()));
                assertEquals(rig.lastPosition, rig.log.durablePosition());
                for (LogRig.Written block : rig.written.values()) {
                    assertTrue(!rig.generations.isLive(block.extent())
                            || walk.blocks.get(block.position()).isWhole());
                }
                state = next;
            }
        }
    }

    @Test
    void tooLargeBlocksAreDroppedAndTheRestGoesOn() {
        SimulatedFolder folder = new SimulatedFolder(10, FOLDERS.make("large"));
        LogGeometry geometry = new LogGeometry(64 << 10, 4, Listings.STORE_ID);
        LogRig.createFiles(folder, geometry);
        try (LogRig rig = new LogRig(
                folder,
                geometry,
                new LogState(4),
                128 << 10,
                folder.clock(),
                folder.probe(),
                NvmeOptions.defaults(),
                10)) {
            rig.save(0, 14 * 4096, null);
            rig.lastWritten = 1; // the rig would miss it
            rig.save(0, 13 * 4096, null);
            rig.drain();
            rig.stop();
            assertEquals(1, rig.log.counters().blocksDropped());
            assertEquals(2, rig.log.durablePosition());
        }
    }

    @Test
    void shortOrMissingFilesAreRefused() {
        SimulatedFolder folder = new SimulatedFolder(11, FOLDERS.make("short"));
        LogGeometry geometry = new LogGeometry(64 << 10, 4, Listings.STORE_ID);
        folder.makeFolder(LogGeometry.FOLDER);
        folder.create(LogGeometry.fileName(0), 64 << 10).close();
        LeakCheck before = LeakCheck.take();
        OrbitKvException refused = assertThrows(OrbitKvException.class, () -> openAndClose(folder, geometry));
        assertEquals(ErrorCode.SEGMENT_FILE, refused.code());
        assertTrue(refused.getMessage().contains("000000000000.seg"), refused.getMessage());
        assertThrows(
                OrbitKvException.class, () -> openAndClose(folder, new LogGeometry(64 << 10, 1, Listings.STORE_ID)));
        assertEquals(before.bytes(MemoryPurpose.STAGING), LeakCheck.take().bytes(MemoryPurpose.STAGING));
    }

    private static void openAndClose(SimulatedFolder folder, LogGeometry geometry) {
        new LogRig(
                        folder,
                        geometry,
                        new LogState(geometry.segments()),
                        128 << 10,
                        folder.clock(),
                        folder.probe(),
                        NvmeOptions.defaults(),
                        11)
                .close();
    }
}
