package io.orbitkv.cli;

import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code orbitkv replay}: a trace against a store, or against every policy in a simulator. */
@Command(
        name = "replay",
        sortOptions = false,
        description = {
            "Runs the requests of a trace against a store in a child process, as an engine would: queries the prefix,"
                    + " restores what is there, saves the rest. Every restored byte is compared with what was saved.",
            "With --simulate keys only: every policy beside Belady, over one or many capacities, in seconds. Nothing is"
                    + " written but the plot."
        })
final class ReplayCommand implements Callable<Integer> {
    @Mixin
    private TraceOptions trace;

    @Option(
            names = "--simulate",
            description = "Simulate every policy on the trace's keys and run no store. --block-bytes and"
                    + " --ssd-write-policy and what is about running don't matter then.")
    private boolean simulate;

    @Mixin
    private SimulateOptions simulation;

    @Mixin
    private ReplayOptions options;

    @Option(names = "--plot", paramLabel = "<file>", description = "Where to write a plot (SVG). Default: none.")
    private Path plot;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() {
        common.apply();
        trace.check();
        options.check();
        simulation.check(simulate);
        if (plot != null) {
            PlotFile.requireWritable(plot);
        }
        if (simulate) {
            return new SimulateRun(trace, simulation, options, plot, common).run();
        }
        return new ReplayRun(trace, options, plot, common).run();
    }
}
