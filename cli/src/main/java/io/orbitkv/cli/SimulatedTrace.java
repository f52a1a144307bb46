package io.orbitkv.cli;

import io.orbitkv.bench.simulate.KeyTrace;
import io.orbitkv.bench.simulate.SimResult;
import io.orbitkv.bench.trace.TraceReader;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;

/** What simulations have in common: reading a trace's keys, many runs with progress, and how results stand in JSON. */
final class SimulatedTrace {
    private SimulatedTrace() {}

    /** Reads the keys, with progress. */
    static KeyTrace read(TraceOptions options) {
        Terminal terminal = Terminal.onStderr();
        try (TraceReader reader = options.open()) {
            return KeyTrace.read(reader, options.blockTokens, requests -> {
                if (terminal.isDue()) {
                    terminal.show(String.format(Locale.ROOT, "reading %s: %,d requests", options.file, requests));
                }
            });
        } finally {
            terminal.clear();
        }
    }

    /** Does runs 0 to count-1, several at a time, with progress. */
    static void each(String what, int count, IntConsumer run) {
        Terminal terminal = Terminal.onStderr();
        AtomicInteger done = new AtomicInteger();
        try {
            IntStream.range(0, count).parallel().forEach(i -> {
                run.accept(i);
                int ended = done.incrementAndGet();
                synchronized (terminal) {
                    if (terminal.isDue()) {
                        terminal.show(what + ": " + ended + " of " + count + " runs");
                    }
                }
            });
        } finally {
            terminal.clear();
        }
    }

    static Json put(Json json, TraceOptions options, KeyTrace keys) {
        return json.put("trace", options.file.toString())
                .put("requests", keys.requests())
                .put("blocks", keys.blocks())
                .put("unique_blocks", keys.uniqueBlocks());
    }

    /** Writes a result; null values where a capacity was too small for the policy. */
    static Json put(Json json, SimResult result) {
        boolean has = result != null;
        return json.put("host_blocks", has ? result.hostBlocks() : Double.NaN)
                .put("hit_rate", has ? result.hitRate() : Double.NaN)
                .put("host_hit_rate", has ? result.hostHitRate() : Double.NaN)
                .put("compute_saved", has ? result.computeSaved() : Double.NaN)
                .put("host_compute_saved", has ? result.hostSaved() : Double.NaN)
                .put("written_blocks", has ? result.writtenBlocks() : Double.NaN)
                .put("written_again_blocks", has ? result.writtenAgainBlocks() : Double.NaN)
                .put("written_per_unique", has ? result.writesPerUnique() : Double.NaN)
                .put("unreachable", has ? result.unreachable() : Double.NaN);
    }
}
