package io.orbitkv.cli;

import java.util.List;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** What a simulation runs over. */
final class SimulateOptions {
    private static final List<String> CAPACITIES_DEFAULT =
            List.of("0.5%", "1%", "2%", "5%", "10%", "20%", "50%", "100%");

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

    @Option(
            names = "--host-share",
            paramLabel = "<fraction>",
            description = "With --simulate: host memory of the policies that have two tiers, as a fraction of the"
                    + " capacity, 0 to 1. Default: 0.1.")
    Double hostShare;

    /** Refuses what is only for the other kind of run, and what is out of range. */
    void check(boolean simulate) {
        if (!simulate && capacities != null) {
            throw bad("--capacities is for --simulate; add --simulate");
        }
        if (!simulate && hostShare != null) {
            throw bad("--host-share is for --simulate; add --simulate");
        }
        if (hostShare != null && !(hostShare >= 0 && hostShare <= 1)) {
            throw bad("--host-share is " + hostShare + "; give a fraction from 0 to 1");
        }
        parsed();
    }

    /** Whether somebody asked for these capacities. */
    boolean isGiven() {
        return capacities != null;
    }

    List<Capacity> parsed() {
        try {
            return Capacity.parse(capacities == null ? CAPACITIES_DEFAULT : capacities);
        } catch (TypeConversionException e) {
            throw bad("--capacities: " + e.getMessage());
        }
    }

    double hostShare() {
        return hostShare == null ? 0.1 : hostShare;
    }

    private ParameterException bad(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
