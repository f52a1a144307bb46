package io.orbitkv.cli;

import java.io.PrintStream;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/** The outcome of a replay for people and as JSON. */
final class ReplayReport {
    private final Replay replay;
    private final ReplayOptions options;
    private final Phase total;
    private final boolean restarted;

    ReplayReport(Replay replay, ReplayOptions options) {
        this.replay = replay;
        this.options = options;
        total = replay.total();
        restarted = replay.restart != Replay.Restart.NONE;
    }

    private long corrupt() {
        return total.corrupt + replay.damagedAtRestart;
    }

    /** Prints tables. */
    void print(PrintStream out, Path plot) {
        PhaseTable table = restarted
                ? new PhaseTable(
                        List.of("before the restart", "after it", "together"),
                        List.of(replay.before, replay.after, total))
                : new PhaseTable(List.of("replay"), List.of(total));
        table.commonRows();
        table.row("compute saved", phase -> PhaseTable.percent(phase.computeSaved()));
        table.row("written to the log", phase -> Sizes.text(phase.logWrittenBytes));
        table.row("bytes written a byte let in", phase -> String.format(Locale.ROOT, "%.3f", phase.amplification()));
        table.row("wrong blocks", phase -> PhaseTable.count(phase.wrong));
        table.row("corrupt blocks", phase -> PhaseTable.count(phase.corrupt));
        table.row("restores within 2x of their estimate", phase -> PhaseTable.percent(phase.estimatesWithinTwo()));
        out.println();
        table.print(out);
        out.println();
        if (restarted) {
            printRestart(out);
        }
        out.println("Drive: at most " + Sizes.text(replay.diskPeakBytes) + " of the cap of "
                + Sizes.text(options.capBytes) + " (" + replay.diskSamples + " looks from outside); "
                + Sizes.text(Math.max(0, replay.unreachableBytes))
                + " in blocks that no query from the start of a prompt reaches.");
        if (plot != null) {
            out.println("Plot: " + plot.toAbsolutePath());
        }
    }

    private void printRestart(PrintStream out) {
        out.println("Restart (" + name(replay.restart) + "): " + replay.askedBlocks
                + " blocks were acknowledged as written; "
                + replay.foundBlocks() + " found, "
                + replay.reusedSince + " in segments reused since, " + replay.damagedAtRestart + " damaged, "
                + replay.lostWritten + " lost. " + PhaseTable.opening(replay.restarted) + ".");
    }

    private static String name(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
    }

    /** The object of {@code --json}; docs/operations.md explains its keys. */
    Json json(Path plot) {
        Json json = new Json();
        json.put("requests", total.requests)
                .put("blocks", total.blocks)
                .put("block_bytes", options.blockBytes)
                .put("hit_blocks", total.hits())
                .put("hit_rate", total.hitRate())
                .put("compute_saved", total.computeSaved());
        json.object("hits_by_tier")
                .put("host", total.hostHits)
                .put("nvme", total.nvmeHits)
                .end();
        json.put("saved_bytes", total.savedBytes())
                .put("restored_bytes", total.restoredBytes())
                .put("wrong_blocks", replay.wrongBlocks())
                .put("lost_written", replay.lostWritten)
                .put("acknowledged_blocks", replay.askedBlocks)
                .put("reused_since_blocks", replay.reusedSince)
                .put("corrupt_blocks", corrupt())
                .put("nvme_hit_bytes", total.nvmeHitBytes)
                .put("nvme_read_bytes", total.logReadBytes)
                .put("drive_read_bytes", total.driveReadBytes)
                .put("nvme_written_bytes", total.logWrittenBytes)
                .put("nvme_admitted_bytes", total.admittedBytes)
                .put("disk_peak_bytes", replay.diskPeakBytes)
                .put("disk_samples", replay.diskSamples)
                .put("cap_bytes", options.capBytes)
                .put("pool_bytes", options.poolBytes)
                .put("dropped_saves", total.dropped)
                .put("stopped_short_blocks", total.shortBlocks)
                .put("waited_s", total.waitedNanosSum / 1e9);
        if (replay.unreachableBytes >= 0) {
            json.put("unreachable_bytes", replay.unreachableBytes);
        } else {
            json.put("unreachable_bytes", (String) null);
        }
        PhaseTable.percentiles(json, "query_us", total.queryNanos);
        PhaseTable.percentiles(json, "save_us", total.saveNanos);
        PhaseTable.percentiles(json, "restore_us", total.restoreNanos);
        json.object("restore_estimate")
                .put("within_2x", total.estimatesWithinTwo())
                .put("n", total.estimateRatios.getTotalCount())
                .put("ratio_p5", total.estimateRatio(5))
                .put("ratio_p50", total.estimateRatio(50))
                .put("ratio_p95", total.estimateRatio(95))
                .end();
        restart(json);
        phase(json, "before", replay.before);
        if (restarted) {
            phase(json, "after", replay.after);
        }
        return json.put("policy", options.policy)
                .put("admission", options.admission)
                .put("on_full", options.onFull)
                .put("pace", options.pace)
                .put("concurrency", options.concurrency)
                .put("segment_bytes", total.segmentBytes)
                .put("seed", options.seed)
                .put("elapsed_s", replay.elapsedNanos / 1e9)
                .put("plot", plot == null ? null : plot.toAbsolutePath().toString());
    }

    private void restart(Json json) {
        json.object("restart").put("kind", name(replay.restart));
        if (restarted) {
            json.put("opened_as", name(replay.restarted.kind))
                    .put("first_query_ms", replay.restarted.firstQueryNanos / 1e6)
                    .put("open_ms", replay.restarted.openNanos / 1e6)
                    .put("index_ms", replay.restarted.wholeNanos / 1e6)
                    .put("blocks_indexed", replay.restarted.blocksIndexed);
        }
        json.end();
    }

    private static String name(String kind) {
        return kind.toLowerCase(Locale.ROOT);
    }

    private static void phase(Json json, String name, Phase phase) {
        json.object(name)
                .put("requests", phase.requests)
                .put("blocks", phase.blocks)
                .put("hit_blocks_host", phase.hostHits)
                .put("hit_blocks_nvme", phase.nvmeHits)
                .put("nvme_hit_bytes", phase.nvmeHitBytes)
                .put("nvme_read_bytes", phase.logReadBytes)
                .put("drive_read_bytes", phase.driveReadBytes)
                .put("elapsed_s", phase.wallNanos / 1e9)
                .end();
    }
}
