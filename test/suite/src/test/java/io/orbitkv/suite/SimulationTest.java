package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Fault;
import io.orbitkv.kit.Seed;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.recovery.OpeningKind;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: whenever the machine dies, a reopened store answers each key with the bytes that were saved or with a miss; what
 * was acknowledged as durable survives a power loss and what was acknowledged as written a kill, unless its segment was
 * put to use again; what was cleared stays cleared; every page is accounted for. On a drive that answers errors, lies or
 * rots, bytes are still never wrong, and a block is lost only where the drive has harmed it, and counted.
 *
 * <p>Method: the production store, stepped on one thread over a simulated drive that reorders, tears and drops what was
 * not flushed, and whose further faults each seed draws; it dies at seeded operations, also while it opens, stops, seals,
 * reuses segments and makes its folder; everything is compared with a model. A run is a function of its seed;
 * {@code test/seeds} runs any of them, and replays one. {@code -Dorbitkv.seeds=N} runs more here,
 * {@code -Dorbitkv.randomSeconds=N} sets how long seeds of chance run, {@code -Dorbitkv.seed=N} replays one. The catalog's
 * file is a real one and its commits are trusted to be atomic and durable, as LMDB promises; the simulated machine dies
 * before or after a commit, never within.
 *
 * <p>Two controls sabotage the drive and the recovery, and the same checks must notice; {@code test/sabotage} sabotages the
 * store itself.
 */
class SimulationTest {
    private static final int SEEDS = Integer.getInteger("orbitkv.seeds", 300);
    private static final int SEEDS_COUNTED = 300;
    private static final int RANDOM_SECONDS = Integer.getInteger("orbitkv.randomSeconds", 60);
    private static final int CONTROL_SEEDS_MAX = 80;
    private static final int NOTICED_MIN = 3;
    private static final int SAID_MAX = 80;
    private static final int THREADS =
            Math.max(1, Math.min(4, Runtime.getRuntime().availableProcessors()));

    @Test
    void keepsItsPromises() {
        if (Seed.isGiven()) {
            requireGood(SeedOutcome.run(SimulationCase.of(Seed.of(SimulationTest.class))));
            return;
        }
        SeedRunner runner = SeedRunner.ofRange(1, SEEDS, 1).run(THREADS);
        System.out.println("SimulationTest: " + runner.done() + " seeds: " + runner.totals());
        runner.failures().forEach(SimulationTest::requireGood);
        if (SEEDS >= SEEDS_COUNTED) {
            requireTested(runner.totals());
        }
    }

    /** Seeds that nobody has chosen: each build looks where none has looked before. */
    @Test
    void keepsItsPromisesUnderSeedsOfChance() {
        if (Seed.isGiven() || RANDOM_SECONDS == 0) {
            return;
        }
        long from = Seed.of(SimulationTest.class);
        SeedRunner runner = SeedRunner.ofTime(from, TimeUnit.SECONDS.toNanos(RANDOM_SECONDS))
                .run(THREADS);
        System.out.println("SimulationTest: " + runner.done() + " seeds of chance from " + from);
        runner.failures().forEach(SimulationTest::requireGood);
        assertTrue(runner.done() > 0, "no seed has run");
    }

    private static void requireTested(SimulationTotals totals) {
        for (CrashWindow window : CrashWindow.values()) {
            assertTrue(totals.diedIn(window) > 0, () -> "no machine died in " + window);
        }
        for (OpeningKind kind : OpeningKind.values()) {
            assertTrue(totals.openings.getOrDefault(kind, 0L) > 0, () -> "no opening was of kind " + kind);
        }
        for (Fault fault : Fault.values()) {
            assertTrue(totals.faults.getOrDefault(fault, 0L) > 0, () -> "never happened: " + fault);
        }
        assertTrue(totals.movedBlocks > 200, "hardly a used block was moved before its segment was given up");
        assertTrue(totals.diedOpening > 0, "no machine died while a store was opening");
        assertTrue(totals.corruptBlocks > 0, "no harmed block was found");
    }

