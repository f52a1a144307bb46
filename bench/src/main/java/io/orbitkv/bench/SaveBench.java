package io.orbitkv.bench;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.Level;
import io.orbitkv.store.SaveResult;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Question: what does a save into host memory cost beside a plain cold copy of the same bytes, with and without CRC32C?
 *
 * <p>Each round copies the same source three ways, in alternating order: plainly, with the checksum of the destination
 * by pieces that stay in the cache, and through {@code KvStore.save}. The source is larger than the caches, and every
 * destination is memory that was touched before and not lately. Saves go on to the drive behind the round; the next
 * round waits for it. The store's bookkeeping is what a save takes beyond copy and checksum; small blocks show it best.
 */
public final class SaveBench {
    private static final long ROUND_BYTES = 64L << 20;
    private static final int ROUND_BLOCKS_MAX = 4096;
    private static final int CALL_BLOCKS = 64;
    private static final long CALL_BYTES_MAX = 16L << 20;
    private static final int WARM_UPS_MIN = 60;
    private static final int POOL_ROUNDS = 4;
    private static final int CAP_ROUNDS = 12;
    private static final long CAP_BYTES_MIN = 256L << 20;

    /** As the store does it: the checksum reads what the copy has just put into the cache. */
    private static final int PIECE_BYTES = 128 << 10;

    private final BenchSettings settings;
    private final int blockBytes;
    private final int blocks;
    private final int callBlocks;
    private final BlockChecksum checksum = new BlockChecksum();
    private final Blocks source = Blocks.unset();
    private final SaveResult result = new SaveResult();
    private int sink;

    private SaveBench(BenchSettings settings, int blockBytes) {
        this.settings = settings;
        this.blockBytes = blockBytes;
        blocks = (int) Math.max(8, Math.min(ROUND_BLOCKS_MAX, ROUND_BYTES / blockBytes));
        callBlocks = (int) Math.max(1, Math.min(CALL_BLOCKS, CALL_BYTES_MAX / blockBytes));
    }

    /** Runs every block size; a row of bookkeeping follows those of its size, in nanoseconds of a block. */
    public static BenchResult run(BenchSettings settings) {
        List<BenchRow> rows = new ArrayList<>();
        List<Pages> pages = new ArrayList<>();
        for (int blockBytes : settings.blockBytes()) {
            new SaveBench(settings, blockBytes).run(rows, pages);
        }
        return new BenchResult(rows, pages);
    }

    private void run(List<BenchRow> rows, List<Pages> pages) {
        long roundBytes = (long) blocks * blockBytes;
        long padded = (long) blocks * ((blockBytes + 4095) / 4096 * 4096);
        long poolBytes = Math.max(POOL_ROUNDS * padded, 64L << 20);
        long capBytes = Math.max(CAP_ROUNDS * padded, CAP_BYTES_MIN);
        // Every page of the pool has been written once, and what runs is what the compiler ends with.
        int warmUps = Math.max((int) (poolBytes / padded) + 1, WARM_UPS_MIN);
        try (BenchStore bench =
                        BenchStore.open(settings.folder(), blockBytes, poolBytes, capBytes, 0, settings.seed());
                MemoryRegion from = MemoryRegion.anonymous(roundBytes, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL);
                MemoryRegion to =
                        MemoryRegion.anonymous(2 * roundBytes, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL)) {
            from.fill(0, from.bytes(), (byte) 7);
            to.fill(0, to.bytes(), (byte) 9);
            double[] copy = new double[settings.rounds()];
            double[] copyCrc = new double[settings.rounds()];
            double[] save = new double[settings.rounds()];
            for (int round = -warmUps; round < settings.rounds(); round++) {
                settings.progress().accept("save, blocks of " + blockBytes + " bytes: round " + round);
                UnsafeBuffer keys = bench.freshKeys(blocks);
                int slot = Math.max(round, 0);
                for (int step = 0; step < 3; step++) {
                    switch (Math.floorMod(step + round, 3)) {
                        case 0 -> copy[slot] = copy(from, to);
                        case 1 -> copyCrc[slot] = copyAndChecksum(from, to, roundBytes);
                        default -> save[slot] = save(bench, keys, from);
                    }
                    bench.sync(Level.WRITTEN);
                }
            }
            double[] bookkeeping = new double[settings.rounds()];
            for (int round = 0; round < bookkeeping.length; round++) {
                bookkeeping[round] = save[round] - copyCrc[round]; // below zero where noise is larger than it
            }
            rows.add(BenchRow.ofFloor("plain copy", blockBytes, callBlocks, copy));
            rows.add(BenchRow.of("copy + CRC32C", "plain copy", blockBytes, callBlocks, copyCrc, copy));
            rows.add(BenchRow.of("save", "copy + CRC32C", blockBytes, callBlocks, save, copyCrc));
            rows.add(BenchRow.of("save", "plain copy", blockBytes, callBlocks, save, copy));
            rows.add(BenchRow.ofFloor("bookkeeping of a save", blockBytes, callBlocks, bookkeeping));
            pages.add(Pages.of(from));
        }
    }

    private double copy(MemoryRegion from, MemoryRegion to) {
        long began = System.nanoTime();
        for (int block = 0; block < blocks; block++) {
            long at = (long) block * blockBytes;
            to.copyFrom(at, from, at, blockBytes);
        }
        return (double) (System.nanoTime() - began) / blocks;
    }

    private double copyAndChecksum(MemoryRegion from, MemoryRegion to, long toOffset) {
        long began = System.nanoTime();
        for (int block = 0; block < blocks; block++) {
            long at = (long) block * blockBytes;
            checksum.reset();
            for (int done = 0; done < blockBytes; done += PIECE_BYTES) {
                int piece = Math.min(PIECE_BYTES, blockBytes - done);
                to.copyFrom(toOffset + at + done, from, at + done, piece);
                checksum.update(to, toOffset + at + done, piece);
            }
            sink ^= checksum.value();
        }
        return (double) (System.nanoTime() - began) / blocks;
    }

    private double save(BenchStore bench, UnsafeBuffer keys, MemoryRegion from) {
        long nanos = 0;
        for (int block = 0; block < blocks; ) {
            int count = Math.min(callBlocks, blocks - block);
            source.set(from, (long) block * blockBytes);
            long began = System.nanoTime();
            bench.store.save(bench.shard, null, 0, keys, block * BenchStore.KEY_BYTES, count, source, result);
            nanos += System.nanoTime() - began;
            if (result.accepted() < count) {
                throw new OrbitKvException(
                        ErrorCode.FOUND_PROBLEMS,
                        "a save of the benchmark was not taken: " + result + "; is the drive below " + bench.folder
                                + " much slower than memory?");
            }
            block += count;
        }
        return (double) nanos / blocks;
    }

    /** Keeps the checksums from being optimised away. */
    int sink() {
        return sink;
    }
}
