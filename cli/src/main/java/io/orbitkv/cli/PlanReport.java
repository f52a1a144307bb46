package io.orbitkv.cli;

import io.orbitkv.bench.simulate.KeyTrace;
import io.orbitkv.bench.simulate.Plan;
import io.orbitkv.bench.simulate.Plan.Cell;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/** A plan as tables, a sentence, a plot and JSON. */
final class PlanReport {
    /** Less is rounded to zero, so that no table shows a negative one. */
    private static final double SHOWN_MIN = 5e-5;

    private final TraceOptions trace;
    private final PlanOptions options;
    private final KeyTrace keys;
    private final Plan plan;
    private final Plan.Grid grid;
    private final double elapsedSeconds;

    PlanReport(TraceOptions trace, PlanOptions options, KeyTrace keys, Plan plan, double elapsedSeconds) {
        this.trace = trace;
        this.options = options;
        this.keys = keys;
        this.plan = plan;
        this.grid = plan.grid();
        this.elapsedSeconds = elapsedSeconds;
    }

    void print(PrintStream out) {
        out.println(String.format(
                Locale.ROOT,
                "%s: %,d requests, %,d blocks, %,d of them unique (%s in blocks of %s)",
                trace.file.getFileName(),
                keys.requests(),
                keys.blocks(),
                keys.uniqueBlocks(),
                Sizes.text(keys.uniqueBlocks() * options.blockBytes),
                Sizes.text(options.blockBytes)));
        table(out, "compute saved, % | pool \\ drive", cell -> 100 * cell.saved(), "%.1f");
        table(
                out,
                "of it from the pool (the faster hits), %",
                cell -> 100 * cell.result().hostSaved(),
                "%.1f");
        table(out, "points that each GiB of the drive's last step saved", Cell::driveGain, "%.4f");
        table(out, "points that each GiB of the pool's last step saved", Cell::poolGain, "%.4f");
        out.println("no cheaper pair saves as much as these:");
        Table table = new Table(true, "pool", "drive", "price", "saved, %");
        for (Cell cell : plan.frontier()) {
            table.row(
                    (cell == plan.recommended() ? "-> " : "   ") + pool(cell.pool()),
                    drive(cell.drive()),
                    String.format(Locale.ROOT, "%.2f", cell.price()),
                    String.format(Locale.ROOT, "%.1f", 100 * cell.saved()));
        }
        table.print(out);
        out.println();
        out.println(sentence());
        out.println(String.format(Locale.ROOT, "%d runs in %.1f s", plan.cells().size(), elapsedSeconds));
    }

    private void table(PrintStream out, String what, ToDoubleFunction<Cell> value, String form) {
        int drives = grid.driveBlocks().length;
        String[] heads = new String[1 + drives];
        heads[0] = what;
        for (int drive = 0; drive < drives; drive++) {
            heads[1 + drive] = drive(drive);
        }
        Table table = new Table(true, heads);
        for (int pool = 0; pool < grid.poolBlocks().length; pool++) {
            String[] cells = new String[heads.length];
            cells[0] = pool(pool);
            for (int drive = 0; drive < drives; drive++) {
                double number = value.applyAsDouble(plan.cells().get(pool * drives + drive));
                number = Math.abs(number) < SHOWN_MIN ? 0 : number;
                cells[1 + drive] = Double.isNaN(number) ? "-" : String.format(Locale.ROOT, form, number);
            }
            table.row(cells);
        }
        table.print(out);
        out.println();
    }