    /**
     * Segments that the store had given up, with their blocks, when it stopped cleanly, and whose old headers still stood: the
     * clean stop forgets the blocks, where a death would have brought them back.
     */
    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {24, 235, 417, 532, 200_179, 200_730})
    void givesUpSegmentsThatItNeedsNoMoreBeforeItStops(long seed) {
        requireGoodOnGoodDrive(seed);
    }

    /** A kill tears the header of a segment that then stays free: the next clean stop must still count as one. */
    @Test
    void stopsCleanlyBesideAFreeSegmentWithATornHeader() {
        requireGoodOnGoodDrive(104);
    }

    /** A death when the first of two new folders is made to its end and the second is not: none of them is lost. */
    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {124, 240, 588, 736})
    void diesBetweenTheEndsOfTwoNewFolders(long seed) {
        requireGoodOnGoodDrive(seed);
    }

    /** Power is lost in the making of a folder, and again while what the first loss left of it is removed. */
    @Test
    void losesPowerTwiceWhileItMakesItsFolders() {
        requireGoodOnGoodDrive(202_196);
    }

    /** A durable block goes with its segment, is saved again, and power is lost before that is durable. */
    @Test
    void losesPowerBeforeABlockThatWasSavedAgainIsDurable() {
        requireGoodOnGoodDrive(101_522);
    }

    /** The machine dies while an opening waits for its smaller cap: the agents are stopped before their memory goes. */
    @Test
    void diesWhileAnOpeningShrinks() {
        requireGood(SeedOutcome.run(SimulationCase.of(1_057)));
    }

    /** A kill right behind the opening after a power loss, which brought headers of ended uses back. */
    @Test
    void isKilledBeforeThePromisesOfALossAreChecked() {
        requireGood(SeedOutcome.run(SimulationCase.of(1_887)));
    }

    /** Power is lost while a lost folder is made anew, in an opening with a larger cap that nobody has heard of yet. */
    @Test
    void losesPowerInTheMakingOfALostFolderUnderALargerCap() {
        requireGood(SeedOutcome.run(SimulationCase.of(2_456)));
    }

    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {3, 17, 91, 140, 199})
    void sameSeedGivesTheSameHistory(long seed) {
        SeedOutcome first = SeedOutcome.run(SimulationCase.of(seed));
        SeedOutcome second = SeedOutcome.run(SimulationCase.of(seed));
        assertEquals(first.events(), second.events(), "what the store did");
        assertEquals(first.digest(), second.digest(), "what the drive was asked and answered");
    }

    /** Control: a drive that does not flush, though it says so, loses durable blocks; the checks must say that. */
    @Test
    void noticesADriveThatLies() {
        assertNoticed("blocks are lost", run -> run.folder().faults().flushesNothing(true));
    }

    /** Control: a recovery that takes a power loss for a kill checks no payloads; the checks must find wrong blocks. */
    @Test
    void noticesARecoveryThatChecksNoPayloads() {
        assertNoticed("at rest found", run -> run.folder().faults().bootIdStays(true));
    }

    /** A failing case becomes smaller, fails alike, and its command names what is left. */
    @Test
    void aFailingCaseIsMadeSmall() {
        SeedOutcome.Sabotage noFlush = run -> run.folder().faults().flushesNothing(true);
        for (long seed = 1; seed <= CONTROL_SEEDS_MAX; seed++) {
            SeedOutcome failed = SeedOutcome.run(SimulationCase.ofContract(seed), noFlush);
            if (!failed.isGood()) {
                SeedOutcome small = Shrinker.shrink(failed, noFlush);
                assertFalse(small.isGood());
                assertEquals(Violation.kindOf(failed.failure()), Violation.kindOf(small.failure()));
                assertTrue(small.of().faults().size() < failed.of().faults().size(), small.of()::command);
                assertTrue(small.of().command().contains("--operations"), small.of()::command);
                return;
            }
        }
        assertTrue(false, "no seed has failed");
    }

    private static void assertNoticed(String how, SeedOutcome.Sabotage sabotage) {
        StringBuilder seen = new StringBuilder();
        int noticed = 0;
        long seed = 0;
        while (noticed < NOTICED_MIN && seed++ < CONTROL_SEEDS_MAX) {
            SeedOutcome outcome = SeedOutcome.run(SimulationCase.ofContract(seed), sabotage);
            if (!outcome.isGood()) {
                String said = outcome.message();
                seen.append("\n  seed ").append(seed).append(": ").append(said, 0, Math.min(said.length(), SAID_MAX));
                noticed += said.contains(how) ? 1 : 0;
            }
        }
        System.out.println("sabotage noticed in " + noticed + " of " + seed + " runs:" + seen);
        assertTrue(noticed >= NOTICED_MIN, "the sabotage was hardly noticed");
    }

    private static void requireGoodOnGoodDrive(long seed) {
        requireGood(SeedOutcome.run(SimulationCase.ofContract(seed)));
    }

    private static void requireGood(SeedOutcome outcome) {
        if (!outcome.isGood()) {
            SeedOutcome small = Shrinker.shrink(outcome);
            throw new AssertionError(
                    small.message() + "\nreplay: " + small.of().command() + "\nwhole: "
                            + outcome.of().command() + "\nevents:\n" + small.lastEvents(),
                    small.failure());
        }
    }
}
