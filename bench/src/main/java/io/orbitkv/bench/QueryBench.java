package io.orbitkv.bench;

import com.sun.management.ThreadMXBean;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Level;
import io.orbitkv.store.SaveResult;
import java.lang.management.ManagementFactory;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Question: what does {@code KvStore.query} add to the match that it rests on?
 *
 * <p>Small blocks of long prefixes are saved into a store; then stretches of them are asked for from random blocks on,
 * each until its lease is closed again. Every answer has to have the whole length.
 */
public final class QueryBench {
    private static final int BLOCK_BYTES = 4096;
    private static final int SAVE_BLOCKS = 64;
    private static final int WARM_UP_QUERIES = 2000;
    private static final int KEY_BYTES = BenchStore.KEY_BYTES;

    private final BenchSettings settings;
    private final int blocks;
    private final int queryBlocks;
    private final int queries;

    /**
     * What a run found. Times are microseconds of a query with its lease.
     *
     * @param queries samples
     * @param p50Micros of all samples
     * @param p99Micros of all samples
     * @param maxMicros of all samples
     * @param undisturbedQueries samples whose wall time exceeds their CPU time by less than 20 µs
     * @param undisturbedP50Micros of those
     * @param undisturbedP99Micros of those
     * @param allocatedBytesPerQuery heap bytes of the asking thread
     * @param blocks blocks in the store
     * @param shortQueries queries that found less than is there
     */
    public record Result(
            long queries,
            double p50Micros,
            double p99Micros,
            double maxMicros,
            long undisturbedQueries,
            double undisturbedP50Micros,
            double undisturbedP99Micros,
            double allocatedBytesPerQuery,
            long blocks,
            long shortQueries) {}

    /**
     * Prepares a run.
     *
     * @param settings folder, seed and progress; block sizes and rounds are not looked at
     * @param blocks blocks in the store, at least two prefixes
     * @param queryBlocks blocks of a query; prefixes are twice as long
     * @param queries samples
     */
    public QueryBench(BenchSettings settings, int blocks, int queryBlocks, int queries) {
        this.settings = settings;
        this.blocks = blocks / (2 * queryBlocks) * (2 * queryBlocks);
        this.queryBlocks = queryBlocks;
        this.queries = queries;
    }

    /** Runs it: some seconds. */
    public Result run() {
        long bytes = (long) blocks * BLOCK_BYTES;
        try (BenchStore bench = BenchStore.open(
                settings.folder(), BLOCK_BYTES, bytes + bytes / 4 + (64L << 20), 2 * bytes + (256L << 20), 0, 1)) {
            UnsafeBuffer keys = bench.freshKeys(blocks);
            fill(bench, keys, settings.progress());
            settings.progress().accept("query: " + queries + " samples");
            return measure(bench, keys);
        }
    }

    private void fill(BenchStore bench, UnsafeBuffer keys, Consumer<String> progress) {
        SaveResult result = new SaveResult();
        try (MemoryRegion source =
                MemoryRegion.anonymous((long) SAVE_BLOCKS * BLOCK_BYTES, PageKind.SMALL, MemoryPurpose.TOOL)) {
            Blocks from = Blocks.of(source);
            int prefixBlocks = 2 * queryBlocks;
            for (int block = 0; block < blocks; ) {
                boolean first = block % prefixBlocks == 0;
                int count = Math.min(SAVE_BLOCKS, prefixBlocks - block % prefixBlocks);
                int parent = first ? 0 : (block - 1) * KEY_BYTES;
                bench.store.save(
                        bench.shard, first ? null : keys, parent, keys, block * KEY_BYTES, count, from, result);
                int taken = result.accepted() + result.present();
                block += taken;
                if (taken < count) {
                    bench.sync(Level.WRITTEN);
                    progress.accept("query: saved " + block + " of " + blocks + " blocks");
                }
            }
        }
        bench.sync(Level.WRITTEN);
    }

    private Result measure(BenchStore bench, UnsafeBuffer keys) {
        Histogram all = new Histogram(60_000_000_000L, 3);
        Histogram undisturbed = new Histogram(60_000_000_000L, 3);
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        SplittableRandom random = new SplittableRandom(settings.seed());
        long shortQueries = 0;
        long allocatedBefore = 0;
        for (int query = -WARM_UP_QUERIES; query < queries; query++) {
            if (query == 0) {
                allocatedBefore = threads.getCurrentThreadAllocatedBytes();
            }
            int prefix = random.nextInt(blocks / (2 * queryBlocks));
            int first = prefix * 2 * queryBlocks + random.nextInt(queryBlocks);
            long cpu = threads.getCurrentThreadCpuTime();
            long began = System.nanoTime();
            Lease lease = bench.store.query(bench.family, keys, first * KEY_BYTES, queryBlocks);
            int found = lease.blocks();
            lease.close();
            long nanos = System.nanoTime() - began;
            cpu = threads.getCurrentThreadCpuTime() - cpu;
            if (found < queryBlocks) {
                shortQueries++;
            }
            if (query >= 0) {
                all.recordValue(nanos);
                if (nanos - cpu < MatchBench.UNDISTURBED_NANOS) {
                    undisturbed.recordValue(nanos);
                }
            }
        }
        double allocated = (double) (threads.getCurrentThreadAllocatedBytes() - allocatedBefore) / queries;
        if (shortQueries > 0) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS, shortQueries + " queries of the benchmark found less than was saved");
        }
        return new Result(
                all.getTotalCount(),
                micros(all, 50),
                micros(all, 99),
                all.getMaxValue() / 1e3,
                undisturbed.getTotalCount(),
                micros(undisturbed, 50),
                micros(undisturbed, 99),
                allocated,
                blocks,
                shortQueries);
    }

    private static double micros(Histogram nanos, double percentile) {
        return nanos.getValueAtPercentile(percentile) / 1e3;
    }
}
