package io.orbitkv.cli;

import io.orbitkv.bench.BenchSettings;
import io.orbitkv.bench.MatchBench;
import io.orbitkv.bench.QueryBench;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code orbitkv bench match}: the index alone, and a query of the store beside it. */
@Command(
        name = "match",
        sortOptions = false,
        description = {
            "Matches stretches of prefixes from random blocks on, in an index of many blocks, while a writer publishes"
                    + " and deletes; every block of every answer is checked. Beside it KvStore.query of as many blocks on"
                    + " a smaller store, and the same match on an index of that size without a writer.",
            "Samples whose wall time exceeds their CPU time by less than 20 us are also reported on their own: the"
                    + " others held somebody else's time slice. Exit code 1 when an answer was wrong or short."
        })
final class MatchCommand implements Callable<Integer> {
    private static final int QUERIES = 20_000;

    @Spec
    private CommandSpec spec;

    @Option(
            names = "--blocks",
            paramLabel = "<n>",
            defaultValue = "10000000",
            description = "Blocks in the index, at least 4 times --match-blocks. Default: ${DEFAULT-VALUE}.")
    private long blocks;

    @Option(
            names = "--match-blocks",
            paramLabel = "<n>",
            defaultValue = "4096",
            description = "Blocks of a match, 1 to 16384. Default: ${DEFAULT-VALUE}.")
    private int matchBlocks;

    @Option(
            names = "--checked-blocks",
            paramLabel = "<n>",
            defaultValue = "1000000000",
            description = "Ends when so many blocks were matched and checked. Default: ${DEFAULT-VALUE}.")
    private long checkedBlocks;

    @Option(
            names = "--seconds",
            paramLabel = "<n>",
            defaultValue = "600",
            description = "Ends earlier, after so many seconds of matching. Default: ${DEFAULT-VALUE}.")
    private int seconds;

    @Option(
            names = "--writer-blocks-per-second",
            paramLabel = "<n>",
            defaultValue = "100000",
            description = "What the writer publishes; 0: no writer. Default: ${DEFAULT-VALUE}.")
    private int writerRate;

    @Option(
            names = "--query-blocks-stored",
            paramLabel = "<n>",
            defaultValue = "98304",
            description =
                    "Blocks of 4kb in the store that is queried; 0: leave that part out. Default: ${DEFAULT-VALUE}.")
    private int queryStored;

    @Option(
            names = {"--data", "--ssd-cache-path"},
            paramLabel = "<folder>",
            description = "Where the store makes a folder of its own. Default: the folder for temporary files.")
    private Path data;

