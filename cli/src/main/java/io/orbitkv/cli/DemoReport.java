package io.orbitkv.cli;

import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import org.HdrHistogram.Histogram;

/** The outcome of a demo for people and as JSON, and what is wrong with it. */
final class DemoReport {
    private final Demo demo;
    private final DemoOptions options;
    private final Path plot;
    private final Phase total;

    DemoReport(Demo demo, DemoOptions options, Path plot) {
        this.demo = demo;
        this.options = options;
        this.plot = plot;
        total = new Phase((int) options.blockBytes).add(demo.before).add(demo.after);
    }

    private long wrong() {
        return total.wrong + demo.wrongAfterKill;
    }

    /** What must not be, in words; empty when all is well. */
    String problems() {
        List<String> problems = new ArrayList<>();
        if (wrong() > 0) {
            problems.add(wrong() + " restored blocks had wrong bytes");
        }
        if (demo.lostWritten > 0) {
            problems.add(demo.lostWritten + " of " + demo.askedBlocks + " written blocks were lost in the kill");
        }
        if (!"KILL".equals(demo.after.kind)) {
            problems.add("the store was opened as after " + demo.after.kind
                    + ", so the kill proves nothing: did somebody else open the folder meanwhile?");
        }
        if (demo.diskPeakBytes > options.capBytes) {
            problems.add(
                    "the data folders grew to " + demo.diskPeakBytes + " bytes, past the cap of " + options.capBytes);
        }
        for (Phase phase : List.of(demo.before, demo.after)) {
            if (phase.driveReadBytes < phase.nvmeHitBytes) {
                problems.add("only " + phase.driveReadBytes + " bytes were read from the drive "
                        + (phase == demo.before ? "before" : "after") + " the kill for NVMe hits of "
                        + phase.nvmeHitBytes + " bytes (is the folder on a drive?)");
            }
        }
        return String.join("; ", problems);
    }

    /** Prints tables. */
    void print(PrintStream out) {
        out.println();
        Table table = new Table(true, "", "before the kill", "after the kill", "together");
        row(table, "requests", phase -> count(phase.requests));
        row(table, "blocks asked for", phase -> count(phase.blocks));
        row(table, "hits in host memory", phase -> count(phase.hostHits));
        row(table, "hits on NVMe", phase -> count(phase.nvmeHits));
        row(table, "hit rate", phase -> String.format(Locale.ROOT, "%.1f %%", 100 * phase.hitRate()));
        row(table, "restored and compared", phase -> Sizes.text(phase.restoredBytes()));
        row(table, "read from the drive", phase -> Sizes.text(phase.driveReadBytes));
        row(table, "saved", phase -> Sizes.text(phase.savedBytes()));
        row(table, "saves dropped, blocks", phase -> count(phase.dropped));
        row(table, "wrong blocks", phase -> count(phase.wrong + (phase == demo.before ? 0 : demo.wrongAfterKill)));
        row(table, "restore rate", phase -> rate(phase.restoredBytes(), phase.restoreNanosSum));
        row(table, "save rate", phase -> rate(phase.savedBytes(), phase.saveNanosSum));
        row(table, "query p50 / p99 / max, us", phase -> micros(phase.queryNanos));
        row(table, "restore of a request, us", phase -> micros(phase.restoreNanos));
        row(table, "save of a request, us", phase -> micros(phase.saveNanos));
        row(table, "wall time", phase -> seconds(phase.wallNanos));
        table.print(out);
        out.println();
        out.println("Kill and restart: " + demo.askedBlocks + " blocks were acknowledged as written; "
                + (demo.askedBlocks - demo.reusedSince - demo.lostWritten) + " found, " + demo.reusedSince
                + " in segments reused since, " + demo.lostWritten + " lost. Opened as " + demo.after.kind + " in "
                + millis(demo.after.openNanos) + " ms with " + demo.after.blocksIndexed
                + " blocks; first query answered " + millis(demo.after.firstQueryNanos) + " ms after opening began, "
                + millis(demo.restartNanos) + " ms after the kill.");
        out.println("Drive: at most " + Sizes.text(demo.diskPeakBytes) + " of the cap of "
                + Sizes.text(options.capBytes) + " (" + demo.diskSamples + " looks from outside).");
        out.println("Plot: " + plot.toAbsolutePath());
    }

