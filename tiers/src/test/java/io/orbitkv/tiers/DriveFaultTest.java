package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Fault;
import io.orbitkv.kit.Faults;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Goal: a drive that answers with errors, hangs or is slow is out of service in time, gives back what waited for it, keeps
 * what it had written, and serves again once it is well; a flush that failed costs the segments that it was for, and is not
 * tried again. Method: the log on a simulated drive, stepped, with faults that come and go at seeded moments.
 */
class DriveFaultTest {
    private static final TestFolders FOLDERS = new TestFolders();
    private static final long TIMEOUT_NANOS = 1_500_000_000;
    private static final long SECOND = 1_000_000_000;

    @AfterAll
    static void removeFolders() {
        FOLDERS.close();
    }

    static LongStream seeds() {
        return LongStream.of(Seed.many(1, 30));
    }

    private static final class Run implements AutoCloseable {
        final Gen gen;
        final SimulatedFolder folder;
        final LogGeometry geometry;
        final LogRig rig;
        final MemoryRegion target;
        final ReadBatch batch = new ReadBatch();

        Run(long seed, int segmentBytes, int segments, Durability durability) {
            gen = new Gen(seed);
            geometry = new LogGeometry(segmentBytes, segments, Listings.STORE_ID);
            folder = new SimulatedFolder(seed, FOLDERS.make("faults"));
            LogRig.createFiles(folder, geometry);
            NvmeOptions options = NvmeOptions.defaults()
                    .withOpenSegments(3)
                    .withQueueBlocks(64)
                    .withBatches(64 << 10, 1_000_000)
                    .withDurability(durability, 5_000_000)
                    .withDriveTimeout(TIMEOUT_NANOS, 4 * SECOND);
            rig = new LogRig(
                    folder, geometry, new LogState(segments), 128 << 10, folder.clock(), folder.probe(), options, seed);
            target = Listings.pages(geometry.segmentPages());
            rig.log.onStart();
        }

        static Run of(long seed) {
            Gen gen = new Gen(seed);
            return new Run(seed, 64 << 10, gen.between(8, 60), gen.pick(Durability.values()));
        }

        void work(int steps) {
            for (int i = 0; i < steps; i++) {
                if (gen.coin()) {
                    rig.save(gen.below(4), gen.between(1, 12 << 10), gen);
                } else {
                    step();
                }
                if (gen.below(50) == 0) {
                    rig.log.requestFlush();
                }
            }
        }

        void step() {
            rig.step();
            rig.log.watch(folder.clock().nanoTime());
        }

        /** Steps until the drive is in a state; how long that took on the simulated clock. */
        long until(TierState state) {
            long start = folder.clock().nanoTime();
            for (int i = 0; rig.log.state() != state; i++) {
                assertTrue(i < 1_000_000, "it never is " + state + " but " + rig.log.state());
                if (rig.log.isServing()) {
                    rig.save(gen.below(4), gen.between(1, 12 << 10), gen);
                }
                step();
            }
            return folder.clock().nanoTime() - start;
        }

        /** Every block whose extent is live is read, and right. */
        int checkAll() {
            int live = 0;
            for (LogRig.Written block : List.copyOf(rig.written.values())) {
                if (rig.log.pin(block.extent())) {
                    assertTrue(rig.read(block, batch, target), () -> "not read: " + block);
                    assertTrue(rig.isRight(block, target, 0), () -> "wrong bytes: " + block);
                    rig.log.unpin(block.extent());
                    live++;
                }
            }
            return live;
        }

        void assertNothingIsPinned() {
            for (int segment = 0; segment < LogRig.HOST_SEGMENTS - 4; segment++) {
                rig.host.evictOldest();
            }
            assertTrue(rig.host.claim(0, 1) != Extent.NONE, "a pin on host memory is left behind");
        }

