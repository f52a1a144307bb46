package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.function.ToDoubleFunction;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code orbitkv bench restart}: how soon a store answers again after kill -9, and how soon it knows all. */
@Command(
        name = "restart",
        sortOptions = false,
        description =
                "Fills a store in a process of its own, kills that with SIGKILL, and opens the store again in fresh"
                        + " processes, each of which is killed too. Files of the log are read past the page cache (O_DIRECT); the"
                        + " catalog's file is dropped from it with dd before each opening. While the index fills, the process asks for"
                        + " random prompts and saves blocks (--rate).")
final class RestartCommand implements Callable<Integer> {
    private static final double MILLI = 1e6;
    private static final double BOUND_NANOS_A_BLOCK = 500;
    private static final int RATE_MAX = 100_000;

    @Mixin
    private BenchOptions place;

    @Option(
            names = {"--cap", "--ssd-cache-capacity"},
            paramLabel = "<size>",
            defaultValue = "2gb",
            converter = Sizes.class,
            description = "Cap of the store. Default: ${DEFAULT-VALUE}.")
    private long capBytes;

    @Option(
            names = "--pool-size",
            paramLabel = "<size>",
            defaultValue = "1gb",
            converter = Sizes.class,
            description = "Host memory of the store. Default: ${DEFAULT-VALUE}.")
    private long poolBytes;

    @Option(
            names = "--block-bytes",
            paramLabel = "<size>",
            defaultValue = "64kb",
            converter = Sizes.class,
            description = "Bytes of a block. Default: ${DEFAULT-VALUE}.")
    private long blockBytes;

    @Option(
            names = "--blocks",
            paramLabel = "<n>",
            defaultValue = "16384",
            description = "Blocks that are saved, in prompts of 256. Default: ${DEFAULT-VALUE}.")
    private long blocks;

    @Option(
            names = "--openings",
            paramLabel = "<n>",
            defaultValue = "3",
            description = "Openings, 1 to 100. Default: ${DEFAULT-VALUE}.")
    private int openings;

    @Option(
            names = "--rate",
            paramLabel = "<n>",
            defaultValue = "1000",
            description =
                    "Prompts asked for, and blocks saved, a second while the index fills, 0 to 100000; they share the"
                            + " cores with the fill. Default: ${DEFAULT-VALUE}.")
    private int rate;

    @Option(names = "--clean", description = "Stop each process cleanly instead, so that the snapshot is loaded.")
    private boolean isClean;

    @Mixin
    private CommonOptions common;