    private void row(Table table, String name, Function<Phase, String> cell) {
        table.row(name, cell.apply(demo.before), cell.apply(demo.after), cell.apply(total));
    }

    /** The object of {@code --json}; the README names its keys. */
    Json json() {
        Json json = new Json();
        json.put("requests", total.requests)
                .put("blocks", total.blocks)
                .put("block_bytes", options.blockBytes)
                .put("hit_blocks", total.hits())
                .put("hit_rate", total.hitRate());
        json.object("hits_by_tier")
                .put("host", total.hostHits)
                .put("nvme", total.nvmeHits)
                .end();
        phase(json.object("before"), demo.before).end();
        phase(json.object("after"), demo.after).end();
        json.put("wrong_blocks", wrong())
                .put("lost_written", demo.lostWritten)
                .put("acknowledged_blocks", demo.askedBlocks)
                .put("reused_since_blocks", demo.reusedSince)
                .put("reused_before_acknowledged_blocks", total.gone)
                .put("restored_bytes", total.restoredBytes())
                .put("saved_bytes", total.savedBytes())
                .put("dropped_blocks", total.dropped)
                .put("stopped_short_blocks", total.shortBlocks)
                .put("disk_peak_bytes", demo.diskPeakBytes)
                .put("disk_samples", demo.diskSamples)
                .put("cap_bytes", options.capBytes)
                .put("pool_bytes", options.poolBytes);
        json.object("recovery")
                .put("kind", demo.after.kind)
                .put("open_ms", demo.after.openNanos / 1e6)
                .put("first_query_ms", demo.after.firstQueryNanos / 1e6)
                .put("restart_ms", demo.restartNanos / 1e6)
                .put("blocks_indexed", demo.after.blocksIndexed)
                .end();
        percentiles(json, "query_us", total.queryNanos);
        percentiles(json, "save_us", total.saveNanos);
        percentiles(json, "restore_us", total.restoreNanos);
        json.put("restore_gib_per_s", gibPerSecond(total.restoredBytes(), total.restoreNanosSum))
                .put("save_gib_per_s", gibPerSecond(total.savedBytes(), total.saveNanosSum))
                .put("seed", options.seed)
                .put("elapsed_s", demo.elapsedNanos / 1e9)
                .put("plot", plot.toAbsolutePath().toString());
        return json;
    }

    private static Json phase(Json json, Phase phase) {
        return json.put("requests", phase.requests)
                .put("blocks", phase.blocks)
                .put("hit_blocks_host", phase.hostHits)
                .put("hit_blocks_nvme", phase.nvmeHits)
                .put("restored_bytes", phase.restoredBytes())
                .put("nvme_hit_bytes", phase.nvmeHitBytes)
                .put("drive_read_bytes", phase.driveReadBytes)
                .put("saved_bytes", phase.savedBytes())
                .put("elapsed_s", phase.wallNanos / 1e9);
    }

    private static void percentiles(Json json, String name, Histogram nanos) {
        json.object(name)
                .put("p50", nanos.getValueAtPercentile(50) / 1e3)
                .put("p99", nanos.getValueAtPercentile(99) / 1e3)
                .put("max", nanos.getMaxValue() / 1e3)
                .put("n", nanos.getTotalCount())
                .end();
    }

    private static String micros(Histogram nanos) {
        return String.format(
                Locale.ROOT,
                "%.1f / %.1f / %.0f",
                nanos.getValueAtPercentile(50) / 1e3,
                nanos.getValueAtPercentile(99) / 1e3,
                nanos.getMaxValue() / 1e3);
    }

    private static String count(long value) {
        return String.format(Locale.ROOT, "%,d", value);
    }

    private static String millis(long nanos) {
        return String.format(Locale.ROOT, "%.0f", nanos / 1e6);
    }

    private static String seconds(long nanos) {
        return String.format(Locale.ROOT, "%.1f s", nanos / 1e9);
    }

    private static String rate(long bytes, long nanos) {
        return String.format(Locale.ROOT, "%.2f GiB/s", gibPerSecond(bytes, nanos));
    }

    private static double gibPerSecond(long bytes, long nanos) {
        return nanos == 0 ? 0 : bytes / (double) (1 << 30) / (nanos / 1e9);
    }
}
