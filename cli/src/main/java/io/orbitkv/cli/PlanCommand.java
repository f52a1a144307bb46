package io.orbitkv.cli;

import io.orbitkv.bench.simulate.KeyTrace;
import io.orbitkv.bench.simulate.Plan;
import io.orbitkv.bench.simulate.SimResult;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code orbitkv plan}: which sizes of host memory and drive are worth their money. */
@Command(
        name = "plan",
        sortOptions = false,
        description = {
            "Simulates a trace's keys on a grid of sizes of host memory and drive, and says which of them are worth their"
                    + " money: what each saves, what the last GiB of each added, and a recommendation with its reason.",
            "The recommendation is the cheapest pair from which no dearer one saves --points-per-doubling more for each"
                    + " doubling of the money. Both tiers start empty, and the whole trace counts."
        })
final class PlanCommand implements Callable<Integer> {
    @Mixin
    private TraceOptions trace;

    @Mixin
    private PlanOptions options;

    @Option(
            names = "--plot",
            paramLabel = "<file>",
            description = "Where to write a plot (SVG): compute saved over the drive's size, a curve for each pool."
                    + " Default: none.")
    private Path plot;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() {
        common.apply();
        trace.check();
        options.check();
        if (plot != null) {
            PlotFile.requireWritable(plot);
        }
        long started = System.nanoTime();
        KeyTrace keys = SimulatedTrace.read(trace);
        Plan.Grid grid = options.grid(keys);
        SimResult[] results = new SimResult[grid.cells()];
        SimulatedTrace.each(
                "plan",
                results.length,
                cell -> results[cell] = Plan.simulate(keys, grid, cell, options.admission, options.admissionPrice));
        PlanReport report = new PlanReport(
                trace, options, keys, Plan.of(grid, cell -> results[cell]), (System.nanoTime() - started) / 1e9);
        report.print(common.text());
        if (plot != null) {
            PlotFile.write(plot, report.svg());
        }
        common.print(report.json(plot));
        return 0;
    }
}
