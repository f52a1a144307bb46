package io.orbitkv.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * Goal: every JMH benchmark runs, and match, publish, save and restore allocate nothing. Method: one short iteration each,
 * in this process, on small data, with the allocation profiler; the store's ResourceTest counts the allocations of single
 * calls. The figures of this test are no measurements: {@code -Dorbitkv.jmh=StoreBenchmark} takes some, of the classes
 * whose names match, in processes of their own.
 */
class JmhSmokeTest {
    /** The smallest object has 16 bytes: an operation that allocated one would be seen. */
    private static final double ALLOCATED_BYTES_MAX = 8;

    /** The profiler counts the whole process: what JMH itself and the store's upkeep allocate in an iteration. */
    private static final double ALLOCATED_BESIDE_BYTES_MAX = 64 << 10;

    private static final Set<String> FREE_OF_ALLOCATION = Set.of(
            "matchFromAnyBlock", "missAtTheFirstBlock", "publishBlocks", "save", "restoreFromHost", "restoreFromNvme");

    @Test
    @EnabledIfSystemProperty(named = "orbitkv.jmh", matches = ".+")
    void measurementOnDemand() throws RunnerException {
        new Runner(new OptionsBuilder()
                        .include(System.getProperty("orbitkv.jmh"))
                        .forks(1)
                        .addProfiler(GCProfiler.class)
                        .shouldFailOnError(true)
                        .build())
                .run();
    }

    @Test
    void everyBenchmarkRunsAndHotPathsAllocateNothing() throws RunnerException {
        Collection<RunResult> results = new Runner(new OptionsBuilder()
                        .include("io\\.orbitkv\\.bench\\..*Benchmark\\..*")
                        .param("blocks", "20000")
                        .param("matchBlocks", "64")
                        .param("blockBytes", "4096")
                        .mode(Mode.AverageTime) // sampling allocates
                        .forks(0)
                        .warmupIterations(1)
                        .warmupTime(TimeValue.milliseconds(100))
                        .measurementIterations(1)
                        .measurementTime(TimeValue.milliseconds(200))
                        .addProfiler(GCProfiler.class)
                        .shouldFailOnError(true)
                        .verbosity(VerboseMode.SILENT)
                        .build())
                .run();
        Set<String> ran = results.stream().map(result -> name(result)).collect(Collectors.toSet());
        assertTrue(ran.containsAll(FREE_OF_ALLOCATION), "benchmarks that ran: " + ran);
        assertEquals(14, ran.size(), "benchmarks that ran: " + ran);
        List<String> allocating = results.stream()
                .filter(result -> FREE_OF_ALLOCATION.contains(name(result)))
                .filter(result -> allocated(result)
                        >= ALLOCATED_BYTES_MAX + ALLOCATED_BESIDE_BYTES_MAX / Math.max(1, operations(result)))
                .map(result -> name(result) + ": " + allocated(result) + " B/op")
                .toList();
        assertEquals(List.of(), allocating);
    }

    private static String name(RunResult result) {
        String benchmark = result.getParams().getBenchmark();
        return benchmark.substring(benchmark.lastIndexOf('.') + 1);
    }

    private static long operations(RunResult result) {
        return result.getBenchmarkResults().stream()
                .mapToLong(part -> part.getMetadata().getMeasurementOps())
                .sum();
    }

    private static double allocated(RunResult result) {
        for (String metric : result.getSecondaryResults().keySet()) {
            if (metric.endsWith("gc.alloc.rate.norm")) {
                return result.getSecondaryResults().get(metric).getScore();
            }
        }
        throw new AssertionError("no allocation was reported for " + name(result));
    }
}
