package io.orbitkv.recovery;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.NamespaceRow;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.SimulatedCrash;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: a kill or a power loss at any operation, those of creation, opening and clean stop among them, loses no block
 * that was durable (after a kill: written), and shows none whose bytes are not its own.
 *
 * <p>Method: for each seed, lives of a store on the simulated drive; each writes some segments and ends by a crash at a
 * random operation, wherever that is. A model knows what was written and what was flushed.
 */
final class CrashEverywhereTest {
    private static final int SEEDS = Integer.getInteger("orbitkv.crash.seeds", 40);
    private static final int LIVES = 6;
    private static final long NAMESPACE = 7;
    private static final NamespaceRow ROW = new NamespaceRow(NAMESPACE, new Gen(3).bytes(32), 1, new byte[0]);

    private final TestFolders folders = new TestFolders();

    @AfterEach
    void remove() {
        folders.close();
    }

    /** A store's lives under one seed. */
    private final class Run {
        private final Gen gen;
        private final OpeningOptions options;
        private SimulatedFolder folder;

        /** By segment: blocks that must be found whatever comes, and those that must be found after a kill. */
        private final Map<Integer, List<TestBlock>> durable = new HashMap<>();

        private final Map<Integer, List<TestBlock>> written = new HashMap<>();
        private final List<TestBlock> ever = new ArrayList<>();
        private long number = 1;
        private boolean named;

        Run(long seed) {
            this.gen = new Gen(seed);
            this.options =
                    OpeningOptions.of(4L << 20).withSegmentBytes(128 << 10).simulated(seed + 1);
            this.folder = new SimulatedFolder(seed, folders.make("crash"));
        }

        void run() {
            for (int life = 0; life < LIVES; life++) {
                folder.crashAfter(gen.coin() ? gen.between(1, 60) : gen.between(1, 1200));
                TestLife opened = null;
                try {
                    opened = new TestLife(folder, options);
                    check(opened);
                    name(opened);
                    if (gen.chance(0.3)) {
                        stop(opened);
                    } else {
                        write(opened);
                    }
                    folder.crashAfter(1);
                    folder.makeFolder("snapshot");
                    throw new AssertionError("the crash did not come");
                } catch (SimulatedCrash expected) {
                    crash(opened);
                }
            }
            TestLife last = new TestLife(folder, options);
            check(last);
            folder.kill();
            last.close();
            SimulatedFolder after = folder.reopen();
            VerifyReport report = Verify.run(after, options);
            assertTrue(report.isClean(), report.problems().toString());
            after.close();
        }

        private void crash(TestLife opened) {
            boolean power = gen.coin();
            if (power) {
                folder.powerLoss();
                written.clear();
                durable.forEach((segment, blocks) -> written.put(segment, new ArrayList<>(blocks)));
            } else {
                folder.kill();
            }
            if (opened != null) {
                opened.close();
            }
            folder = folder.reopen();
        }

        private void name(TestLife life) {
            if (!named) {
                // The catalog is real and knows no simulated crash: once committed it stays.
                try (var batch = life.opened.catalog().begin()) {
                    batch.putNamespace(ROW);
                    batch.commit();
                }
                named = true;
            }
        }

        private void check(TestLife life) {
            if (!named) {
                return;
            }
            life.requireAll(written.values().stream().flatMap(List::stream).toList());
            for (TestBlock block : ever) {
                if (life.extent(NAMESPACE, block.number()) != Extent.NONE) {
                    assertTrue(life.has(block), () -> block + " has wrong bytes");
                }
            }
            // What an opening has found is durable from now on.
            durable.clear();
            written.clear();
            for (TestBlock block : ever) {
                long extent = life.extent(NAMESPACE, block.number());
                if (extent != Extent.NONE) {
                    durable.computeIfAbsent(Extent.segment(extent), s -> new ArrayList<>())
                            .add(block);
                    written.computeIfAbsent(Extent.segment(extent), s -> new ArrayList<>())
                            .add(block);
                }
            }
        }

        private void stop(TestLife life) {
            OpeningScenarios.stop(
                    life, life.opened.nextPosition(), life.opened.logState().nextUseSequence());
        }

        private void write(TestLife life) {
            long use = life.opened.logState().nextUseSequence();
            try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
                for (int n = gen.between(1, 6); n > 0; n--) {
                    int segment = gen.below(life.opened.geometry().segments());
                    durable.remove(segment); // its blocks may be gone, or not, until the new header stands
                    written.remove(segment);
                    log.start(segment, use++);
                    batches(log, segment);
                    if (gen.coin() && log.blocks() > 0) {
                        log.seal();
                    }
                    if (gen.coin()) {
                        log.flush();
                        // All segments of so small a store share a file.
                        written.forEach((s, blocks) -> durable.put(s, new ArrayList<>(blocks)));
                    }
                }
            }
        }

