package io.orbitkv.bench.simulate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.tiers.AdmissionPolicy;
import org.junit.jupiter.api.Test;

/**
 * Goal: a plan recommends the cheapest sizes from which no dearer ones are worth their money.
 * Method: savings made up for grids of one pool and several drives, and a grid of generated chats.
 */
class PlanTest {
    private static final long GIB = 1L << 30;

    /** Each block is a GiB; the pool costs next to nothing. */
    private static Plan plan(double pointsPerDoubling, double... saved) {
        long[] drives = new long[saved.length];
        for (int i = 0; i < drives.length; i++) {
            drives[i] = 100L << i;
        }
        Plan.Grid grid = new Plan.Grid(new long[] {16}, drives, GIB, 1e-9, 1, pointsPerDoubling);
        return Plan.of(grid, i -> saves(saved[i]));
    }

    private static SimResult saves(double percent) {
        return new SimResult("test", 16, 100, 1, 100, 100, 0, 0, 0, percent / 100, 0, 0, 0);
    }

    @Test
    void stopsWhereADoublingSavesTooLittle() {
        Plan plan = plan(2, 10, 15, 18, 19, 19.5);
        assertEquals(2, plan.recommended().drive());
        assertEquals(3, plan.nextStep().to().drive());
        assertEquals(1, plan.nextStep().points(), 1e-6);
        assertEquals(1, plan.nextStep().pointsPerDoubling(), 1e-6);
    }

    @Test
    void crossesAFlatStretchBeforeASteepOne() {
        Plan plan = plan(2, 1, 1.1, 12, 13);
        assertEquals(2, plan.recommended().drive());
    }

    @Test
    void leavesOutWhatACheaperOneSavesAsWell() {
        Plan plan = plan(2, 5, 4, 5, 30);
        assertEquals(2, plan.frontier().size());
        assertEquals(3, plan.recommended().drive());
        assertNull(plan.nextStep(), "nothing dearer saves more");
    }

    @Test
    void gainIsPerGibOfTheLastStep() {
        Plan plan = plan(2, 10, 15);
        assertTrue(Double.isNaN(plan.cells().get(0).driveGain()));
        assertEquals(0.05, plan.cells().get(1).driveGain(), 1e-9, "5 points for 100 GiB");
        assertEquals(200, plan.cells().get(1).price(), 1e-6);
    }

    @Test
    void cellsAreStoresOfTheirSizes() {
        KeyTrace trace = GeneratedTrace.keys(GeneratedTrace.of(15, 80));
        Plan.Grid grid = new Plan.Grid(new long[] {16, 64}, new long[] {0, 32, 1_000_000}, GIB, 4, 0.1, 2);
        Simulator simulator = new Simulator(trace, 0.5, 0.1);
        SimResult same = Plan.simulate(trace, grid, 1, AdmissionPolicy.ALL, 0.1);
        SimResult expected = simulator.run(SimPolicy.TWO_TIERS_ALL, 32);
        assertEquals(expected.hostHits(), same.hostHits());
        assertEquals(expected.nvmeHits(), same.nvmeHits());
        SimResult poolOnly = Plan.simulate(trace, grid, 3, AdmissionPolicy.ALL, 0.1);
        assertEquals(0, poolOnly.nvmeHits());
        assertEquals(simulator.run(SimPolicy.SECOND_CHANCE_8, 64).hitRate(), poolOnly.hitRate());
        SimResult everything = Plan.simulate(trace, grid, 5, AdmissionPolicy.ALL, 0.1);
        assertEquals(simulator.run(SimPolicy.LRU, trace.uniqueBlocks()).hitRate(), everything.hitRate());
    }
}
