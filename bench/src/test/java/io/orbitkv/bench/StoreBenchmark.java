package io.orbitkv.bench;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Location;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.tiers.LogGeometry;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Question: what do save and restore cost a block? Floors, beside them: copy and checksum of the same bytes (save), a plain
 * copy (restore from host memory), {@code pread} of the same place (restore from the drive). {@code orbitkv bench} asks the
 * same with both sides alternating in one loop.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@State(Scope.Thread)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class StoreBenchmark {
    private static final int CALL_BLOCKS = 64;
    private static final int SETS = 4;
    private static final int KEY_BYTES = BenchStore.KEY_BYTES;
    private static final long POOL_BYTES_MIN = 16L << 20;
    private static final int SEGMENT_BYTES_MIN = 1 << 20;
    private static final int SEGMENT_BLOCKS = 8;

    @Param({"65536"})
    int blockBytes;

    private BenchStore bench;
    private DataFolder folder;
    private StorageFile[] files;
    private long[] offsets;
    private MemoryRegion source;
    private MemoryRegion target;
    private Lease cold;
    private Lease hot;
    private UnsafeBuffer fresh;
    private final Blocks blocks = Blocks.unset();
    private final SaveResult result = new SaveResult();
    private final BlockChecksum checksum = new BlockChecksum();
    private final SplittableRandom random = new SplittableRandom(2); // not the seed of the set-up keys
    private int next;

    /** Fills a store: one prompt that is on the drive alone, one that is in host memory. */
    @Setup(Level.Trial)
    public void open() {
        long setBytes = (long) CALL_BLOCKS * blockBytes;
        long poolBytes = Math.max(POOL_BYTES_MIN, 8 * setBytes);
        Path parent = Path.of(System.getProperty("orbitkv.bench.folder", System.getProperty("java.io.tmpdir")));
        bench = BenchStore.open(
                parent,
                blockBytes,
                1,
                made -> StoreOptions.in(made)
                        .poolBytes(poolBytes)
                        .capBytes(6 * poolBytes + (64L << 20))
                        .segmentBytes(segmentBytes())
                        .leaseMillis(TimeUnit.HOURS.toMillis(24))
                        .blockBytesLargest(blockBytes));
        source = MemoryRegion.anonymous(SETS * setBytes, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL);
        source.fill(0, source.bytes(), (byte) 7);
        target = bench.store.allocate(SETS * setBytes);
        target.fill(0, target.bytes(), (byte) 9);
        fresh = bench.freshKeys(CALL_BLOCKS);
        UnsafeBuffer coldKeys = bench.freshKeys(CALL_BLOCKS);
        save(coldKeys);
        for (long pushed = 0; pushed < 2 * poolBytes; pushed += setBytes) {
            newKeys();
            save(fresh);
        }
        UnsafeBuffer hotKeys = bench.freshKeys(CALL_BLOCKS);
        save(hotKeys);
        cold = bench.store.query(bench.family, coldKeys, 0, CALL_BLOCKS);
        hot = bench.store.query(bench.family, hotKeys, 0, CALL_BLOCKS);
        locate(coldKeys);
    }

    private int segmentBytes() {
        return Math.max(SEGMENT_BYTES_MIN, Integer.highestOneBit(SEGMENT_BLOCKS * blockBytes));
    }

    private void locate(UnsafeBuffer keys) {
        folder = HostFolder.open(bench.folder);
        files = new StorageFile[CALL_BLOCKS];
        offsets = new long[CALL_BLOCKS];
        LogGeometry geometry = new LogGeometry(segmentBytes(), 1, new byte[LogGeometry.STORE_ID_BYTES]);
        for (int block = 0; block < CALL_BLOCKS; block++) {
            Location place = bench.store.locate(bench.shard, keys, block * KEY_BYTES);
            if (place.inHost() || !place.onDrive()) {
                throw new IllegalStateException("the cold prompt should be on the drive alone: " + place);
            }
            files[block] = folder.open(LogGeometry.fileName(geometry.file(place.segment())), false);
            offsets[block] = geometry.fileOffset(place.segment(), place.page());
        }
    }

    /** Removes the store. */
    @TearDown(Level.Trial)
    public void close() {
        cold.close();
        hot.close();
        for (StorageFile file : files) {
            file.close();
        }
        folder.close();
        bench.close();
        source.close();
    }

    /** Empties the queue to the drive and makes keys, so that a save finds room and nothing stored. */
    @State(Scope.Thread)
    public static class EmptyQueue {
        /** Waits for the drive. */
        @Setup(Level.Invocation)
        public void drain(StoreBenchmark benchmark) {
            benchmark.bench.sync(io.orbitkv.store.Level.WRITTEN);
            benchmark.newKeys();
        }
    }

    private void newKeys() {
        for (int at = 0; at < CALL_BLOCKS * KEY_BYTES; at += Long.BYTES) {
            fresh.putLong(at, random.nextLong());
        }
    }

    /** Where the next call's bytes lie: not where the last ones did. */
    private long nextSet() {
        next = (next + 1) % SETS;
        return (long) next * CALL_BLOCKS * blockBytes;
    }

    private void save(UnsafeBuffer keys) {
        blocks.set(source, nextSet());
        bench.store.save(bench.shard, null, 0, keys, 0, CALL_BLOCKS, blocks, result);
        if (result.accepted() < CALL_BLOCKS) {
            throw new IllegalStateException("a save was not taken: " + result);
        }
        bench.sync(io.orbitkv.store.Level.WRITTEN);
    }

    /** One call that saves 64 blocks; the time is a block's. */
    @Benchmark
    @OperationsPerInvocation(CALL_BLOCKS)
    public int save(EmptyQueue queue) {
        blocks.set(source, nextSet());
        bench.store.save(bench.shard, null, 0, fresh, 0, CALL_BLOCKS, blocks, result);
        return result.accepted();
    }

    /** What a save can't do without. */
    @Benchmark
    @OperationsPerInvocation(CALL_BLOCKS)
    public int saveFloorCopyAndChecksum(EmptyQueue queue) {
        long set = nextSet();
        int sum = 0;
        for (int block = 0; block < CALL_BLOCKS; block++) {
            long at = set + (long) block * blockBytes;
            target.copyFrom(at, source, at, blockBytes);
            sum += checksum.reset().update(target, at, blockBytes).value();
        }
        return sum;
    }

    /** One call that restores 64 blocks from host memory; the time is a block's. */
    @Benchmark
    @OperationsPerInvocation(CALL_BLOCKS)
    public int restoreFromHost() {
        return restore(hot, 0, CALL_BLOCKS);
    }

    /** What a restore from host memory can't do without. */
    @Benchmark
    @OperationsPerInvocation(CALL_BLOCKS)
    public long restoreFloorCopy() {
        long set = nextSet();
        for (int block = 0; block < CALL_BLOCKS; block++) {
            long at = set + (long) block * blockBytes;
            target.copyFrom(at, source, at, blockBytes);
        }
        return set;
    }

    /** One block from the drive. */
    @Benchmark
    public int restoreFromNvme() {
        return restore(cold, random.nextInt(CALL_BLOCKS), 1);
    }

    /** The same bytes of the same file. */
    @Benchmark
    public long restoreFloorPread() {
        int block = random.nextInt(CALL_BLOCKS);
        files[block].read(offsets[block], target, 0, blockBytes);
        return block;
    }

    private int restore(Lease lease, int from, int count) {
        blocks.set(target, nextSet());
        int restored = bench.store.restore(lease, bench.shard, from, count, blocks);
        if (restored < count) {
            throw new IllegalStateException("only " + restored + " of " + count + " blocks were restored");
        }
        return restored;
    }
}
