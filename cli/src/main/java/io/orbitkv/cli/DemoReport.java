package io.orbitkv.cli;

import java.io.PrintStream;
import java.nio.file.Path;
import java.util.List;

/** The outcome of a demo for people and as JSON, and what is wrong with it. */
final class DemoReport {
    private final Replay demo;
    private final DemoOptions options;
    private final Path plot;
    private final Phase total;

    DemoReport(Replay demo, DemoOptions options, Path plot) {
        this.demo = demo;
        this.options = options;
        this.plot = plot;
        total = demo.total();
    }

    /** Prints tables. */
    void print(PrintStream out) {
        PhaseTable table = new PhaseTable(
                List.of("before the kill", "after the kill", "together"), List.of(demo.before, demo.after, total));
        table.commonRows();
        table.row("wrong blocks", phase -> PhaseTable.count(phase.wrong));
        out.println();
        table.print(out);
        out.println();
        out.println("Kill and restart: " + demo.askedBlocks + " blocks were acknowledged as written; "
                + demo.foundBlocks() + " found, " + demo.reusedSince
                + " in segments reused since, " + demo.lostWritten + " lost. " + PhaseTable.opening(demo.restarted)
                + ", "
                + PhaseTable.millis(demo.restartNanos) + " ms after the kill.");
        out.println("Drive: at most " + Sizes.text(demo.diskPeakBytes) + " of the cap of "
                + Sizes.text(options.capBytes) + " (" + demo.diskSamples + " looks from outside).");
        out.println("Plot: " + plot.toAbsolutePath());
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
        json.put("wrong_blocks", demo.wrongBlocks())
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
                .put("kind", demo.restarted.kind)
                .put("open_ms", demo.restarted.openNanos / 1e6)
                .put("first_query_ms", demo.restarted.firstQueryNanos / 1e6)
                .put("index_whole_ms", demo.restarted.wholeNanos / 1e6)
                .put("restart_ms", demo.restartNanos / 1e6)
                .put("blocks_indexed", demo.restarted.blocksIndexed)
                .end();
        PhaseTable.percentiles(json, "query_us", total.queryNanos);
        PhaseTable.percentiles(json, "save_us", total.saveNanos);
        PhaseTable.percentiles(json, "restore_us", total.restoreNanos);
        json.put("restore_gib_per_s", PhaseTable.gibPerSecond(total.restoredBytes(), total.restoreNanosSum))
                .put("save_gib_per_s", PhaseTable.gibPerSecond(total.savedBytes(), total.saveNanosSum))
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
}
