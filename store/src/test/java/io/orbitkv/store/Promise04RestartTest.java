package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.recovery.DeadReason;
import io.orbitkv.recovery.FillState;
import io.orbitkv.recovery.OpeningKind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Promise 4: the first query is answered soon after a start, and hits are served while the index fills.
 *
 * <p>Method: the fill is slowed at a door (the {@link CrashWindow#FILL} probe), while a real store is asked, saved to, cleared,
 * closed and killed; and any order of fill steps, saves, clears, evictions and kills on a stepped store is compared with a
 * model, where each run is a function of its seed. The times themselves are measured by {@code orbitkv bench restart}.
 */
final class Promise04RestartTest {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;
    private static final int BLOCK_BYTES = 4 * KIB;
    private static final int PROMPTS = 60;
    private static final int PROMPT_BLOCKS = 40;
    private static final long WAIT_MILLIS = 120_000;
    private static final long SLOW_NANOS = 20_000_000;
    private static final long CHILD_SEED = 77;
    private static final int SEEDS = Integer.getInteger("orbitkv.seeds", 60);

    /** What all runs of the property have met, so that one that has stopped testing is noticed. */
    private static long evictedWhileFilling;

    private static long clearedWhileFilling;
    private static long savedWhileFilling;
    private static long killedWhileFilling;

    private final Gen gen = new Gen(Seed.of(Promise04RestartTest.class));
    private final TestFolders folders = new TestFolders();

    @AfterEach
    void remove() {
        folders.close();
    }

    /** Stops the fill at each piece until it is let on. */
    private static final class Door implements WindowProbe {
        private final Semaphore pieces = new Semaphore(0);
        private volatile boolean isOpen;

        @Override
        public void enter(CrashWindow window) {
            if (window == CrashWindow.FILL && !isOpen) {
                pieces.acquireUninterruptibly();
            }
        }

        @Override
        public void leave(CrashWindow window) {}

        void let(int count) {
            pieces.release(count);
        }

        void open() {
            isOpen = true;
            pieces.release(1 << 20);
        }
    }

    /** Lets every piece of the fill take a while. */
    private static final class Slow implements WindowProbe {
        @Override
        public void enter(CrashWindow window) {
            if (window == CrashWindow.FILL) {
                LockSupport.parkNanos(SLOW_NANOS);
            }
        }

        @Override
        public void leave(CrashWindow window) {}
    }

    private static StoreOptions options(Path folder) {
        return WholeStore.optionsIn(folder)
                .poolBytes(4 * MIB)
                .capBytes(32 * MIB)
                .segmentBytes(256 * KIB)
                .blockBytesLargest(BLOCK_BYTES)
                .pageKind(PageKind.SMALL);
    }

    private static Modelled keeper(KvStore store, Modelled.Model model) {
        return new Modelled(
                store, store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0), model, PROMPT_BLOCKS);
    }

    private static Modelled other(KvStore store, Modelled.Model model) {
        return new Modelled(
                store,
                store.openFamily(Modelled.family(BLOCK_BYTES).modelId("other").build())
                        .shard(0),
                model,
                PROMPT_BLOCKS);
    }

    private static List<Prompt> prompts(Gen gen, int count) {
        List<Prompt> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            all.add(Prompt.random(gen, PROMPT_BLOCKS));
        }
        return all;
    }

    /** A folder with prompts of two families, stopped so that the next opening scans the log, or not. */
    private Path saved(List<Prompt> prompts, boolean scans) throws IOException {
        Path folder = folders.make("restart");
        try (KvStore store = WholeStore.open(options(folder));
                Modelled keeper = keeper(store, new Modelled.Model());
                Modelled other = other(store, new Modelled.Model())) {
            for (Prompt prompt : prompts) {
                keeper.saveAll(prompt, 0, PROMPT_BLOCKS);
                other.saveAll(prompt, 0, PROMPT_BLOCKS);
            }
        }
        if (scans) {
            Files.delete(folder.resolve("snapshot/MARKER"));
        }
        return folder;
    }

    @ParameterizedTest(name = "after a kill: {0}")
    @ValueSource(booleans = {true, false})
    void hitsAreServedAndSavesTakenWhileTheIndexFills(boolean scans) throws Exception {
        List<Prompt> prompts = prompts(gen, PROMPTS);
        Path folder = saved(prompts, scans);
        Door door = new Door();
        try (KvStore store = KvStore.open(options(folder).probe(door));
                Modelled keeper = keeper(store, new Modelled.Model());
                Modelled other = other(store, new Modelled.Model())) {
            // Nothing is indexed, and the store answers and takes saves in.
            OpenReport report = store.openReport();
            assertEquals(scans ? OpeningKind.KILL : OpeningKind.CLEAN, report.kind());
            assertEquals(FillState.FILLING, report.fill());
            assertNull(report.accounting());
            assertEquals(0, report.times().wholeNanos());
            assertTrue(report.filledShare() < 1 && store.stats().filledShare() < 1);
            assertEquals(FillState.FILLING, store.stats().fill());
            assertFalse(store.awaitWhole(0));
            assertEquals(0, keeper.restore(prompts.get(0), 0, PROMPT_BLOCKS, gen));
            Prompt fresh = Prompt.random(gen, PROMPT_BLOCKS);
            keeper.saveAll(fresh, 0, PROMPT_BLOCKS);
            Prompt again = prompts.get(PROMPTS - 1);
            keeper.saveAll(again, 0, PROMPT_BLOCKS); // its old place is not indexed yet
            keeper.written();
            assertEquals(PROMPT_BLOCKS, keeper.restore(fresh, 0, PROMPT_BLOCKS, gen));

            // Some of it is indexed: hits.
            door.let(scans ? 12 : 24);
            int hits = 0;
            for (long deadline = deadline(); hits == 0; ) {
                hits = found(keeper, prompts.subList(0, PROMPTS - 1));
                assertTrue(System.nanoTime() - deadline < 0, () -> "no hits while it fills: " + store.openReport());
            }
            assertEquals(FillState.FILLING, store.openReport().fill());
            assertTrue(hits < (PROMPTS - 1) * PROMPT_BLOCKS, "all is found while the door is shut");
            assertEquals(PROMPT_BLOCKS, keeper.restore(again, 0, PROMPT_BLOCKS, gen));

            // A clear holds for what is indexed and for what is not.
            store.clear(other.shard.family());
            Prompt afterClear = Prompt.random(gen, PROMPT_BLOCKS);
            other.saveAll(afterClear, 0, PROMPT_BLOCKS);
            door.open();
            assertTrue(store.awaitWhole(WAIT_MILLIS));
            whole(store);
            assertEquals(PROMPTS * PROMPT_BLOCKS, found(keeper, prompts));
            assertEquals(PROMPT_BLOCKS, keeper.restore(fresh, 0, PROMPT_BLOCKS, gen));
            assertEquals(0, found(other, prompts), "cleared stays cleared");
            assertTrue(
                    store.openReport().accounting().dead(DeadReason.CLEARED) > 0,
                    () -> "nothing was cleared before it was indexed: " + store.openReport());
            assertEquals(PROMPT_BLOCKS, other.restore(afterClear, 0, PROMPT_BLOCKS, gen));
            assertEquals(0, store.stats().corruptBlocks());
        } finally {
            door.open();
        }
        try (KvStore store = WholeStore.open(options(folder));
                Modelled keeper = keeper(store, new Modelled.Model());
                Modelled other = other(store, new Modelled.Model())) {
            assertEquals(OpeningKind.CLEAN, store.openReport().kind());
            assertEquals(PROMPTS * PROMPT_BLOCKS, found(keeper, prompts));
            assertEquals(0, found(other, prompts));
        }
    }

    private static long deadline() {
        return System.nanoTime() + WAIT_MILLIS * 1_000_000;
    }

    private int found(Modelled modelled, List<Prompt> prompts) {
        int found = 0;
        for (Prompt prompt : prompts) {
            for (int i = 0; i < prompt.blocks(); ) {
                int here = modelled.restore(prompt, i, prompt.blocks() - i, gen);
                found += here;
                i += Math.max(1, here);
            }
        }
        return found;
    }

    private static void whole(KvStore store) {
        OpenReport report = store.openReport();
        assertEquals(FillState.WHOLE, report.fill());
        assertEquals(1, report.filledShare());
        assertNotNull(report.accounting());
        assertTrue(report.accounting().isWhole(), () -> report.accounting().toString());
        assertTrue(report.times().wholeNanos() >= report.times().readyNanos());
        assertTrue(
                report.timeLines().get(6).startsWith("index whole"),
                () -> report.timeLines().toString());
    }

    /** A close while the index fills leaves the folder as a kill does. */
    @Test
    void aStoreThatIsClosedWhileItFillsOpensAgainTwiceInARow() throws Exception {
        List<Prompt> prompts = prompts(gen, PROMPTS);
        Path folder = saved(prompts, false);
        for (int life = 0; life < 3; life++) {
            long began = System.nanoTime();
            try (KvStore store = KvStore.open(options(folder).probe(new Slow()));
                    Modelled keeper = keeper(store, new Modelled.Model())) {
                assertEquals(
                        life == 0 ? OpeningKind.CLEAN : OpeningKind.KILL,
                        store.openReport().kind());
                keeper.saveAll(Prompt.random(gen, PROMPT_BLOCKS), 0, PROMPT_BLOCKS);
                assertEquals(FillState.FILLING, store.openReport().fill());
            }
            assertTrue(System.nanoTime() - began < 60_000_000_000L, "closing waited for the fill");
            assertFalse(Files.exists(folder.resolve("snapshot/MARKER")), "no snapshot of half an index");
        }
        try (KvStore store = WholeStore.open(options(folder));
                Modelled keeper = keeper(store, new Modelled.Model())) {
            assertEquals(OpeningKind.KILL, store.openReport().kind());
            whole(store);
            assertEquals(PROMPTS * PROMPT_BLOCKS, found(keeper, prompts));
        }
    }

    /** Opens a store whose fill is slow, saves a prompt, and waits for its end. */
    static final class SlowChild {
        private SlowChild() {}

        public static void main(String[] args) throws Exception {
            try (KvStore store = KvStore.open(options(Path.of(args[0])).probe(new Slow()));
                    Modelled keeper = keeper(store, new Modelled.Model())) {
                keeper.saveAll(Prompt.random(new Gen(Long.parseLong(args[1])), PROMPT_BLOCKS), 0, PROMPT_BLOCKS);
                keeper.written();
                System.out.println(store.openReport().fill());
                System.in.read();
            }
        }
    }

    @Test
    void aProcessThatIsKilledWhileItFillsLosesNothing() throws Exception {
        List<Prompt> prompts = prompts(gen, PROMPTS);
        Path folder = saved(prompts, true);
        for (int life = 0; life < 2; life++) {
            Process child = ChildJvm.start(SlowChild.class, folder.toString(), Long.toString(CHILD_SEED + life));
            try {
                ChildJvm.awaitLine(child, "FILLING");
            } finally {
                child.destroyForcibly();
                assertTrue(child.waitFor(30, TimeUnit.SECONDS));
            }
        }
        try (KvStore store = WholeStore.open(options(folder));
                Modelled keeper = keeper(store, new Modelled.Model())) {
            assertEquals(OpeningKind.KILL, store.openReport().kind());
            whole(store);
            assertEquals(PROMPTS * PROMPT_BLOCKS, found(keeper, prompts));
            for (int life = 0; life < 2; life++) {
                Prompt own = Prompt.random(new Gen(CHILD_SEED + life), PROMPT_BLOCKS);
                assertEquals(PROMPT_BLOCKS, keeper.restore(own, 0, PROMPT_BLOCKS, gen), "what life " + life + " saved");
            }
        }
    }

    // ---- any order of steps, against a model ----

    static LongStream seeds() {
        return LongStream.of(Seed.many(1, SEEDS));
    }

    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void anyOrderOfFillStepsAndOperationsEqualsTheModel(long seed) {
        new Run(seed).run();
    }

    @AfterAll
    static void hasTested() {
        if (!Seed.isGiven() && SEEDS >= 60) {
            assertTrue(evictedWhileFilling > 0, "no segment was given up while the index was filled");
            assertTrue(clearedWhileFilling > 0 && savedWhileFilling > 0, "nothing was done while the index was filled");
            assertTrue(killedWhileFilling > 0, "nobody was killed while the index was filled");
        }
    }

    /** Lives of a stepped store; each ends by a kill or a stop, wherever its fill is. */
    private final class Run {
        private static final int LIVES = 5;
        private static final int LENGTH = 12;

        private final Gen random;
        private final long seed;

        /** Whether the log is so small that segments are given up: then what was saved may be gone. */
        private final boolean isSmall;

        private final StoreOptions options;
        private final List<Prompt> prompts = new ArrayList<>();

        /** By family: the keys that must be found once the index is whole, unless their segment was given up. */
        private Modelled.Model[] models = {new Modelled.Model(), new Modelled.Model()};

        private final Modelled[] users = new Modelled[2];
        private SimulatedFolder folder;
        private KvStore store;

        Run(long seed) {
            this.seed = seed;
            this.random = new Gen(Gen.mix(seed));
            this.isSmall = seed % 3 == 0;
            this.options = WholeStore.optionsIn(Path.of("simulated"))
                    .poolBytes(MIB)
                    .capBytes(isSmall ? 2 * MIB + 256 * KIB : 16 * MIB)
                    .segmentBytes(64 * KIB)
                    .blockBytesLargest(BLOCK_BYTES)
                    .openSegments(2)
                    .pageKind(PageKind.SMALL);
            for (int i = 0; i < 24; i++) {
                Prompt from = i > 0 && random.coin() ? random.pick(prompts) : Prompt.random(random, LENGTH);
                prompts.add(from.fork(random, random.below(LENGTH), LENGTH));
            }
        }

        void run() {
            folder = new SimulatedFolder(seed, folders.make("fill"));
            try {
                for (int life = 0; life < LIVES; life++) {
                    open();
                    work(random.coin() ? random.below(8) : random.between(5, 60));
                    if (life > 0 && random.chance(0.7)) {
                        awaitAndCompare();
                        work(random.between(0, 20));
                    }
                    end();
                }
                open();
                awaitAndCompare();
                long indexed = store.openReport().accounting().indexedBlocks();
                int known = models[0].keys().size() + models[1].keys().size();
                assertTrue(isSmall ? indexed <= known : indexed == known, indexed + " of " + known + " keys indexed");
            } finally {
                closeAll();
            }
        }

        private boolean isFilling() {
            return store.openReport().fill() == FillState.FILLING;
        }

        private void open() {
            store = KvStore.openStepped(options, folder, folder.clock(), seed);
            users[0] = keeper(store, models[0]);
            users[1] = other(store, models[1]);
        }

        private void work(int operations) {
            for (int i = 0; i < operations; i++) {
                boolean filling = isFilling();
                long reused = store.stats().nvmeSegmentsReused();
                int family = random.below(2);
                Prompt prompt = random.pick(prompts);
                int choice = random.below(20);
                if (choice < 9) {
                    int from = random.below(LENGTH);
                    users[family].saveAll(prompt, from, LENGTH - from);
                    savedWhileFilling += filling ? 1 : 0;
                    // In host memory, or on the drive: what was saved last is there, whatever the fill does.
                    int there = users[family].restore(prompt, from, LENGTH - from, random);
                    assertTrue(isSmall || there == LENGTH - from, "saved now, and found " + there);
                } else if (choice < 17) {
                    users[family].restore(prompt, 0, LENGTH, random);
                } else if (choice < 18) {
                    store.clear(users[family].shard.family());
                    models[family].keys().clear();
                    clearedWhileFilling += filling ? 1 : 0;
                } else {
                    users[family].written();
                }
                for (int step = random.below(4); step > 0; step--) {
                    store.step();
                }
                noneCleared(family, prompt);
                evictedWhileFilling += filling && store.stats().nvmeSegmentsReused() > reused ? 1 : 0;
            }
            assertEquals(0, store.stats().corruptBlocks());
        }

        /** What the model does not have was cleared, or never saved. */
        private void noneCleared(int family, Prompt prompt) {
            for (int i = 0; i < LENGTH; i++) {
                if (models[family].length(prompt, i) == 0) {
                    assertEquals(0, users[family].restore(prompt, i, 1, random), "block " + i + " was cleared");
                }
            }
        }

        private void awaitAndCompare() {
            assertTrue(store.awaitWhole(WAIT_MILLIS));
            assertTrue(store.openReport().accounting().isWhole());
            for (int family = 0; family < 2; family++) {
                for (Prompt prompt : prompts) {
                    noneCleared(family, prompt);
                    for (int i = 0; i < LENGTH && !isSmall; i++) {
                        int expected = models[family].length(prompt, i);
                        assertEquals(expected, users[family].restore(prompt, i, LENGTH - i, random), "from block " + i);
                    }
                }
            }
            assertEquals(0, store.stats().corruptBlocks());
        }

        /** Everything is written before, so that a kill takes nothing away. */
        private void end() {
            users[0].written();
            killedWhileFilling += isFilling() ? 1 : 0;
            boolean kills = random.coin();
            if (kills) {
                folder.kill();
            }
            closeAll();
            folder = folder.reopen();
        }

        private void closeAll() {
            KvStore open = store;
            store = null;
            if (open != null) {
                users[0].close();
                users[1].close();
                try {
                    open.close();
                } catch (io.orbitkv.kit.SimulatedCrash expected) {
                    return; // it was killed
                }
            }
        }
    }
}
