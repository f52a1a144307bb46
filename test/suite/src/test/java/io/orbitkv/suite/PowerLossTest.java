package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Faults;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.recovery.OpeningKind;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: whenever the machine dies, a reopened store answers each key with the bytes that were saved or with a miss; what
 * was acknowledged as durable survives a power loss and what was acknowledged as written a kill, unless its segment was
 * put to use again; what was cleared stays cleared; every page is accounted for.
 *
 * <p>Method: the production store, stepped on one thread over a simulated drive that reorders, tears and drops what was
 * not flushed; it dies at seeded operations, also while it opens, stops, seals, reuses segments and makes its folder;
 * everything is compared with a model. A run is a function of its seed: {@code -Dorbitkv.seed=N} replays one,
 * {@code -Dorbitkv.seeds=N} runs more, {@code -Dorbitkv.seeds.first=N} from another one on. The catalog's file is a real one and its commits are trusted to be atomic and
 * durable, as LMDB promises; the simulated machine dies before or after a commit, never within.
 *
 * <p>Two controls sabotage the drive and the recovery, and the same checks must notice.
 */
class PowerLossTest {
    private static final int SEEDS = Integer.getInteger("orbitkv.seeds", 200);
    private static final long FIRST_SEED = Long.getLong("orbitkv.seeds.first", 1);
    private static final int CONTROL_SEEDS_MAX = 80;
    private static final int NOTICED_MIN = 3;
    private static final int SAID_MAX = 80;
    private static final PowerLossTotals TOTALS = new PowerLossTotals();

    static LongStream seeds() {
        return LongStream.of(Seed.many(FIRST_SEED, SEEDS));
    }

    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void keepsItsPromises(long seed) {
        run(seed, TOTALS, null);
    }

    /**
     * Segments that the store had given up, with their blocks, when it stopped cleanly, and whose old headers still stood: the
     * clean stop forgets the blocks, where a death would have brought them back.
     */
    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {24, 235, 417, 532, 200_179, 200_730})
    void givesUpSegmentsThatItNeedsNoMoreBeforeItStops(long seed) {
        run(seed, TOTALS, null);
    }

    /** A kill tears the header of a segment that then stays free: the next clean stop must still count as one. */
    @Test
    void stopsCleanlyBesideAFreeSegmentWithATornHeader() {
        run(104, TOTALS, null);
    }

    /** A death when the first of two new folders is made to its end and the second is not: none of them is lost. */
    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {124, 240, 588, 736})
    void diesBetweenTheEndsOfTwoNewFolders(long seed) {
        run(seed, TOTALS, null);
    }

    /** Power is lost in the making of a folder, and again while what the first loss left of it is removed. */
    @Test
    void losesPowerTwiceWhileItMakesItsFolders() {
        run(202_196, TOTALS, null);
    }

    /** A durable block goes with its segment, is saved again, and power is lost before that is durable. */
    @Test
    void losesPowerBeforeABlockThatWasSavedAgainIsDurable() {
        run(101_522, TOTALS, null);
    }

    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {3, 17, 91, 140, 199})
    void sameSeedGivesTheSameHistory(long seed) {
        String[] first = run(seed, new PowerLossTotals(), null);
        String[] second = run(seed, new PowerLossTotals(), null);
        assertEquals(first[0], second[0], "what the store did");
        assertEquals(first[1], second[1], "digest of what the drive was asked and answered");
    }

    /** Control: a drive that does not flush, though it says so, loses durable blocks; the checks must say that. */
    @Test
    void noticesADriveThatLies() {
        assertNoticed("blocks are lost", faults -> faults.lyingFlush(1));
    }

    /** Control: a recovery that takes a power loss for a kill checks no payloads; the checks must find wrong blocks. */
    @Test
    void noticesARecoveryThatChecksNoPayloads() {
        assertNoticed("are restored", faults -> faults.bootIdStays(true));
    }

    private static void assertNoticed(String how, Consumer<Faults> sabotage) {
        StringBuilder seen = new StringBuilder();
        int noticed = 0;
        long seed = 0;
        while (noticed < NOTICED_MIN && seed++ < CONTROL_SEEDS_MAX) {
            try {
                run(seed, new PowerLossTotals(), sabotage);
            } catch (AssertionError | RuntimeException e) {
                String said = String.valueOf(e.getMessage());
                seen.append("\n  seed ").append(seed).append(": ").append(said, 0, Math.min(said.length(), SAID_MAX));
                noticed += said.contains(how) ? 1 : 0;
            }
        }
        System.out.println("sabotage noticed in " + noticed + " of " + seed + " runs:" + seen);
        assertTrue(noticed >= NOTICED_MIN, "the sabotage was hardly noticed");
    }

    private static String[] run(long seed, PowerLossTotals totals, Consumer<Faults> sabotage) {
        Path catalogFolder = catalogFolder();
        try (PowerLossRun run = new PowerLossRun(seed, catalogFolder, totals, sabotage != null)) {
            if (sabotage != null) {
                sabotage.accept(run.folder().faults());
            }
            try {
                run.run();
            } catch (AssertionError | RuntimeException e) {
                AssertionError named = new AssertionError(
                        e.getMessage() + "\n" + Seed.replay(PowerLossTest.class, seed) + "\nevents:\n"
                                + run.lastEvents() + run.folder().history(),
                        e);
                throw named;
            }
            return new String[] {run.events(), run.folder().history().digest()};
        } finally {
            TestFolders.remove(catalogFolder);
        }
    }

    /** In memory where the machine has such a file system: the catalog's commits are trusted here, and their fsync is slow. */
    private static Path catalogFolder() {
        Path memory = Path.of("/dev/shm");
        try {
            return Files.isWritable(memory)
                    ? Files.createTempDirectory(memory, "orbitkv-power-loss-")
                    : Files.createTempDirectory("orbitkv-power-loss-");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @AfterAll
    static void hasTested() {
        System.out.println("PowerLossTest: " + TOTALS);
        if (Seed.isGiven() || SEEDS < 200 || TOTALS.powerLosses == 0) {
            return;
        }
        for (CrashWindow window : CrashWindow.values()) {
            assertTrue(TOTALS.diedIn.getOrDefault(window, 0) > 0, () -> "no machine died in " + window);
        }
        for (OpeningKind kind : OpeningKind.values()) {
            assertTrue(TOTALS.openings.getOrDefault(kind, 0) > 0, () -> "no opening was of kind " + kind);
        }
        assertTrue(TOTALS.foldersLost > 0, "no folder was lost");
        assertTrue(TOTALS.movedBlocks > 200, "hardly a used block was moved before its segment was given up");
        assertTrue(TOTALS.diedOpening > 0, "no machine died while a store was opening");
    }
}
