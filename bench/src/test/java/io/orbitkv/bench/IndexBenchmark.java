package io.orbitkv.bench;

import io.orbitkv.index.Match;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.Tier;
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
 * Question: what do a match and the bookkeeping of a publish cost, by length and size of the index? Floor: a copy of
 * what a run holds of each block for a match with sizes (12 bytes: pages, stored bytes, checksum) from memory. {@link MatchBench} asks the same beside a writer.
 */
@BenchmarkMode(Mode.SampleTime) // percentiles: a mean hides the stalls we care about
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@State(Scope.Thread)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class IndexBenchmark {
    private static final int PREFIX_BLOCKS = 8192;
    private static final int SAVE_BLOCKS = 64;
    private static final int KEY_BYTES = PrefixIndex.KEY_BYTES;
    private static final int SEGMENTS = 1024;
    private static final int ROW_BYTES = 12;

    @Param({"1000000"})
    int blocks;

    @Param({"64", "4096"})
    int matchBlocks;

    private Generations host;
    private Generations nvme;
    private PrefixIndex index;
    private int namespace;
    private int prefixes;
    private Match match;
    private UnsafeBuffer keys;
    private UnsafeBuffer absent;
    private SplittableRandom random;
    private int churn;
    private MemoryRegion floor;
    private MemoryRegion copied;

    /** Fills the index, 64 blocks of each prefix in turn. */
    @Setup(Level.Trial)
    public void fill() {
        host = new Generations(SEGMENTS);
        nvme = new Generations(SEGMENTS);
        index = new PrefixIndex(2L * blocks, host, nvme);
        namespace = index.newNamespace();
        prefixes = Math.max(1, blocks / PREFIX_BLOCKS);
        match = new Match(matchBlocks);
        keys = new UnsafeBuffer(new byte[(matchBlocks + SAVE_BLOCKS + 1) * KEY_BYTES]);
        absent = new UnsafeBuffer(new byte[matchBlocks * KEY_BYTES]);
        random = new SplittableRandom(1);
        floor = MemoryRegion.anonymous(
                (long) (blocks + matchBlocks + 1) * ROW_BYTES, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL);
        floor.fill(0, floor.bytes(), (byte) 1);
        copied = MemoryRegion.anonymous((long) matchBlocks * ROW_BYTES, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL);
        for (int block = 0; block < PREFIX_BLOCKS; block += SAVE_BLOCKS) {
            for (int prefix = 0; prefix < prefixes; prefix++) {
                save(prefix, block, Extent.pack(prefix % (SEGMENTS - 1), 0, 1));
            }
        }
    }

    /** Frees the index. */
    @TearDown(Level.Trial)
    public void close() {
        index.close();
        host.close();
        nvme.close();
        floor.close();
        copied.close();
    }

    /** A stretch of a random prefix from a random block on. Writing its keys is part of the time (about 1 ns a block). */
    @Benchmark
    public int matchFromAnyBlock() {
        int prefix = random.nextInt(prefixes);
        int from = random.nextInt(PREFIX_BLOCKS - matchBlocks + 1);
        for (int i = 0; i < matchBlocks; i++) {
            key(prefix, from + i, i * KEY_BYTES);
        }
        return index.match(namespace, keys, 0, matchBlocks, match);
    }

    /** As many blocks' worth from a random place of memory that is as large as all blocks' are. */
    @Benchmark
    public long matchFloorCopyOfRows() {
        long rowsBytes = (long) matchBlocks * ROW_BYTES;
        long at = random.nextLong((floor.bytes() - rowsBytes) / ROW_BYTES) * ROW_BYTES;
        copied.copyFrom(0, floor, at, rowsBytes);
        return at;
    }

    /** Keys that are not there. */
    @Benchmark
    public int missAtTheFirstBlock() {
        absent.putLong(0, random.nextLong());
        return index.match(namespace, absent, 0, matchBlocks, match);
    }

    /** 64 blocks that continue a prefix; the oldest are dropped and swept as an eviction would. The time is a block's. */
    @Benchmark
    @OperationsPerInvocation(SAVE_BLOCKS)
    public long publishBlocks() {
        int segment = SEGMENTS - 1;
        save(1_000_000 + churn / 16, churn % 16 * SAVE_BLOCKS, Extent.pack(segment, 0, host.current(segment)));
        churn++;
        if (churn % 256 == 0) {
            host.raise(segment);
        }
        index.sweep(8);
        return index.blocks();
    }

    private void save(int prefix, int from, long extent) {
        for (int i = 0; i <= SAVE_BLOCKS; i++) {
            key(prefix, from + i - 1, i * KEY_BYTES);
        }
        index.expect(SAVE_BLOCKS);
        for (int i = 1; i <= SAVE_BLOCKS; i++) {
            int at = i * KEY_BYTES;
            index.publish(
                    namespace, from + i == 1 ? null : keys, at - KEY_BYTES, keys, at, 65_536, i, Tier.HOST, extent);
        }
    }

    private void key(int prefix, int block, int offset) {
        long word = ((long) prefix << 32 | block) * 0x9E3779B97F4A7C15L;
        long key0 = (word ^ word >>> 29) * 0xBF58476D1CE4E5B9L;
        keys.putLong(offset, key0);
        keys.putLong(offset + Long.BYTES, key0 * 31 + 1);
    }
}