    /** What an opening told. */
    private record Opened(
            String kind,
            long mainNanos,
            long openNanos,
            long firstQueryNanos,
            long wholeNanos,
            long blocks,
            int firstHits,
            long queries,
            long hits,
            long saveMedianNanos,
            long saveP99Nanos,
            long saveMaxNanos,
            long residentKib,
            long cpuNanos) {
        static Opened read(DataInputStream in) throws IOException {
            return new Opened(
                    in.readUTF(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    in.readInt(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong());
        }
    }

    @Override
    public Integer call() throws IOException {
        common.apply();
        if (openings < 1 || openings > 100 || blocks < RestartChild.PROMPT_BLOCKS || rate < 0 || rate > RATE_MAX) {
            throw place.bad("--openings is " + openings + ", --blocks " + blocks + " and --rate " + rate
                    + "; give 1 to 100, at least " + RestartChild.PROMPT_BLOCKS + ", and 0 to " + RATE_MAX);
        }
        Path folder = Files.createTempDirectory(place.folder(), "orbitkv-restart-");
        try {
            long began = System.nanoTime();
            long written = run(folder, List.of("--fill"), DataInputStream::readLong);
            System.err.printf(
                    Locale.ROOT, "filled with %,d blocks in %.1f s%n", written, (System.nanoTime() - began) / 1e9);
            List<Opened> all = new ArrayList<>();
            for (int i = 0; i < openings; i++) {
                dropFromCache(folder.resolve("catalog").resolve("data.mdb"));
                all.add(run(folder, List.of(), Opened::read));
            }
            print(all);
            common.print(json(all));
        } finally {
            TemporaryFolders.delete(folder);
        }
        return 0;
    }

    /** Reads what a child says. */
    @FunctionalInterface
    private interface Answer<T> {
        T read(DataInputStream in) throws IOException;
    }

    private <T> T run(Path folder, List<String> more, Answer<T> answer) {
        List<String> arguments = new ArrayList<>(List.of(
                "restart-child",
                "--data=" + folder,
                "--cap=" + capBytes,
                "--pool=" + poolBytes,
                "--block-bytes=" + blockBytes,
                "--prompts=" + blocks / RestartChild.PROMPT_BLOCKS,
                "--rate=" + rate,
                "--launched=" + System.nanoTime()));
        arguments.addAll(more);
        if (isClean) {
            arguments.add("--stop");
        }
        try (ChildJvm child = ChildJvm.start(arguments)) {
            T said;
            try {
                said = answer.read(child.frames());
            } catch (IOException e) {
                throw child.died(e);
            }
            if (!isClean) {
                child.kill();
            }
            child.await();
            return said;
        }
    }

    private static void dropFromCache(Path file) {
        try {
            new ProcessBuilder("dd", "if=" + file, "iflag=nocache", "count=0")
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start()
                    .waitFor();
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.NOT_AVAILABLE, "cannot run dd: " + e.getMessage() + "; install coreutils", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new OrbitKvException(ErrorCode.CHILD_PROCESS, "interrupted while dd ran", e);
        }
    }

    private void print(List<Opened> all) {
        Table table = new Table(true, "", "median", "min", "max");
        row(table, "JVM started, ms", all, opened -> opened.mainNanos / MILLI);
        row(table, "store open, ms of its opening", all, opened -> opened.openNanos / MILLI);
        row(table, "first query answered, ms from launch", all, opened -> opened.firstQueryNanos / MILLI);
        row(table, "index whole, ms of the opening", all, opened -> opened.wholeNanos / MILLI);
        row(table, "  ns a block", all, opened -> (double) opened.wholeNanos / Math.max(1, opened.blocks));
        row(table, "blocks indexed", all, opened -> opened.blocks);
        row(table, "queries while it filled", all, opened -> opened.queries);
        row(table, "  with hits", all, opened -> opened.hits);
        row(table, "save of a block meanwhile, us p50", all, opened -> opened.saveMedianNanos / 1e3);
        row(table, "  p99", all, opened -> opened.saveP99Nanos / 1e3);
        row(table, "  max", all, opened -> opened.saveMaxNanos / 1e3);
        row(table, "CPU time until whole, ms", all, opened -> opened.cpuNanos / MILLI);
        row(table, "peak resident memory, MiB", all, opened -> opened.residentKib / 1024.0);
        table.print(System.err);
        int cores = Runtime.getRuntime().availableProcessors();
        double bound = boundNanos(all, cores) / MILLI;
        System.err.printf(Locale.ROOT, "bound of the promise on %d cores: index whole within %.0f ms%n", cores, bound);
    }

    private double boundNanos(List<Opened> all, int cores) {
        double byBlocks = median(all, opened -> opened.blocks) * BOUND_NANOS_A_BLOCK / cores;
        return Math.max(Math.max(1e9, 1e9 * capBytes / (1L << 40)), byBlocks);
    }

    private static void row(Table table, String what, List<Opened> all, ToDoubleFunction<Opened> value) {
        double[] sorted = all.stream().mapToDouble(value).sorted().toArray();
        table.row(what, text(sorted[sorted.length / 2]), text(sorted[0]), text(sorted[sorted.length - 1]));
    }

    private static String text(double value) {
        return String.format(Locale.ROOT, "%,.1f", value);
    }

    private static double median(List<Opened> all, ToDoubleFunction<Opened> value) {
        double[] sorted = all.stream().mapToDouble(value).toArray();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    private Json json(List<Opened> all) {
        Json json = new Json()
                .put("bench", "restart")
                .put("block_bytes", blockBytes)
                .put("cap_bytes", capBytes)
                .put("bound_ms", boundNanos(all, Runtime.getRuntime().availableProcessors()) / MILLI);
        json.array("openings");
        for (Opened opened : all) {
            json.element()
                    .put("kind", opened.kind.toLowerCase(Locale.ROOT))
                    .put("open_ms", opened.openNanos / MILLI)
                    .put("first_query_ms", opened.firstQueryNanos / MILLI)
                    .put("whole_ms", opened.wholeNanos / MILLI)
                    .put("blocks", opened.blocks)
                    .put("queries", opened.queries)
                    .put("queries_with_hits", opened.hits)
                    .put("save_us_p99", opened.saveP99Nanos / 1e3)
                    .put("save_us_max", opened.saveMaxNanos / 1e3)
                    .put("cpu_ms", opened.cpuNanos / MILLI)
                    .put("peak_resident_kib", opened.residentKib)
                    .end();
        }
        return json.end();
    }
}
