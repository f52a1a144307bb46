package io.orbitkv.cli;

import io.orbitkv.bench.BenchResult;
import io.orbitkv.bench.BenchRow;
import io.orbitkv.bench.BenchSettings;
import io.orbitkv.bench.Pages;
import io.orbitkv.bench.RestoreBench;
import io.orbitkv.bench.SaveBench;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code orbitkv bench}: what the store's operations cost beside the least that could do the same. */
@Command(
        name = "bench",
        subcommands = {MatchCommand.class, DiskCommand.class, RestartCommand.class, FloorCommand.class},
        synopsisSubcommandLabel = "COMMAND",
        description =
                "Measures match, save, restore or the way to the drive beside their floors, in alternating rounds of one run.")
final class BenchCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Mixin
    private CommonOptions common;

    @Override
    public void run() {
        throw new ParameterException(
                spec.commandLine(), "no benchmark given; choose match, save, restore, disk or restart");
    }

    @Command(
            name = "save",
            sortOptions = false,
            description = "Saves into host memory beside a plain cold copy of the same bytes, and beside copy + CRC32C."
                    + " Bookkeeping is what a save takes beyond copy and checksum; blocks of 4kb show it best.")
    int save(
            @Mixin StoreBenchOptions options,
            @Option(
                            names = "--block-bytes",
                            split = ",",
                            paramLabel = "<size>",
                            defaultValue = "4kb,64kb,2mb",
                            converter = Sizes.class,
                            description = "Block sizes to run, with commas between; multiples of 4kb up to 16mb."
                                    + " Default: ${DEFAULT-VALUE}.")
                    List<Long> blockBytes,
            @Mixin CommonOptions more) {
        return run("save", options, blockBytes, more, SaveBench::run);
    }

    @Command(
            name = "restore",
            sortOptions = false,
            description = "Restores from host memory beside a plain cold copy, and from NVMe beside pread of the same"
                    + " bytes of the same files: one block a call, and 32 a call beside 16 reading threads.")
    int restore(
            @Mixin StoreBenchOptions options,
            @Option(
                            names = "--block-bytes",
                            split = ",",
                            paramLabel = "<size>",
                            defaultValue = "64kb,2mb",
                            converter = Sizes.class,
                            description = "Block sizes to run, with commas between; multiples of 4kb up to 16mb."
                                    + " Default: ${DEFAULT-VALUE}.")
                    List<Long> blockBytes,
            @Mixin CommonOptions more) {
        return run("restore", options, blockBytes, more, RestoreBench::run);
    }

    /** Options of the benchmarks that run on a store. */
    static final class StoreBenchOptions {
        @Mixin
        private BenchOptions place;

        @Option(
                names = "--rounds",
                paramLabel = "<n>",
                defaultValue = "15",
                description = "Measured rounds, 5 to 1000. Default: ${DEFAULT-VALUE}.")
        private int rounds;

        BenchSettings settings(List<Long> sizes, Terminal terminal) {
            place.requireRounds(rounds);
            Path folder = place.folder();
            List<Integer> blockBytes = new ArrayList<>();
            for (long size : sizes) {
                if (size % 4096 != 0 || size > 16 << 20) {
                    throw place.bad("--block-bytes has " + size + "; give multiples of 4kb up to 16mb");
                }
                blockBytes.add((int) size);
            }
            return new BenchSettings(folder, blockBytes, rounds, place.seed, terminal::showIfDue);
        }
    }

    private static int run(
            String name,
            StoreBenchOptions options,
            List<Long> blockBytes,
            CommonOptions more,
            Function<BenchSettings, BenchResult> bench) {
        more.apply();
        Terminal terminal = Terminal.onStderr();
        BenchSettings settings = options.settings(blockBytes, terminal);
        BenchResult result;
        try {
            result = bench.apply(settings);
        } finally {
            terminal.clear();
        }
        print(result);
        more.print(json(name, settings, result));
        return 0;
    }

    private static void print(BenchResult result) {
        Table table = new Table(
                true, "", "block", "a call", "rounds", "us a block", "min", "max", "GB/s", "of floor", "min", "max");
        for (BenchRow row : result.rows()) {
            table.row(
                    row.floor().isEmpty() ? row.what() : row.what() + " / " + row.floor(),
                    Sizes.text(row.blockBytes()),
                    Integer.toString(row.blocksPerCall()),
                    Integer.toString(row.rounds()),
                    micros(row.medianNanos()),
                    micros(row.minNanos()),
                    micros(row.maxNanos()),
                    isTime(row) ? "" : String.format(Locale.ROOT, "%.2f", row.gigabytesPerSecond()),
                    ratio(row, row.ratio()),
                    ratio(row, row.ratioMin()),
                    ratio(row, row.ratioMax()));
        }
        table.print(System.err);
        for (Pages pages : result.pages()) {
            System.err.println("pages: " + Sizes.text(pages.regionHugeBytes()) + " of "
                    + Sizes.text(pages.regionBytes())
                    + " of the caller's memory on huge pages; "
                    + (pages.processHugeBytes() < 0
                            ? "the process's are not known"
                            : Sizes.text(pages.processHugeBytes()) + " in the whole process, the pool included"));
        }
    }

    /** Bookkeeping has no bytes to divide by. */
    private static boolean isTime(BenchRow row) {
        return row.what().startsWith("bookkeeping");
    }

    private static String micros(double nanos) {
        return String.format(Locale.ROOT, "%.2f", nanos / 1e3);
    }

    private static String ratio(BenchRow row, double ratio) {
        return row.floor().isEmpty() ? "" : String.format(Locale.ROOT, "%.0f %%", 100 * ratio);
    }

    private static Json json(String name, BenchSettings settings, BenchResult result) {
        Json json =
                new Json().put("bench", name).put("rounds", settings.rounds()).put("seed", settings.seed());
        json.array("results");
        for (BenchRow row : result.rows()) {
            json.element()
                    .put("what", row.what())
                    .put("floor", row.floor())
                    .put("block_bytes", row.blockBytes())
                    .put("blocks_per_call", row.blocksPerCall())
                    .put("n", row.rounds())
                    .put("block_ns_median", row.medianNanos())
                    .put("block_ns_min", row.minNanos())
                    .put("block_ns_max", row.maxNanos());
            if (!isTime(row)) {
                json.put("gb_per_s", row.gigabytesPerSecond());
            }
            if (!row.floor().isEmpty()) {
                json.put("ratio", row.ratio()).put("ratio_min", row.ratioMin()).put("ratio_max", row.ratioMax());
            }
            json.end();
        }
        json.end().array("pages");
        for (Pages pages : result.pages()) {
            json.element()
                    .put("region_bytes", pages.regionBytes())
                    .put("region_huge_bytes", pages.regionHugeBytes())
                    .put("process_huge_bytes", pages.processHugeBytes())
                    .end();
        }
        return json.end();
    }
}
