package io.orbitkv.cli;

import io.orbitkv.bench.BenchRow;
import io.orbitkv.bench.DiskBench;
import io.orbitkv.bench.DiskResult;
import io.orbitkv.bench.DiskRow;
import io.orbitkv.bench.DiskSettings;
import io.orbitkv.nativeio.ErrorCode;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code orbitkv bench disk}: how much of what the drive gives the store passes on. */
@Command(
        name = "disk",
        sortOptions = false,
        description =
                "Writes and restores through the store beside fio, which does the same work on the same file system"
                        + " with equally many transfers in flight, and restores one block beside pread. Rounds alternate; files"
                        + " were written before. Needs fio.")
final class DiskCommand implements Callable<Integer> {
    private static final double MIB = 1 << 20;
    private static final long ROUND_BYTES_STEP = 128L << 20;

    @Mixin
    private BenchOptions place;

    @Option(
            names = "--rounds",
            paramLabel = "<n>",
            defaultValue = "7",
            description = "Measured rounds, 5 to 1000. Default: ${DEFAULT-VALUE}.")
    private int rounds;

    @Option(
            names = "--bytes",
            paramLabel = "<size>",
            defaultValue = "1gb",
            converter = Sizes.class,
            description =
                    "Bytes that each side transfers in a round, a multiple of 128mb; up to three times as much and 5 gb"
                            + " are taken on the drive. Default: ${DEFAULT-VALUE}.")
    private long bytes;

    @Option(
            names = "--block-bytes",
            paramLabel = "<size>",
            defaultValue = "2mb",
            converter = Sizes.class,
            description = "The large blocks, a power of two from 64kb to 8mb. Default: ${DEFAULT-VALUE}.")
    private long blockBytes;

    @Option(
            names = "--random-block-bytes",
            paramLabel = "<size>",
            defaultValue = "64kb",
            converter = Sizes.class,
            description = "The blocks that are restored from random places, a power of two from 4kb to 8mb. Default:"
                    + " ${DEFAULT-VALUE}.")
    private long randomBlockBytes;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() {
        common.apply();
        Terminal terminal = Terminal.onStderr();
        DiskSettings settings = settings(terminal);
        DiskResult result;
        try {
            result = DiskBench.run(settings);
        } finally {
            terminal.clear();
        }
        print(result);
        common.print(json(settings, result));
        if (!result.hasEqualPages()) {
            System.err.println("orbitkv: " + ErrorCode.FOUND_PROBLEMS.label()
                    + ": one side had huge pages and the other had not, so the figures can't be compared; free some"
                    + " memory, or run where nobody else needs it, and try again");
            return ErrorCode.FOUND_PROBLEMS.category().exitCode();
        }
        return 0;
    }

    private DiskSettings settings(Terminal terminal) {
        place.requireRounds(rounds);
        if (bytes % ROUND_BYTES_STEP != 0 || bytes > 1L << 40) {
            throw place.bad("--bytes is " + bytes + "; give a multiple of 128mb up to 1tb");
        }
        requirePower("--block-bytes", blockBytes, 64 << 10);
        requirePower("--random-block-bytes", randomBlockBytes, 4 << 10);
        return new DiskSettings(
                place.folder(),
                bytes,
                (int) blockBytes,
                (int) randomBlockBytes,
                rounds,
                place.seed,
                terminal::showIfDue);
    }

    private void requirePower(String option, long value, long min) {
        if (Long.bitCount(value) != 1 || value < min || value > 8 << 20) {
            throw place.bad(option + " is " + value + "; give a power of two from " + Sizes.text(min) + " to 8mb");
        }
    }

