package io.orbitkv.bench.simulate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.orbitkv.bench.trace.TraceFormat;
import io.orbitkv.bench.trace.TraceReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

/**
 * Goal: on the published conversation trace of 12,031 requests the simulator finds what an independent one found.
 * Method: the figures of that study (percent) at 1, 5, 10 and 20 % of the unique blocks, within 0.3 points, the duel
 * within 1.0. The trace is not part of this project: name it with {@code -Dorbitkv.trace=FILE} or in the environment
 * variable {@code ORBITKV_TRACE}; without it the test is skipped.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class PolicyFiguresTest {
    private static final String PROPERTY = "orbitkv.trace";
    private static final String VARIABLE = "ORBITKV_TRACE";
    private static final double[] SHARES = {0.01, 0.05, 0.1, 0.2};
    private static final double POINTS = 0.3;
    private static final double DUEL_POINTS = 1.0;
    private static final double ROUNDING = 0.0501;

    private KeyTrace trace;
    private Simulator simulator;

    @BeforeAll
    void read() {
        String file = System.getProperty(PROPERTY, System.getenv(VARIABLE));
        assumeTrue(
                file != null,
                "skipped: no trace; name the conversation trace with -D" + PROPERTY + "=FILE or " + VARIABLE + "=FILE");
        Path path = Path.of(file);
        assertTrue(Files.isReadable(path), "there is no trace " + path);
        try (TraceReader reader = TraceReader.open(path, TraceFormat.MOONCAKE, 512, Long.MAX_VALUE)) {
            trace = KeyTrace.read(reader, 512, requests -> {});
        }
        assumeTrue(trace.requests() == 12_031, "skipped: " + path + " is another trace");
        simulator = new Simulator(trace, 0.1, 0.1);
    }

    @Test
    void traceIsTheOneOfTheStudy() {
        assertEquals(288_500, trace.blocks());
        assertEquals(182_790, trace.uniqueBlocks());
        SimResult endless = simulator.run(SimPolicy.LRU, trace.uniqueBlocks());
        assertEquals(36.64, 100 * endless.hitRate(), 0.005);
        assertEquals(35.5, 100 * endless.computeSaved(), ROUNDING);
    }

    @Test
    void computeSavedIsThatOfTheStudy() {
        Figures figures = new Figures("compute saved");
        figures.saved(SimPolicy.BELADY, POINTS, 22.9, 35.5, 35.5, 35.5);
        figures.saved(SimPolicy.FIFO, POINTS, 3.6, 16.0, 23.2, 29.8);
        figures.saved(SimPolicy.LRU, POINTS, 3.8, 18.0, 26.1, 33.0);
        figures.saved(SimPolicy.LRU_TAIL_FIRST, POINTS, 3.8, 18.0, 26.1, 33.2);
        figures.saved(SimPolicy.CLOCK, POINTS, 3.8, 18.6, 26.5, 32.7);
        figures.saved(SimPolicy.SECOND_CHANCE_8, POINTS, 3.8, 18.3, 26.2, 32.4);
        figures.saved(SimPolicy.SECOND_CHANCE_32, POINTS, 3.8, 18.3, 26.1, 32.3);
        figures.saved(SimPolicy.SEGMENT_LRU_8, POINTS, 3.8, 17.6, 25.5, 32.4);
        figures.saved(SimPolicy.SEGMENT_LRU_32, POINTS, 3.7, 16.3, 24.1, 30.6);
        figures.saved(SimPolicy.TWO_TIERS_ALL, POINTS, 3.8, 18.3, 26.2, 32.4);
        figures.saved(SimPolicy.TWO_TIERS_REUSE, POINTS, 8.8, 18.5, 20.4, 21.6);
        figures.saved(SimPolicy.TWO_TIERS_DUEL, DUEL_POINTS, 8.8, 18.6, 25.3, 31.5);
        figures.check();
    }

    @Test
    void hitRatesAreThoseOfTheStudy() {
        Figures figures = new Figures("block hit rate");
        figures.hits(SimPolicy.BELADY, POINTS, 24.6, 36.6, 36.6, 36.6);
        figures.hits(SimPolicy.FIFO, POINTS, 5.1, 17.5, 24.8, 31.3);
        figures.hits(SimPolicy.LRU_TAIL_FIRST, POINTS, 5.2, 19.6, 27.9, 34.5);
        figures.hits(SimPolicy.CLOCK, POINTS, 5.3, 20.2, 28.2, 34.1);
        figures.hits(SimPolicy.TWO_TIERS_ALL, POINTS, 5.3, 20.0, 28.0, 33.9);
        figures.hits(SimPolicy.TWO_TIERS_DUEL, DUEL_POINTS, 10.6, 20.1, 26.8, 33.1);
        figures.check();
    }

    @Test
    void twoTiersWriteWhatTheyWroteInTheStudy() {
        double[] hostHits = {4.2, 4.4, 5.3, 8.0};
        long[] written = {273_263, 230_615, 207_391, 190_587};
        long[] again = {437, 3818, 4719, 4329};
        for (int i = 0; i < SHARES.length; i++) {
            SimResult result = simulator.run(SimPolicy.TWO_TIERS_ALL, (long) (SHARES[i] * trace.uniqueBlocks()));
            assertEquals(hostHits[i], 100 * result.hostHitRate(), ROUNDING);
            assertEquals(written[i], result.writtenBlocks(), 0.001 * written[i]);
            assertEquals(again[i], result.writtenAgainBlocks(), 0.1 * again[i]);
        }
    }

    /** Figures of several policies, checked together, so that a failure shows them all. */
    private final class Figures {
        private final String what;
        private final List<String> wrong = new ArrayList<>();

        Figures(String what) {
            this.what = what;
        }

        void saved(SimPolicy policy, double points, double... expected) {
            for (int i = 0; i < SHARES.length; i++) {
                compare(policy, i, points, expected[i], 100 * run(policy, i).computeSaved());
            }
        }

        void hits(SimPolicy policy, double points, double... expected) {
            for (int i = 0; i < SHARES.length; i++) {
                compare(policy, i, points, expected[i], 100 * run(policy, i).hitRate());
            }
        }

        private SimResult run(SimPolicy policy, int i) {
            return simulator.run(policy, (long) (SHARES[i] * trace.uniqueBlocks()));
        }

        private void compare(SimPolicy policy, int i, double points, double expected, double actual) {
            if (!(Math.abs(expected - actual) <= points)) {
                wrong.add(String.format(
                        Locale.ROOT, "%s at %.0f %%: %.2f, not %.1f", policy, 100 * SHARES[i], actual, expected));
            }
        }

        void check() {
            assertEquals(List.of(), wrong, what);
        }
    }
}
