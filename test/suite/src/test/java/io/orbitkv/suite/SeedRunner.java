package io.orbitkv.suite;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/** Runs many seeds of the simulation, on as many threads as there are cores; each run is one thread's. */
final class SeedRunner {
    /** Failures that are kept: more than these say nothing new. */
    static final int FAILURES_MAX = 8;

    /** What to run next: a seed, or {@link #END}. Called from several threads. */
    private final LongSupplier seeds;

    static final long END = Long.MIN_VALUE;

    private final int failuresMax;
    private final List<SeedOutcome> failures = new ArrayList<>();
    private final SimulationTotals totals = new SimulationTotals();
    private final AtomicLong done = new AtomicLong();

    /** What ended a thread though no case failed: the harness is broken, or out of memory. */
    private IllegalStateException broken;

    private SeedRunner(LongSupplier seeds, int failuresMax) {
        this.seeds = seeds;
        this.failuresMax = failuresMax;
    }

    /** Runs the seeds {@code first} to {@code first + count - 1}. */
    static SeedRunner ofRange(long first, long count, int failuresMax) {
        AtomicLong next = new AtomicLong(first);
        return new SeedRunner(
                () -> {
                    long seed = next.getAndIncrement();
                    return seed < first + count ? seed : END;
                },
                failuresMax);
    }

    /** Runs seeds that follow from one, for so long. */
    static SeedRunner ofTime(long from, long nanos) {
        long start = System.nanoTime();
        AtomicLong next = new AtomicLong(from);
        return new SeedRunner(() -> System.nanoTime() - start < nanos ? next.getAndIncrement() : END, FAILURES_MAX);
    }

    /**
     * Runs until the seeds or the failures that are wanted have come to an end.
     *
     * @throws IllegalStateException when a thread ended before its seeds did
     */
    SeedRunner run(int threads) {
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Thread worker = new Thread(this::work, "seeds-" + i);
            worker.setDaemon(true);
            worker.start();
            workers.add(worker);
        }
        for (Thread worker : workers) {
            join(worker);
        }
        requireWhole();
        return this;
    }

    private static void join(Thread worker) {
        try {
            worker.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while seeds run", e);
        }
    }

    private void work() {
        while (failures().size() < failuresMax) {
            long seed = seeds.getAsLong();
            if (seed == END) {
                return;
            }
            try {
                take(SeedOutcome.run(SimulationCase.of(seed)));
            } catch (Throwable e) { // also a heap that is full: seeds that didn't run must not count as good ones
                breakOff(seed, e);
                return;
            }
        }
    }

    private synchronized void breakOff(long seed, Throwable cause) {
        broken = new IllegalStateException("seed " + seed + " ended its thread after " + done + " seeds", cause);
    }

    private synchronized void requireWhole() {
        if (broken != null) {
            throw broken;
        }
    }

    private synchronized void take(SeedOutcome outcome) {
        totals.add(outcome.totals());
        done.incrementAndGet();
        if (!outcome.isGood()) {
            failures.add(outcome);
        }
    }

    /** Seeds that have run. Any thread. */
    long done() {
        return done.get();
    }

    /** Those that failed, so far. Any thread. */
    synchronized List<SeedOutcome> failures() {
        return List.copyOf(failures);
    }

    /** What happened, so far. Any thread. */
    synchronized SimulationTotals totals() {
        SimulationTotals copy = new SimulationTotals();
        copy.add(totals);
        return copy;
    }
}
