package io.orbitkv.cli;

import io.orbitkv.bench.simulate.KeyTrace;
import io.orbitkv.bench.simulate.SimPolicy;
import io.orbitkv.bench.simulate.SimResult;
import io.orbitkv.bench.simulate.Simulator;
import io.orbitkv.bench.simulate.StoreShape;
import io.orbitkv.store.StoreGeometry;
import io.orbitkv.store.StoreOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/** The half of a replay that runs no store: every policy on the keys of a trace. */
final class SimulateRun {
    private static final SimPolicy[] POLICIES = SimPolicy.values();

    private record Place(String text, long blocks) {}

    private final TraceOptions trace;
    private final SimulateOptions simulation;
    private final ReplayOptions store;
    private final Path plot;
    private final CommonOptions common;

    SimulateRun(TraceOptions trace, SimulateOptions simulation, ReplayOptions store, Path plot, CommonOptions common) {
        this.trace = trace;
        this.simulation = simulation;
        this.store = store;
        this.plot = plot;
        this.common = common;
    }

    /** Runs it; the exit code. */
    int run() {
        long started = System.nanoTime();
        KeyTrace keys = SimulatedTrace.read(trace);
        List<Place> places = places(keys);
        Simulator simulator = new Simulator(keys, simulation.hostShare(), store.admissionPrice);
        SimResult[] results = new SimResult[POLICIES.length * places.size()];
        SimulatedTrace.each(
                "simulate",
                results.length,
                i -> results[i] = simulator.run(
                        POLICIES[i / places.size()],
                        places.get(i % places.size()).blocks()));
        SimResult asGiven = store.isSized() ? simulator.run(shape(), "store") : null;
        double elapsedSeconds = (System.nanoTime() - started) / 1e9;
        print(keys, places, results, asGiven, elapsedSeconds);
        if (plot != null) {
            PlotFile.write(plot, svg(keys, places, results));
        }
        common.print(json(keys, places, results, asGiven, elapsedSeconds));
        return 0;
    }

    /** The store that the options describe, as a real one would be cut. */
    private StoreShape shape() {
        StoreOptions options = StoreOptions.inFolders(store.data.isEmpty() ? List.of(Path.of(".")) : store.data)
                .poolBytes(store.poolBytes)
                .capBytes(store.capBytes)
                .blockBytesLargest((int) store.blockBytes);
        if (store.segmentBytes != null) {
            options.segmentBytes(store.segmentBytes);
        }
        StoreShape shape = StoreShape.of(
                StoreGeometry.of(options),
                (int) store.blockBytes,
                store.eviction(),
                store.writePolicy(),
                store.admissionPrice);
        return "written".equals(store.pace) ? shape.withoutQueue() : shape;
    }

    private List<Place> places(KeyTrace keys) {
        List<Place> places = new ArrayList<>();
        for (Capacity capacity : simulation.parsed()) {
            long blocks = capacity.blocks(keys.uniqueBlocks(), store.blockBytes);
            if (blocks < 1 && !simulation.isGiven()) {
                continue; // a short trace has no half percent
            }
            if (blocks < 1) {
                throw store.bad("--capacities: " + capacity.text() + " is less than one block of "
                        + Sizes.text(store.blockBytes) + "; give more");
            }
            places.add(new Place(capacity.text(), blocks));
        }
        places.sort(Comparator.comparingLong(Place::blocks));
        return places;
    }

