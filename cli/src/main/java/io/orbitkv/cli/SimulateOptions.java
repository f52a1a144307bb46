package io.orbitkv.cli;

import java.util.List;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What a simulation runs over. */
final class SimulateOptions {
    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    @Option(
            names = "--capacities",
            split = ",",
            paramLabel = "<c>",
            description = "With --simulate: capacities with commas between; each a share of the trace's unique blocks"
                    + " (5%%), a size (16gb, divided by --block-bytes), or a number of blocks (1000blocks)."
                    + " Default: 0.5%%,1%%,2%%,5%%,10%%,20%%,50%%,100%%.")
    List<String> capacities;

    /** Refuses what is only for the other kind of run. */
    void check(boolean simulate) {
        if (!simulate && capacities != null) {
            throw new ParameterException(spec.commandLine(), "--capacities is for --simulate; add --simulate");
        }
    }
}