    private void print(DiskResult result) {
        Table table = new Table(
                true,
                "",
                "block",
                "depth",
                "rounds",
                "store",
                "min",
                "max",
                "floor",
                "min",
                "max",
                "",
                "of floor",
                "min",
                "max",
                "CPU s/GiB",
                "of floor",
                "pages");
        for (DiskRow row : result.rows()) {
            BenchRow store = row.store();
            BenchRow floor = row.floor();
            boolean isTime = row.depth() == 1;
            table.row(
                    store.what() + " / " + floor.what(),
                    Sizes.text(store.blockBytes()),
                    Integer.toString(row.depth()),
                    Integer.toString(store.rounds()),
                    figure(store, store.medianNanos(), isTime),
                    figure(store, isTime ? store.minNanos() : store.maxNanos(), isTime),
                    figure(store, isTime ? store.maxNanos() : store.minNanos(), isTime),
                    figure(floor, floor.medianNanos(), isTime),
                    figure(floor, isTime ? floor.minNanos() : floor.maxNanos(), isTime),
                    figure(floor, isTime ? floor.maxNanos() : floor.minNanos(), isTime),
                    isTime ? "us" : "MiB/s",
                    isTime ? times(1 / store.ratio()) : percent(store.ratio()),
                    isTime ? times(1 / store.ratioMax()) : percent(store.ratioMin()),
                    isTime ? times(1 / store.ratioMin()) : percent(store.ratioMax()),
                    cpu(row.storeCpuSeconds()),
                    cpu(row.floorCpuSeconds()),
                    row.storePages().equals(row.floorPages())
                            ? row.storePages()
                            : row.storePages() + "/" + row.floorPages());
        }
        table.print(common.text());
        common.text()
                .println(result.fioVersion() + ", io_uring, direct, registered files"
                        + (result.fioFixedBuffers() ? " and buffers" : "; buffers could not be registered")
                        + "; medians of the rounds, ratios within a round; CPU of all threads of the store's process,"
                        + " which also copies and checksums what it writes and checks what it reads");
    }

    private static String figure(BenchRow row, double nanos, boolean isTime) {
        return isTime
                ? String.format(Locale.ROOT, "%.0f", nanos / 1e3)
                : String.format(Locale.ROOT, "%.0f", row.blockBytes() / MIB / (nanos / 1e9));
    }

    private static String percent(double ratio) {
        return String.format(Locale.ROOT, "%.0f %%", 100 * ratio);
    }

    private static String times(double ratio) {
        return String.format(Locale.ROOT, "%.2f x", ratio);
    }

    private static String cpu(double seconds) {
        return seconds < 0 ? "" : String.format(Locale.ROOT, "%.3f", seconds);
    }

    private static Json json(DiskSettings settings, DiskResult result) {
        Json json = new Json()
                .put("bench", "disk")
                .put("rounds", settings.rounds())
                .put("seed", settings.seed())
                .put("round_bytes", settings.roundBytes())
                .put("fio", result.fioVersion())
                .put("fio_fixed_buffers", result.fioFixedBuffers());
        json.array("results");
        for (DiskRow row : result.rows()) {
            BenchRow store = row.store();
            BenchRow floor = row.floor();
            json.element()
                    .put("what", store.what())
                    .put("floor", floor.what())
                    .put("block_bytes", store.blockBytes())
                    .put("depth", row.depth())
                    .put("blocks_per_call", store.blocksPerCall())
                    .put("n", store.rounds())
                    .put("block_ns_median", store.medianNanos())
                    .put("block_ns_min", store.minNanos())
                    .put("block_ns_max", store.maxNanos())
                    .put("floor_block_ns_median", floor.medianNanos())
                    .put("floor_block_ns_min", floor.minNanos())
                    .put("floor_block_ns_max", floor.maxNanos())
                    .put("ratio", store.ratio())
                    .put("ratio_min", store.ratioMin())
                    .put("ratio_max", store.ratioMax())
                    .put("pages", row.storePages())
                    .put("floor_pages", row.floorPages());
            if (row.storeCpuSeconds() >= 0) {
                json.put("cpu_s_per_gib", row.storeCpuSeconds()).put("floor_cpu_s_per_gib", row.floorCpuSeconds());
            }
            json.end();
        }
        return json.end();
    }
}
