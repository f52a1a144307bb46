package io.orbitkv.suite;

import io.orbitkv.kit.TestFolders;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * How one case of the simulation ended.
 *
 * @param of what was run
 * @param failure what went wrong, or null
 * @param events what the store did
 * @param digest of what the drive was asked and answered
 * @param history the last of that, in words
 * @param totals what happened
 */
record SeedOutcome(
        SimulationCase of, Throwable failure, String events, String digest, String history, SimulationTotals totals) {
    private static final int SHOWN = 4096;

    /** Makes something wrong on purpose before a run begins. */
    interface Sabotage {
        void of(SimulationRun run);
    }

    static SeedOutcome run(SimulationCase of) {
        return run(of, null);
    }

    /** Runs a case; whatever comes of it comes back. */
    static SeedOutcome run(SimulationCase of, Sabotage sabotage) {
        Path catalogs = catalogFolder();
        SimulationTotals totals = new SimulationTotals();
        SimulationRun run = new SimulationRun(of, catalogs, totals, sabotage != null);
        Throwable failure = null;
        try {
            if (sabotage != null) {
                sabotage.of(run);
            }
            run.run();
        } catch (AssertionError | RuntimeException e) {
            failure = e;
            totals.failed(e);
        } finally {
            close(run);
            TestFolders.remove(catalogs);
        }
        String history = failure == null ? "" : run.folder().history().toString();
        return new SeedOutcome(of, failure, run.events(), run.folder().history().digest(), history, totals);
    }

    /** A store whose threads of control were torn out may not close: that is part of its failure. */
    private static void close(SimulationRun run) {
        try {
            run.close();
        } catch (RuntimeException e) {
            System.err.println("the run left something open: " + e);
        }
    }

    boolean isGood() {
        return failure == null;
    }

    /** Whether another outcome shows the same fault of the store: the same kind of failure, from the same place. */
    boolean isLike(SeedOutcome other) {
        return other.failure != null
                && failure.getClass() == other.failure.getClass()
                && Violation.kindOf(failure) == Violation.kindOf(other.failure);
    }

    String message() {
        return failure.getClass().getSimpleName() + ": " + failure.getMessage();
    }

    /** What happened last, for people. */
    String lastEvents() {
        return events.substring(Math.max(0, events.length() - SHOWN)) + history;
    }

    /** In memory where the machine has such a file system: the catalog's commits are trusted here, and their fsync is slow. */
    private static Path catalogFolder() {
        Path memory = Path.of("/dev/shm");
        try {
            return Files.isWritable(memory)
                    ? Files.createTempDirectory(memory, "orbitkv-simulation-")
                    : Files.createTempDirectory("orbitkv-simulation-");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
