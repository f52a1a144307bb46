package io.orbitkv.cli;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import org.HdrHistogram.Histogram;

/** The phases of a demo or a replay side by side, for people. */
final class PhaseTable {
    private final List<Phase> phases;
    private final Table table;

    /**
     * Starts a table.
     *
     * @param heads one for each phase
     * @param phases what is compared
     */
    PhaseTable(List<String> heads, List<Phase> phases) {
        this.phases = phases;
        List<String> all = new ArrayList<>(List.of(""));
        all.addAll(heads);
        table = new Table(true, all.toArray(new String[0]));
    }

    void row(String name, Function<Phase, String> cell) {
        List<String> cells = new ArrayList<>(List.of(name));
        phases.forEach(phase -> cells.add(cell.apply(phase)));
        table.row(cells.toArray(new String[0]));
    }

    void print(PrintStream out) {
        table.print(out);
    }

    /** What a demo and a replay have in common. */
    void commonRows() {
        row("requests", phase -> count(phase.requests));
        row("blocks asked for", phase -> count(phase.blocks));
        row("hits in host memory", phase -> count(phase.hostHits));
        row("hits on NVMe", phase -> count(phase.nvmeHits));
        row("hit rate", phase -> percent(phase.hitRate()));
        row("restored and compared", phase -> Sizes.text(phase.restoredBytes()));
        row("read from the drive", phase -> Sizes.text(phase.driveReadBytes));
        row("saved", phase -> Sizes.text(phase.savedBytes()));
        row("saves dropped, blocks", phase -> count(phase.dropped));
        row("restore rate", phase -> rate(phase.restoredBytes(), phase.restoreNanosSum));
        row("save rate", phase -> rate(phase.savedBytes(), phase.saveNanosSum));
        row("query p50 / p99 / max, us", phase -> micros(phase.queryNanos));
        row("restore of a request, us", phase -> micros(phase.restoreNanos));
        row("save of a request, us", phase -> micros(phase.saveNanos));
        row("wall time", phase -> String.format(Locale.ROOT, "%.1f s", phase.wallNanos / 1e9));
    }

    static String count(long value) {
        return String.format(Locale.ROOT, "%,d", value);
    }

    static String percent(double share) {
        return Double.isNaN(share) ? "-" : String.format(Locale.ROOT, "%.1f %%", 100 * share);
    }

    /** How a store was opened, in words. */
    static String opening(Phase opened) {
        return "Opened as " + opened.kind + " in " + millis(opened.openNanos) + " ms; first query answered "
                + millis(opened.firstQueryNanos) + " ms after opening began, index whole with " + opened.blocksIndexed
                + " blocks after " + millis(opened.wholeNanos) + " ms";
    }

    static String millis(long nanos) {
        return String.format(Locale.ROOT, "%.0f", nanos / 1e6);
    }

    private static String micros(Histogram nanos) {
        return String.format(
                Locale.ROOT,
                "%.1f / %.1f / %.0f",
                nanos.getValueAtPercentile(50) / 1e3,
                nanos.getValueAtPercentile(99) / 1e3,
                nanos.getMaxValue() / 1e3);
    }

    private static String rate(long bytes, long nanos) {
        return String.format(Locale.ROOT, "%.2f GiB/s", gibPerSecond(bytes, nanos));
    }

    static double gibPerSecond(long bytes, long nanos) {
        return nanos == 0 ? 0 : bytes / (double) (1 << 30) / (nanos / 1e9);
    }

    /** Percentiles in microseconds under a name. */
    static void percentiles(Json json, String name, Histogram nanos) {
        json.object(name)
                .put("p50", nanos.getValueAtPercentile(50) / 1e3)
                .put("p99", nanos.getValueAtPercentile(99) / 1e3)
                .put("max", nanos.getMaxValue() / 1e3)
                .put("n", nanos.getTotalCount())
                .end();
    }
}