    private String sentence() {
        Cell cell = plan.recommended();
        String text = String.format(
                Locale.ROOT,
                "Take a pool of %s and %s: it saves %.1f %% of the compute for %.2f, at %s a GiB of pool and %s a GiB"
                        + " of drive. ",
                pool(cell.pool()),
                cell.drive() == 0 && grid.driveBlocks()[0] == 0 ? "no drive" : "a drive of " + drive(cell.drive()),
                100 * cell.saved(),
                cell.price(),
                options.poolPrice,
                options.drivePrice);
        Plan.Step step = plan.nextStep();
        if (step == null) {
            return text + "Nothing dearer that was looked at saves more; look at larger sizes.";
        }
        return text
                + String.format(
                        Locale.ROOT,
                        "The best step from there, a pool of %s and a drive of %s, costs %.1f times as much and saves"
                                + " %.1f points more: %.1f for each doubling, less than the %.1f that make it worth it"
                                + " (--points-per-doubling).",
                        pool(step.to().pool()),
                        drive(step.to().drive()),
                        step.to().price() / cell.price(),
                        step.points(),
                        step.pointsPerDoubling(),
                        options.pointsPerDoubling);
    }

    String svg() {
        int drives = grid.driveBlocks().length;
        int first = grid.driveBlocks()[0] == 0 && drives > 1 ? 1 : 0;
        double[] capacities = new double[drives - first];
        String[] ticks = new String[capacities.length];
        for (int i = 0; i < capacities.length; i++) {
            capacities[i] = Math.max(1, grid.driveBlocks()[first + i]);
            ticks[i] = drive(first + i);
        }
        CapacityPlot plot = new CapacityPlot(
                "OrbitKV: what pool and drive save",
                String.format(
                        Locale.ROOT,
                        "%s · %s of unique blocks · ring: recommended",
                        trace.file.getFileName(),
                        Sizes.text(keys.uniqueBlocks() * options.blockBytes)),
                "size of the drive",
                capacities,
                ticks);
        for (int pool = 0; pool < grid.poolBlocks().length; pool++) {
            double[] shares = new double[capacities.length];
            for (int i = 0; i < shares.length; i++) {
                shares[i] = plan.cells().get(pool * drives + first + i).saved();
            }
            plot.add("pool of " + pool(pool), shares, false);
        }
        Cell chosen = plan.recommended();
        if (chosen.drive() >= first) {
            plot.mark(Math.max(1, grid.driveBlocks()[chosen.drive()]), chosen.saved());
        }
        return plot.svg();
    }

    Json json(Path plot) {
        Json json = SimulatedTrace.put(new Json(), trace, keys)
                .put("block_bytes", options.blockBytes)
                .put("pool_price_per_gib", options.poolPrice)
                .put("drive_price_per_gib", options.drivePrice)
                .put("points_per_doubling", options.pointsPerDoubling)
                .put("admission", options.admission.name().toLowerCase(Locale.ROOT))
                .put("elapsed_s", elapsedSeconds)
                .put("plot", plot == null ? null : plot.toAbsolutePath().toString());
        json.array("cells");
        for (Cell cell : plan.cells()) {
            put(json.element(), cell).end();
        }
        json.end();
        json.array("frontier");
        for (Cell cell : plan.frontier()) {
            put(json.element(), cell).end();
        }
        json.end();
        put(json.object("recommended"), plan.recommended()).end();
        return json.put("reason", sentence());
    }

    private Json put(Json json, Cell cell) {
        return json.put("pool_bytes", grid.poolBlocks()[cell.pool()] * options.blockBytes)
                .put("drive_bytes", grid.driveBlocks()[cell.drive()] * options.blockBytes)
                .put("price", cell.price())
                .put("hit_rate", cell.result().hitRate())
                .put("host_hit_rate", cell.result().hostHitRate())
                .put("compute_saved", cell.saved())
                .put("pool_points_per_gib", cell.poolGain())
                .put("drive_points_per_gib", cell.driveGain())
                .put("written_blocks", cell.result().writtenBlocks())
                .put("written_again_blocks", cell.result().writtenAgainBlocks());
    }

    private String pool(int pool) {
        return Sizes.text(grid.poolBlocks()[pool] * options.blockBytes);
    }

    private String drive(int drive) {
        long blocks = grid.driveBlocks()[drive];
        return blocks == 0 ? "none" : Sizes.text(blocks * options.blockBytes);
    }
}