    private void print(
            KeyTrace keys, List<Place> places, SimResult[] results, SimResult asGiven, double elapsedSeconds) {
        common.text()
                .println(String.format(
                        Locale.ROOT,
                        "%s: %,d requests, %,d blocks, %,d of them unique (%s in blocks of %s); two tiers: host memory"
                                + " of %.0f %%",
                        trace.file.getFileName(),
                        keys.requests(),
                        keys.blocks(),
                        keys.uniqueBlocks(),
                        Sizes.text(keys.uniqueBlocks() * store.blockBytes),
                        Sizes.text(store.blockBytes),
                        100 * simulation.hostShare()));
        table("compute saved, %", places, results, result -> 100 * result.computeSaved(), "%.1f");
        table("block hit rate, %", places, results, result -> 100 * result.hitRate(), "%.1f");
        table("written per unique block", places, results, SimResult::writesPerUnique, "%.2f");
        if (asGiven != null) {
            common.text()
                    .println(String.format(
                            Locale.ROOT,
                            "a store with --pool-size %s, --ssd-cache-capacity %s, --policy %s and --ssd-write-policy %s:"
                                    + " hit rate %.1f %% (host memory %.1f %%), compute saved %.1f %%, %,d blocks written"
                                    + " and %,d again",
                            Sizes.text(store.poolBytes),
                            Sizes.text(store.capBytes),
                            store.policy,
                            store.admission,
                            100 * asGiven.hitRate(),
                            100 * asGiven.hostHitRate(),
                            100 * asGiven.computeSaved(),
                            asGiven.writtenBlocks(),
                            asGiven.writtenAgainBlocks()));
        }
        common.text().println(String.format(Locale.ROOT, "%d runs in %.1f s", results.length, elapsedSeconds));
    }

    private void table(
            String what, List<Place> places, SimResult[] results, ToDoubleFunction<SimResult> value, String form) {
        String[] heads = new String[1 + places.size()];
        heads[0] = what;
        for (int i = 0; i < places.size(); i++) {
            heads[1 + i] = places.get(i).text();
        }
        Table table = new Table(true, heads);
        for (int p = 0; p < POLICIES.length; p++) {
            String[] cells = new String[heads.length];
            cells[0] = POLICIES[p].label();
            for (int i = 0; i < places.size(); i++) {
                SimResult result = results[p * places.size() + i];
                cells[1 + i] = result == null ? "-" : String.format(Locale.ROOT, form, value.applyAsDouble(result));
            }
            table.row(cells);
        }
        table.print(common.text());
        common.text().println();
    }

    private String svg(KeyTrace keys, List<Place> places, SimResult[] results) {
        double[] capacities = new double[places.size()];
        String[] ticks = new String[places.size()];
        for (int i = 0; i < capacities.length; i++) {
            capacities[i] = places.get(i).blocks();
            ticks[i] = places.get(i).text();
        }
        CapacityPlot drawing = new CapacityPlot(
                "OrbitKV: what each policy saves",
                String.format(
                        Locale.ROOT,
                        "%s · %,d requests · %,d unique blocks",
                        trace.file.getFileName(),
                        keys.requests(),
                        keys.uniqueBlocks()),
                "capacity",
                capacities,
                ticks);
        for (int p = 0; p < POLICIES.length; p++) {
            double[] shares = new double[capacities.length];
            for (int i = 0; i < shares.length; i++) {
                SimResult result = results[p * places.size() + i];
                shares[i] = result == null ? Double.NaN : result.computeSaved();
            }
            drawing.add(POLICIES[p].label(), shares, POLICIES[p].hasHost());
        }
        return drawing.svg();
    }

    private Json json(
            KeyTrace keys, List<Place> places, SimResult[] results, SimResult asGiven, double elapsedSeconds) {
        Json json = SimulatedTrace.put(new Json().put("simulate", true), trace, keys)
                .put("block_bytes", store.blockBytes)
                .put("host_share", simulation.hostShare())
                .put("admission_price", store.admissionPrice)
                .put("elapsed_s", elapsedSeconds)
                .put("plot", plot == null ? null : plot.toAbsolutePath().toString());
        if (asGiven != null) {
            json.object("store")
                    .put("pool_bytes", store.poolBytes)
                    .put("cap_bytes", store.capBytes)
                    .put("policy", store.policy)
                    .put("admission", store.admission)
                    .put("nvme_blocks", asGiven.capacityBlocks());
            SimulatedTrace.put(json, asGiven).end();
        }
        json.array("results");
        for (int i = 0; i < results.length; i++) {
            Place place = places.get(i % places.size());
            json.element()
                    .put("policy", POLICIES[i / places.size()].label())
                    .put("capacity", place.text())
                    .put("capacity_blocks", place.blocks())
                    .put("capacity_bytes", place.blocks() * store.blockBytes);
            SimulatedTrace.put(json, results[i]).end();
        }
        return json.end();
    }
}
