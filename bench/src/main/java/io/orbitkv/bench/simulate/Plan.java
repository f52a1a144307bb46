package io.orbitkv.bench.simulate;

import io.orbitkv.tiers.AdmissionPolicy;
import io.orbitkv.tiers.EvictionPolicy;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntFunction;

/**
 * Which sizes of host memory and drive are worth their money on a trace: a grid of both, each cell simulated from empty
 * tiers, and the cells at which no cheaper one saves as much.
 *
 * <p>The recommendation is the cheapest of those from which no step to a dearer one is worth it: a step is, if it saves
 * at least so many points of compute for each doubling of the money. So a flat stretch before a steep one is crossed, and
 * the flat end is not.
 *
 * <p>Immutable.
 */
public final class Plan {
    private static final int SEGMENT_BLOCKS = 8;

    /** Below it nothing is gained: two runs of one machine differ by more. */
    private static final double SAVED_STEP_MIN = 1e-9;

    private final Grid grid;
    private final List<Cell> cells;
    private final List<Cell> frontier;
    private final Cell recommended;
    private final Step nextStep;

    /**
     * Sizes to look at.
     *
     * @param poolBlocks blocks of host memory, growing, each at least 16
     * @param driveBlocks blocks of the drive, growing; 0 for none
     * @param blockBytes bytes of a block
     * @param poolPrice of a GiB of host memory, in any currency
     * @param drivePrice of a GiB of the drive
     * @param pointsPerDoubling points of compute, of 100, that a doubling of the money has to save
     */
    public record Grid(
            long[] poolBlocks,
            long[] driveBlocks,
            long blockBytes,
            double poolPrice,
            double drivePrice,
            double pointsPerDoubling) {
        /**
         * How many cells it has.
         *
         * @return pools times drives
         */
        public int cells() {
            return poolBlocks.length * driveBlocks.length;
        }

        private double price(long poolCount, long driveCount) {
            return gib(poolCount) * poolPrice + gib(driveCount) * drivePrice;
        }

        /**
         * What so many blocks take.
         *
         * @param blocks how many
         * @return GiB
         */
        public double gib(long blocks) {
            return (double) blocks * blockBytes / (1L << 30);
        }
    }

    /**
     * One pair of sizes.
     *
     * @param pool which pool of the grid
     * @param drive which drive of the grid
     * @param price of both
     * @param result what they save
     * @param poolGain points of compute, of 100, that each GiB from the next smaller pool on saves; NaN for the smallest
     * @param driveGain the same for the drive
     */
    public record Cell(int pool, int drive, double price, SimResult result, double poolGain, double driveGain) {
        /**
         * What the sizes save.
         *
         * @return share of the trace's compute, 0 to 1
         */
        public double saved() {
            return result.computeSaved();
        }
    }

    /**
     * A step that is not worth it, the best of its kind.
     *
     * @param to where it leads
     * @param points points of compute, of 100, that it saves
     * @param pointsPerDoubling the same for each doubling of the money
     */
    public record Step(Cell to, double points, double pointsPerDoubling) {}

    private Plan(Grid grid, List<Cell> cells) {
        this.grid = grid;
        this.cells = List.copyOf(cells);
        frontier = frontierOf(cells);
        Cell chosen = null;
        Step next = null;
        for (int i = 0; i < frontier.size() && chosen == null; i++) {
            next = bestStep(frontier, i);
            if (next == null || next.pointsPerDoubling < grid.pointsPerDoubling) {
                chosen = frontier.get(i);
            }
        }
        recommended = chosen;
        nextStep = next;
    }

