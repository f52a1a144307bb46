package io.orbitkv.cli;

import io.orbitkv.bench.simulate.KeyTrace;
import io.orbitkv.bench.simulate.Plan;
import io.orbitkv.tiers.AdmissionPolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** The sizes that a plan looks at, and what they cost. */
final class PlanOptions {
    private static final List<String> POOLS_DEFAULT = List.of("0.2%", "0.5%", "1%", "2%", "5%", "10%", "20%");
    private static final List<String> DRIVES_DEFAULT = List.of("none", "1%", "2%", "5%", "10%", "20%", "50%", "100%");
    private static final String NONE = "none";

    /** Two segments, the least that a simulated tier has. */
    private static final long BLOCKS_MIN = 16;

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    @Option(
            names = "--block-bytes",
            required = true,
            paramLabel = "<size>",
            converter = Sizes.class,
            description = "Bytes of a block of the trace: KV bytes a token of your model x --block-tokens, for example"
                    + " 64mb for 128 KiB a token and 512 tokens. From 512 bytes to 1gb.")
    long blockBytes;

    @Option(
            names = "--pool-sizes",
            split = ",",
            paramLabel = "<c>",
            description = "Sizes of host memory to look at, with commas between: sizes (16gb), shares of the trace's"
                    + " unique blocks (1%%), or blocks (1000blocks). Default: 0.2%%,0.5%%,1%%,2%%,5%%,10%%,20%%.")
    List<String> pools;

    @Option(
            names = "--drive-sizes",
            split = ",",
            paramLabel = "<c>",
            description = "Sizes of the drive to look at, likewise; 'none' for no drive. Default:"
                    + " none,1%%,2%%,5%%,10%%,20%%,50%%,100%%.")
    List<String> drives;

    @Option(
            names = "--pool-price",
            paramLabel = "<number>",
            defaultValue = "4",
            description = "What a GiB of host memory costs, in any currency, above 0. Default: ${DEFAULT-VALUE}.")
    double poolPrice;

    @Option(
            names = "--drive-price",
            paramLabel = "<number>",
            defaultValue = "0.1",
            description = "What a GiB of the drive costs, in the same currency, above 0. Default: ${DEFAULT-VALUE}.")
    double drivePrice;

    @Option(
            names = "--points-per-doubling",
            paramLabel = "<number>",
            defaultValue = "2",
            description = "What makes more money worth it: points of compute saved, of 100, for each doubling of it,"
                    + " above 0 and up to 100. Default: ${DEFAULT-VALUE}.")
    double pointsPerDoubling;

    @Option(
            names = "--ssd-write-policy",
            paramLabel = "<policy>",
            defaultValue = "ALL",
            description = "What is written to the drive: ${COMPLETION-CANDIDATES}. Default: ${DEFAULT-VALUE}.")
    AdmissionPolicy admission;

    @Option(
            names = "--admission-price",
            paramLabel = "<number>",
            defaultValue = "0.1",
            description = "What a written block costs in duel, in blocks of compute saved, 0 to 10."
                    + " Default: ${DEFAULT-VALUE}.")
    double admissionPrice;

    /** Refuses what is out of range, before the trace is read. */
    void check() {
        if (blockBytes < 512 || blockBytes > 1L << 30) {
            throw bad("--block-bytes is " + blockBytes + " bytes; give a size from 512 bytes to 1gb");
        }
        requirePrice("--pool-price", poolPrice);
        requirePrice("--drive-price", drivePrice);
        if (!(pointsPerDoubling > 0 && pointsPerDoubling <= 100)) {
            throw bad("--points-per-doubling is " + pointsPerDoubling + "; give a number above 0 and up to 100");
        }
        if (!(admissionPrice >= 0 && admissionPrice <= 10)) {
            throw bad("--admission-price is " + admissionPrice + "; give 0 to 10");
        }
        parse("--pool-sizes", pools, POOLS_DEFAULT, false);
        parse("--drive-sizes", drives, DRIVES_DEFAULT, true);
    }

    private void requirePrice(String flag, double price) {
        if (!(price > 0 && price <= 1e9)) {
            throw bad(flag + " is " + price + "; give a price above 0 and up to 1000000000");
        }
    }

    private List<Capacity> parse(String flag, List<String> given, List<String> standard, boolean mayBeNone) {
        List<String> written = new ArrayList<>(given == null ? standard : given);
        if (mayBeNone) {
            boolean isNone = written.removeIf(text -> text.trim().equalsIgnoreCase(NONE));
            if (isNone && written.isEmpty()) {
                return List.of();
            }
        }
        try {
            return Capacity.parse(written);
        } catch (TypeConversionException e) {
            throw bad(flag + ": " + e.getMessage());
        }
    }

    /** The grid for a trace; sizes that come out equal are looked at once. */
    Plan.Grid grid(KeyTrace trace) {
        long[] poolBlocks =
                blocks("--pool-sizes", parse("--pool-sizes", pools, POOLS_DEFAULT, false), pools != null, trace, false);
        boolean none =
                drives == null || drives.stream().anyMatch(text -> text.trim().equalsIgnoreCase(NONE));
        long[] driveBlocks = blocks(
                "--drive-sizes", parse("--drive-sizes", drives, DRIVES_DEFAULT, true), drives != null, trace, none);
        return new Plan.Grid(poolBlocks, driveBlocks, blockBytes, poolPrice, drivePrice, pointsPerDoubling);
    }

    private long[] blocks(String flag, List<Capacity> capacities, boolean given, KeyTrace trace, boolean none) {
        TreeSet<Long> blocks = new TreeSet<>();
        for (Capacity capacity : capacities) {
            long count = capacity.blocks(trace.uniqueBlocks(), blockBytes);
            if (count >= BLOCKS_MIN) {
                blocks.add(count);
            } else if (given && !capacity.text().endsWith("%")) {
                throw bad(flag + ": " + capacity.text() + " holds " + count + " blocks of " + Sizes.text(blockBytes)
                        + "; give room for at least " + BLOCKS_MIN);
            }
        }
        if (none) {
            blocks.add(0L);
        }
        if (blocks.isEmpty()) {
            throw bad(flag + ": no size holds " + BLOCKS_MIN + " blocks or more, and the trace has "
                    + trace.uniqueBlocks() + " different ones; "
                    + (given ? "give larger sizes" : "name sizes with " + flag + ", like 16blocks,100blocks"));
        }
        return blocks.stream().mapToLong(Long::longValue).toArray();
    }

    private ParameterException bad(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