    @Option(
            names = "--seed",
            paramLabel = "<n>",
            defaultValue = "1",
            description = "Seed of everything, any whole number. Default: ${DEFAULT-VALUE}.")
    private long seed;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() {
        common.apply();
        check();
        Terminal terminal = Terminal.onStderr();
        MatchBench.Result match;
        MatchBench.Result small = null;
        QueryBench.Result query = null;
        try {
            match = match(terminal, blocks, checkedBlocks, seconds, writerRate);
            if (queryStored > 0) {
                query = query(terminal);
                small = match(terminal, query.blocks(), (long) QUERIES * matchBlocks, seconds, 0);
            }
        } finally {
            terminal.clear();
        }
        print(match, small, query);
        common.print(json(match, small, query));
        if (match.wrong() > 0 || match.shortMatches() > 0) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS,
                    match.wrong() + " blocks were wrong and " + match.shortMatches()
                            + " matches too short; please report this with --seed " + seed);
        }
        return 0;
    }

    private void check() {
        require(matchBlocks >= 1 && matchBlocks <= 16_384, "--match-blocks is " + matchBlocks + "; give 1 to 16384");
        require(blocks >= 4L * matchBlocks, "--blocks is " + blocks + "; give at least 4 times --match-blocks");
        require(blocks <= 1_000_000_000L, "--blocks is " + blocks + "; give at most 1000000000");
        require(checkedBlocks >= 1, "--checked-blocks is " + checkedBlocks + "; give at least 1");
        require(seconds >= 1, "--seconds is " + seconds + "; give at least 1");
        require(writerRate >= 0, "--writer-blocks-per-second is " + writerRate + "; give 0 or more");
        require(
                queryStored == 0 || queryStored >= 4L * matchBlocks && queryStored <= 4 << 20,
                "--query-blocks-stored is " + queryStored + "; give 0, or 4 times --match-blocks to 4194304");
        require(data == null || Files.isDirectory(data), "--data is " + data + ", which is not a folder");
    }

    private void require(boolean good, String message) {
        if (!good) {
            throw new ParameterException(spec.commandLine(), message);
        }
    }

    private MatchBench.Result match(Terminal terminal, long size, long checked, int secondsMax, int rate) {
        MatchBench.Options options = new MatchBench.Options(size, matchBlocks, checked, secondsMax, rate, seed);
        return new MatchBench(options, (what, done, total) -> {
                    if (terminal.isDue()) {
                        terminal.show(String.format(Locale.ROOT, "match: %s, %,d of %,d blocks", what, done, total));
                    }
                })
                .run();
    }

    private QueryBench.Result query(Terminal terminal) {
        Path folder = data != null ? data : TemporaryFolders.root();
        BenchSettings settings = new BenchSettings(folder, List.of(), 1, seed, terminal::showIfDue);
        return new QueryBench(settings, queryStored, matchBlocks, QUERIES).run();
    }

    private void print(MatchBench.Result match, MatchBench.Result small, QueryBench.Result query) {
        Table table = new Table(
                true,
                "of " + matchBlocks + " blocks, us",
                "blocks stored",
                "n",
                "p50",
                "p99",
                "max",
                "calm n",
                "calm p50",
                "calm p99",
                "heap B");
        row(table, "match, writer " + (long) match.writerBlocksPerSecond() + "/s", match);
        if (query != null) {
            row(table, "match, no writer", small);
            table.row(
                    "KvStore.query, no writer",
                    count(query.blocks()),
                    count(query.queries()),
                    micros(query.p50Micros()),
                    micros(query.p99Micros()),
                    micros(query.maxMicros()),
                    count(query.undisturbedQueries()),
                    micros(query.undisturbedP50Micros()),
                    micros(query.undisturbedP99Micros()),
                    micros(query.allocatedBytesPerQuery()));
        }
        table.print(System.err);
        System.err.println(String.format(
                Locale.ROOT,
                "with the core's other hardware thread quiet: n %s, p50 %s, p99 %s us",
                count(match.ownCoreMatches()),
                micros(match.ownCoreP50Micros()),
                micros(match.ownCoreP99Micros())));
        System.err.println(String.format(
                Locale.ROOT,
                "checked %,d blocks: %d wrong, %d short; index %s, %.1f bytes a block, %s on huge pages; deleted %,d",
                match.checkedBlocks(),
                match.wrong(),
                match.shortMatches(),
                Sizes.text(match.indexBytes()),
                match.bytesPerBlock(),
                Sizes.text(match.hugeBytes()),
                match.writerDeletedBlocks()));
    }

    private static void row(Table table, String name, MatchBench.Result match) {
        table.row(
                name,
                count(match.blocks()),
                count(match.matches()),
                micros(match.p50Micros()),
                micros(match.p99Micros()),
                micros(match.maxMicros()),
                count(match.undisturbedMatches()),
                micros(match.undisturbedP50Micros()),
                micros(match.undisturbedP99Micros()),
                micros(match.allocatedBytesPerMatch()));
    }

    private Json json(MatchBench.Result match, MatchBench.Result small, QueryBench.Result query) {
        Json json = new Json()
                .put("bench", "match")
                .put("match_blocks", matchBlocks)
                .put("seed", seed);
        result(json, match);
        if (query != null) {
            result(json.object("match_of_query_size"), small).end();
            json.object("query")
                    .put("blocks", query.blocks())
                    .put("n", query.queries())
                    .put("p50_us", query.p50Micros())
                    .put("p99_us", query.p99Micros())
                    .put("max_us", query.maxMicros())
                    .put("undisturbed_n", query.undisturbedQueries())
                    .put("undisturbed_p50_us", query.undisturbedP50Micros())
                    .put("undisturbed_p99_us", query.undisturbedP99Micros())
                    .put("allocated_bytes_per_query", query.allocatedBytesPerQuery())
                    .end();
        }
        return json;
    }

    private static Json result(Json json, MatchBench.Result match) {
        return json.put("blocks", match.blocks())
                .put("n", match.matches())
                .put("p50_us", match.p50Micros())
                .put("p99_us", match.p99Micros())
                .put("max_us", match.maxMicros())
                .put("undisturbed_n", match.undisturbedMatches())
                .put("undisturbed_p50_us", match.undisturbedP50Micros())
                .put("undisturbed_p99_us", match.undisturbedP99Micros())
                .put("undisturbed_max_us", match.undisturbedMaxMicros())
                .put("own_core_n", match.ownCoreMatches())
                .put("own_core_p50_us", match.ownCoreP50Micros())
                .put("own_core_p99_us", match.ownCoreP99Micros())
                .put("checked_blocks", match.checkedBlocks())
                .put("wrong_blocks", match.wrong())
                .put("short_matches", match.shortMatches())
                .put("allocated_bytes_per_match", match.allocatedBytesPerMatch())
                .put("writer_blocks_per_second", match.writerBlocksPerSecond())
                .put("writer_deleted_blocks", match.writerDeletedBlocks())
                .put("publish_ns_per_block", match.publishNanosPerBlock())
                .put("place_ns_per_block", match.placeNanosPerBlock())
                .put("index_bytes", match.indexBytes())
                .put("index_huge_bytes", match.hugeBytes())
                .put("index_bytes_per_block", match.bytesPerBlock());
    }

    private static String count(long value) {
        return String.format(Locale.ROOT, "%,d", value);
    }

    private static String micros(double value) {
        return String.format(Locale.ROOT, "%.1f", value);
    }
}