        @Override
        public void close() {
            rig.close();
            target.close();
        }
    }

    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void writeErrorsTakeTheDriveOutAndItComesBack(long seed) {
        try (Run run = Run.of(seed)) {
            LogRig rig = run.rig;
            run.work(600);
            for (int round = 1; round <= 3; round++) {
                double likely = run.gen.coin() ? 1 : 0.2;
                Faults faults = run.folder.faults();
                faults.set(run.gen.coin() ? Fault.NO_SPACE : Fault.WRITE_ERROR, likely);
                run.until(TierState.OUT);
                List<LogRig.Written> before = new ArrayList<>();
                rig.written.values().stream()
                        .filter(block -> rig.generations.isLive(block.extent()))
                        .forEach(before::add);
                assertEquals(0, rig.log.queueFree(), "a drive that is out takes nothing");
                assertFalse(rig.log.submit(run.batch), "nor reads");
                for (int i = 0; i < 200; i++) {
                    run.step();
                }
                assertEquals(0, rig.log.queueDepth(), "what waited was given back");
                faults.writeError(0).noSpace(0);
                long nanos = run.until(TierState.SERVING);
                assertTrue(nanos < 10 * SECOND, "back after " + nanos + " ns");
                for (LogRig.Written block : before) {
                    assertTrue(rig.generations.isLive(block.extent()), () -> "given up: " + block);
                }
                run.checkAll();
                run.work(600);
            }
            rig.drain();
            assertTrue(run.checkAll() > 0);
            rig.stop();
            assertEquals(TierState.STOPPED, rig.log.state());
            run.assertNothingIsPinned();
            assertEquals(
                    rig.offered.size(), rig.written.size() + rig.log.counters().blocksDropped());
            LogWalk walk = new LogWalk(run.folder, run.geometry);
            for (LogRig.Written block : rig.written.values()) {
                if (rig.generations.isLive(block.extent())) {
                    assertTrue(walk.blocks.containsKey(block.position()), () -> "not found at a restart: " + block);
                    assertTrue(walk.blocks.get(block.position()).isWhole());
                }
            }
        }
    }

    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void aFailedFlushCostsItsSegmentsAndIsNotTriedAgain(long seed) {
        try (Run run = Run.of(seed)) {
            LogRig rig = run.rig;
            run.work(600);
            long durable = rig.log.durablePosition();
            run.folder.faults().flushFailure(1);
            for (int i = 0; rig.log.isServing(); i++) {
                assertTrue(i < 100_000, "no flush fails");
                rig.save(run.gen.below(4), run.gen.between(1, 12 << 10), run.gen);
                rig.log.requestFlush();
                run.step();
            }
            assertTrue(rig.log.durablePosition() < rig.lastPosition, "durable was claimed for what was not flushed");
            for (int i = 0; i < 200; i++) {
                run.step();
            }
            assertTrue(rig.log.durablePosition() >= durable);
            run.folder.faults().flushFailure(0);
            run.until(TierState.SERVING);
            run.checkAll();
            run.work(600);
            rig.drain();
            rig.log.requestFlush();
            for (int i = 0; rig.log.durablePosition() < rig.lastPosition; i++) {
                assertTrue(i < 100_000, "a requested flush never comes");
                run.step();
            }
            // What lies in a segment that was not given up is durable: the simulated drive keeps nothing of the others.
            run.folder.powerLoss();
            LogWalk walk = new LogWalk(run.folder.reopen(), run.geometry, false);
            int checked = 0;
            for (LogRig.Written block : rig.written.values()) {
                if (rig.generations.isLive(block.extent())) {
                    LogWalk.Found found = walk.blocks.get(block.position());
                    assertTrue(found != null && found.isWhole(), () -> "lost though durable: " + block);
                    checked++;
                }
            }
            assertTrue(checked > 0);
        }
    }

    /** The kernel tells of a loss once: whoever flushes the file hears of what the log has written. */
    @Test
    void aFlushOfSomebodyElseThatFailsCostsWhatTheLogHadWritten() {
        try (Run run = new Run(Seed.of(DriveFaultTest.class), 64 << 10, 16, Durability.WRITTEN)) {
            LogRig rig = run.rig;
            run.work(300);
            rig.drain(); // the queue may be full
            assertTrue(rig.save(0, 4000, run.gen));
            rig.drain();
            LogRig.Written last = rig.written.get(rig.lastPosition);
            assertTrue(rig.generations.isLive(last.extent()));
            run.folder.faults().flushFailure(1);
            assertThrows(OrbitKvException.class, () -> rig.log.flushFile(0));
            run.folder.faults().flushFailure(0);
            run.step();
            assertEquals(TierState.OUT, rig.log.state());
            run.until(TierState.SERVING);
            assertFalse(rig.generations.isLive(last.extent()), "kept, though its flush has failed");
            assertTrue(rig.log.counters().segmentsFailed() > 0);
            run.work(300);
            rig.drain();
            assertTrue(run.checkAll() > 0);
        }
    }

