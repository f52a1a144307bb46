package io.orbitkv.bench.simulate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.tiers.AdmissionPolicy;
import io.orbitkv.tiers.EvictionPolicy;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: the simulator's figures are those of the policies as described, to the block.
 * Method: on generated chats, every policy at several capacities, and stores with several lanes and a segment for what is
 * appended again, against an oracle in plain collections.
 */
class SimulatorOracleTest {
    private static final long SEED = Long.getLong("orbitkv.seed", 15);
    private static final int TRACES = 2;
    private static final int REQUESTS = 150;
    private static final int[] CAPACITIES = {16, 17, 65, 130, 300, 5000};
    private static final double PRICE = 0.1;
    private static final double HOST_SHARE = 0.25;

    @ParameterizedTest
    @EnumSource
    void everyPolicyEqualsTheOracle(SimPolicy policy) {
        long hits = 0;
        for (long seed = SEED; seed < SEED + TRACES; seed++) {
            List<GeneratedTrace.Request> trace = GeneratedTrace.of(seed, REQUESTS);
            Oracle oracle = new Oracle(trace, GeneratedTrace.BLOCK_TOKENS);
            Simulator simulator = new Simulator(GeneratedTrace.keys(trace), HOST_SHARE, PRICE);
            for (int capacity : CAPACITIES) {
                SimResult actual = simulator.run(policy, capacity);
                SimResult expected = expected(oracle, policy, capacity);
                String what = policy.label() + " at " + capacity + ", seed " + seed;
                if (expected == null) {
                    assertEquals(null, actual, what);
                    continue;
                }
                assertEqualFigures(expected, actual, what);
                hits += actual.hostHits() + actual.nvmeHits();
            }
        }
        assertTrue(hits > 1000, "too few hits to prove anything: " + hits);
    }

    private static SimResult expected(Oracle oracle, SimPolicy policy, int capacity) {
        return switch (policy) {
            case BELADY -> oracle.belady(capacity);
            case FIFO, LRU, CLOCK -> oracle.oneTier(new NaiveTiers.Blocks(policy.name(), capacity), false);
            case LRU_TAIL_FIRST -> oracle.oneTier(new NaiveTiers.Blocks("LRU", capacity), true);
            case SECOND_CHANCE_8 -> segments(oracle, EvictionPolicy.SECOND_CHANCE, capacity, 8);
            case SECOND_CHANCE_32 -> segments(oracle, EvictionPolicy.SECOND_CHANCE, capacity, 32);
            case SEGMENT_LRU_8 -> segments(oracle, EvictionPolicy.SEGMENT_LRU, capacity, 8);
            case SEGMENT_LRU_32 -> segments(oracle, EvictionPolicy.SEGMENT_LRU, capacity, 32);
            case TWO_TIERS_ALL -> twoTiers(oracle, AdmissionPolicy.ALL, capacity);
            case TWO_TIERS_REUSE -> twoTiers(oracle, AdmissionPolicy.REUSE, capacity);
            case TWO_TIERS_DUEL -> twoTiers(oracle, AdmissionPolicy.DUEL, capacity);
        };
    }

    private static SimResult segments(Oracle oracle, EvictionPolicy order, int capacity, int segmentBlocks) {
        SegmentShape shape = SegmentShape.simple(capacity, segmentBlocks);
        return shape == null ? null : oracle.oneTier(oracle.segments(order, shape), false);
    }

    /** Where host memory is too small for two segments there is none. */
    private static SimResult twoTiers(Oracle oracle, AdmissionPolicy admission, int capacity) {
        SegmentShape host = SegmentShape.simple((long) (capacity * HOST_SHARE), 8);
        SegmentShape nvme = SegmentShape.simple(capacity, 8);
        return oracle.twoTiers(new StoreShape(
                host, nvme, EvictionPolicy.SECOND_CHANCE, EvictionPolicy.SECOND_CHANCE, admission, PRICE, 0));
    }

    @ParameterizedTest
    @EnumSource
    void storesWithLanesEqualTheOracle(AdmissionPolicy admission) {
        for (long seed = SEED; seed < SEED + TRACES; seed++) {
            List<GeneratedTrace.Request> trace = GeneratedTrace.of(seed, REQUESTS);
            Oracle oracle = new Oracle(trace, GeneratedTrace.BLOCK_TOKENS);
            Simulator simulator = new Simulator(GeneratedTrace.keys(trace), HOST_SHARE, PRICE);
            for (EvictionPolicy order : EvictionPolicy.values()) {
                for (int segments : new int[] {6, 11, 40}) {
                    StoreShape shape = new StoreShape(
                            new SegmentShape(6, 5, 4, true, false),
                            new SegmentShape(segments, 7, 4, true, segments == 11),
                            EvictionPolicy.SECOND_CHANCE,
                            order,
                            admission,
                            PRICE,
                            segments == 6 ? 0 : segments);
                    assertEqualFigures(oracle.twoTiers(shape), simulator.run(shape, "store"), shape + ", seed " + seed);
                }
            }
        }
    }

    private static void assertEqualFigures(SimResult expected, SimResult actual, String what) {
        assertEquals(expected.blocks(), actual.blocks(), what);
        assertEquals(expected.uniqueBlocks(), actual.uniqueBlocks(), what);
        assertEquals(expected.hostHits(), actual.hostHits(), what + ": hits in host memory");
        assertEquals(expected.nvmeHits(), actual.nvmeHits(), what + ": hits");
        assertEquals(expected.writtenBlocks(), actual.writtenBlocks(), what + ": written");
        assertEquals(expected.writtenAgainBlocks(), actual.writtenAgainBlocks(), what + ": written again");
        assertEquals(expected.hostSaved(), actual.hostSaved(), 1e-9, what + ": saved by host memory");
        assertEquals(expected.nvmeSaved(), actual.nvmeSaved(), 1e-9, what + ": saved");
        assertEquals(expected.unreachable(), actual.unreachable(), 1e-9, what + ": unreachable");
    }
}