        private void batches(LogWriter log, int segment) {
            for (int b = gen.below(4); b > 0; b--) {
                List<TestBlock> blocks = new ArrayList<>();
                for (int i = gen.between(1, 5); i > 0; i--) {
                    long parent = gen.coin() ? number - 1 : TestBlock.NO_PARENT;
                    blocks.add(new TestBlock(NAMESPACE, 1, number++, parent, gen.size(1, 14_000), 0, number));
                }
                if (!log.fits(blocks)) {
                    return;
                }
                ever.addAll(blocks);
                log.batch(blocks);
                written.computeIfAbsent(segment, s -> new ArrayList<>()).addAll(blocks);
            }
        }
    }

    @Test
    void noCrashLosesWhatWasDurable() {
        for (long seed : Seed.many(1, SEEDS)) {
            Run run = new Run(seed);
            try {
                run.run();
            } catch (AssertionError | RuntimeException e) {
                throw new AssertionError(Seed.replay(CrashEverywhereTest.class, seed), e);
            } finally {
                run.folder.close();
                folders.close();
            }
        }
    }

    @Test
    void oneSeedHasOneHistory() {
        byte[] first = history(77);
        assertArrayEquals(first, history(77));
        assertNotEquals(0, first.length);
    }

    private byte[] history(long seed) {
        Run run = new Run(seed);
        run.run();
        byte[] bytes = run.folder.history().bytes();
        folders.close();
        return bytes;
    }

    @Test
    void aCreationThatCrashesIsMadeAnew() {
        for (int at = 1; at < 40; at++) {
            SimulatedFolder folder = new SimulatedFolder(at, folders.make("creation"));
            OpeningOptions options =
                    OpeningOptions.of(4L << 20).withSegmentBytes(128 << 10).simulated(at);
            folder.crashAfter(at);
            TestLife life = null;
            boolean crashed = false;
            try {
                life = new TestLife(folder, options);
            } catch (SimulatedCrash expected) {
                crashed = true;
            }
            if (at % 2 == 0) {
                folder.powerLoss();
            } else {
                folder.kill();
            }
            if (life != null) {
                life.close();
            }
            SimulatedFolder next = folder.reopen();
            life = new TestLife(next, options);
            assertEquals(
                    life.opened.geometry().segments(), life.opened.accounting().segmentsFree());
            assertTrue(!crashed || life.opened.epoch() <= 2);
            next.kill();
            life.close();
        }
    }

    /** What a second attempt removes may come back with the next power loss: it must not be taken for a store. */
    @Test
    void aCreationThatLosesPowerTwiceIsMadeAnew() {
        for (int seed = 1; seed <= 120; seed++) {
            SimulatedFolder folder = new SimulatedFolder(seed, folders.make("twice"));
            OpeningOptions options =
                    OpeningOptions.of(4L << 20).withSegmentBytes(128 << 10).simulated(seed);
            for (int at : new int[] {10 + seed % 4, 8 + seed / 4 % 12}) {
                folder.crashAfter(at);
                assertThrows(SimulatedCrash.class, () -> new TestLife(folder.reopen(), options).close());
                folder.powerLoss();
            }
            SimulatedFolder last = folder.reopen();
            try (TestLife life = new TestLife(last, options)) {
                assertEquals(
                        life.opened.geometry().segments(),
                        life.opened.accounting().segmentsFree());
                last.kill();
            }
            folders.close();
        }
    }

    /** Nothing is lost with a folder that was not made to its end, and no half of a store is taken for one. */
    @Test
    void aCreationOfTwoFoldersThatCrashesIsMadeAnew() {
        boolean crashed = true;
        for (int at = 1; crashed; at++) {
            for (boolean power : new boolean[] {true, false}) {
                crashed = createTwo(at, power);
            }
        }
    }

    /** Lets a creation die at an operation, and opens the folders; false when it ends before that. */
    private boolean createTwo(int at, boolean power) {
        Path other = folders.make("second");
        SimulatedFolder folder = new SimulatedFolder(at, folders.make("first"));
        OpeningOptions options =
                OpeningOptions.of(8L << 20).withSegmentBytes(128 << 10).simulated(at);
        folder.crashAfter(at);
        boolean crashed = false;
        try (TestLife life = new TestLife(DataFolders.of(folder, folder.beside(other)), options, folder.probe())) {
            assertEquals(OpeningKind.FRESH, life.opened.kind());
        } catch (SimulatedCrash expected) {
            crashed = true;
        }
        if (!crashed) {
            folder.kill();
            return false;
        }
        if (power) {
            folder.powerLoss();
        } else {
            folder.kill();
        }
        SimulatedFolder next = folder.reopen();
        requireNoProblem(DataFolders.of(next, next.beside(other)), options);
        next = folder.reopen();
        DataFolders both = DataFolders.of(next, next.beside(other));
        try (TestLife life = new TestLife(both, options, next.probe())) {
            String where = "died at operation " + at + ": " + life.opened.report();
            assertEquals(List.of(), life.opened.report().lostFolders(), where);
            assertEquals(
                    life.opened.geometry().segments(), life.opened.accounting().segmentsFree(), where);
            assertTrue(both.list().stream().noneMatch(one -> one.exists(FolderNames.INCOMPLETE)), where);
            assertTrue(life.opened.epoch() <= 2, where);
            next.kill();
        }
        return true;
    }

    /** Verify finds nothing wrong in what a creation has left, or no store. */
    private static void requireNoProblem(DataFolders both, OpeningOptions options) {
        try {
            VerifyReport report = Verify.run(both, options);
            assertTrue(report.isClean(), report.problems().toString());
        } catch (OrbitKvException e) {
            assertEquals(ErrorCode.FOLDER_UNUSABLE, e.code(), e.getMessage());
        } finally {
            both.close();
        }
    }
}