    @Test
    void readersAreToldOfAFlushWhileItIsUnderWay() {
        try (Run run = new Run(Seed.of(DriveFaultTest.class), 64 << 10, 16, Durability.WRITTEN)) {
            LogRig rig = run.rig;
            assertTrue(rig.save(0, 4000, run.gen));
            rig.drain();
            assertEquals(0, rig.log.flushNanosLeft(), "nothing flushes");
            run.folder.faults().slowerNanos(SECOND / 10);
            rig.log.requestFlush();
            int told = 0;
            for (int i = 0; rig.log.durablePosition() < rig.lastPosition; i++) {
                assertTrue(i < 10_000, "never durable");
                run.step();
                told += rig.log.flushNanosLeft() > 0 ? 1 : 0;
            }
            assertTrue(told > 0, "a flush of a tenth of a second that nobody was told of");
            assertEquals(0, rig.log.flushNanosLeft(), "it has ended");
        }
    }

    /** LMCache and vLLM keep I/O threads in a hung device for ever: vllm#54363. */
    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void reported_vllm_54363_aHungDriveIsOutInTimeAndKeepsWhatItHolds(long seed) {
        try (Run run = Run.of(seed)) {
            LogRig rig = run.rig;
            run.work(600);
            run.folder.faults().hang(true);
            long nanos = run.until(TierState.OUT);
            assertTrue(nanos <= 2 * SECOND, "out after " + nanos + " ns");
            int tested = (int) rig.log.counters().outages();
            for (int i = 0; i < 300; i++) {
                run.step();
            }
            assertEquals(TierState.OUT, rig.log.state(), "its transfers have not ended, so it is not tried");
            assertTrue(tested <= 1);
            assertFalse(rig.log.submit(run.batch));
            run.folder.faults().hang(false);
            nanos = run.until(TierState.SERVING);
            assertTrue(nanos < 10 * SECOND, "back after " + nanos + " ns");
            run.checkAll();
            run.work(600);
            rig.drain();
            assertTrue(run.checkAll() > 0);
            rig.stop();
            assertEquals(TierState.STOPPED, rig.log.state());
            run.assertNothingIsPinned();
        }
    }

    @Test
    void aSlowDriveIsOutAndStaysOutWhileItIsSlow() {
        try (Run run = Run.of(Seed.of(DriveFaultTest.class))) {
            run.work(600);
            run.folder.faults().slowerNanos(3 * SECOND);
            run.until(TierState.OUT);
            long slowUntil = run.folder.clock().nanoTime() + 60 * SECOND;
            int probes = 0;
            TierState was = TierState.OUT;
            while (run.folder.clock().nanoTime() < slowUntil) {
                run.step();
                TierState now = run.rig.log.state();
                assertTrue(now != TierState.SERVING, "a drive that takes 3 s a transfer serves");
                probes += now == TierState.RETURNING && was == TierState.OUT ? 1 : 0;
                was = now;
            }
            assertTrue(probes >= 5 && probes <= 30, probes + " probes in a minute");
            run.folder.faults().slowerNanos(0);
            assertTrue(run.until(TierState.SERVING) < 10 * SECOND);
            run.work(200);
            run.rig.drain();
            assertTrue(run.checkAll() > 0);
        }
    }

    /** A mover with blocks under way when the drive fails: they are found where they were, and nothing is lost. */
    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void usedBlocksThatAreAppendedAgainSurviveAnOutage(long seed) {
        try (Run run = new Run(seed, 64 << 10, 64, Durability.INTERVAL)) {
            LogRig rig = run.rig;
            for (int outage = 0; outage < 4; outage++) {
                int moved = rig.moved;
                for (int i = 0; i < 20_000 && rig.moved == moved; i++) {
                    use(run);
                    run.work(5);
                }
                int fault = run.gen.below(3);
                run.folder
                        .faults()
                        .writeError(fault == 0 ? 1 : 0)
                        .flushFailure(fault == 1 ? 1 : 0)
                        .hang(fault == 2);
                for (int i = 0; rig.log.isServing(); i++) {
                    assertTrue(i < 100_000);
                    use(run);
                    rig.save(run.gen.below(4), run.gen.between(1, 12 << 10), run.gen);
                    if (i % 100 == 0) { // each asks the agent to wake, and time passes while it sleeps
                        rig.log.requestFlush();
                    }
                    run.step();
                }
                for (int i = 0; i < 100; i++) {
                    run.step();
                }
                run.folder.faults().writeError(0).flushFailure(0).hang(false);
                run.until(TierState.SERVING);
                run.checkAll();
            }
            assertTrue(rig.moved > 0);
            rig.stop();
        }
    }

    private static void use(Run run) {
        long newest = run.rig.lastPosition;
        for (int i = 0; i < 20 && newest > 0; i++) {
            LogRig.Written block = run.rig.written.get(run.gen.between(Math.max(1, newest - 400), newest));
            if (block != null) {
                run.rig.log.markUsed(block.extent(), run.rig.log.nextUse());
            }
        }
    }
}