    /**
     * What to run for one cell.
     *
     * @param trace whose keys
     * @param grid the sizes
     * @param cell number of the cell, pool by pool
     * @param admission what is written to the drive
     * @param price what a written block costs in the duel
     * @return what came out
     */
    public static SimResult simulate(KeyTrace trace, Grid grid, int cell, AdmissionPolicy admission, double price) {
        long pool = grid.poolBlocks[cell / grid.driveBlocks.length];
        long drive = grid.driveBlocks[cell % grid.driveBlocks.length];
        StoreShape store = new StoreShape(
                shape(trace, pool),
                shape(trace, drive),
                EvictionPolicy.SECOND_CHANCE,
                EvictionPolicy.SECOND_CHANCE,
                admission,
                price,
                0);
        return new TwoTiers(trace, store).run("plan");
    }

    private static SegmentShape shape(KeyTrace trace, long blocks) {
        return SegmentShape.simple(Math.min(blocks, trace.uniqueBlocks() + 2L * SEGMENT_BLOCKS), SEGMENT_BLOCKS);
    }

    /**
     * Makes a plan of what was simulated.
     *
     * @param grid the sizes
     * @param results what came out for each cell
     * @return the plan
     */
    public static Plan of(Grid grid, IntFunction<SimResult> results) {
        List<Cell> cells = new ArrayList<>();
        int drives = grid.driveBlocks.length;
        for (int i = 0; i < grid.cells(); i++) {
            int pool = i / drives;
            int drive = i % drives;
            SimResult result = results.apply(i);
            double poolGain = pool == 0
                    ? Double.NaN
                    : gain(results.apply(i - drives), result, grid.poolBlocks[pool] - grid.poolBlocks[pool - 1], grid);
            double driveGain = drive == 0
                    ? Double.NaN
                    : gain(results.apply(i - 1), result, grid.driveBlocks[drive] - grid.driveBlocks[drive - 1], grid);
            double price = grid.price(grid.poolBlocks[pool], grid.driveBlocks[drive]);
            cells.add(new Cell(pool, drive, price, result, poolGain, driveGain));
        }
        return new Plan(grid, cells);
    }

    private static double gain(SimResult smaller, SimResult larger, long blocks, Grid grid) {
        return 100 * (larger.computeSaved() - smaller.computeSaved()) / grid.gib(blocks);
    }

    private static List<Cell> frontierOf(List<Cell> cells) {
        List<Cell> byPrice = new ArrayList<>(cells);
        byPrice.sort(Comparator.comparingDouble(Cell::price)
                .thenComparing(Comparator.comparingDouble(Cell::saved).reversed()));
        List<Cell> best = new ArrayList<>();
        for (Cell cell : byPrice) {
            if (best.isEmpty() || cell.saved() > best.get(best.size() - 1).saved() + SAVED_STEP_MIN) {
                best.add(cell);
            }
        }
        return best;
    }

    /** The step to a dearer cell that saves most for each doubling of the money, or null behind the last. */
    private static Step bestStep(List<Cell> frontier, int from) {
        Step best = null;
        Cell here = frontier.get(from);
        for (Cell there : frontier.subList(from + 1, frontier.size())) {
            double doublings = Math.log(there.price / here.price) / Math.log(2);
            double points = 100 * (there.saved() - here.saved());
            double rate = doublings > 0 ? points / doublings : Double.POSITIVE_INFINITY;
            if (best == null || rate > best.pointsPerDoubling) {
                best = new Step(there, points, rate);
            }
        }
        return best;
    }

    /**
     * The sizes that were looked at.
     *
     * @return the grid
     */
    public Grid grid() {
        return grid;
    }

    /**
     * All cells, pool by pool.
     *
     * @return as many as the grid has
     */
    public List<Cell> cells() {
        return cells;
    }

    /**
     * The cells at which no cheaper one saves as much, from the cheapest on.
     *
     * @return at least one
     */
    public List<Cell> frontier() {
        return frontier;
    }

    /**
     * The sizes to buy.
     *
     * @return a cell of the frontier
     */
    public Cell recommended() {
        return recommended;
    }

    /**
     * The best step from there, which is not worth it.
     *
     * @return a step, or null if there is nothing dearer that saves more
     */
    public Step nextStep() {
        return nextStep;
    }
}
