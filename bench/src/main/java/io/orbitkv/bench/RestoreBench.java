package io.orbitkv.bench;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Level;
import io.orbitkv.store.Location;
import io.orbitkv.store.SaveResult;
import io.orbitkv.tiers.LogGeometry;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Question: what does a restore cost beside the least that could do it: from host memory beside a plain cold copy, from
 * NVMe beside {@code pread} of the same bytes of the same files, one block at a time and in batches?
 *
 * <p>Blocks are saved as prefixes of 32. The first ones leave the pool for the drive, the last ones stay in it. Each
 * round reads the same blocks both ways in a random order, and rounds alternate which way comes first, so that what a
 * host's cache does for the second serves both.
 */
public final class RestoreBench {
    private static final long ROUND_BYTES = 64L << 20;
    private static final int PREFIX_BLOCKS = 32;
    private static final int READ_THREADS = 16;
    private static final int SEGMENTS_PER_POOL = 32;

    private final BenchSettings settings;
    private final int blockBytes;
    private final int prefixes;
    private final int[] order;
    private final Blocks blocks = Blocks.unset();
    private final SaveResult result = new SaveResult();
    private final Map<String, StorageFile> files = new HashMap<>();

    private RestoreBench(BenchSettings settings, int blockBytes) {
        this.settings = settings;
        this.blockBytes = blockBytes;
        prefixes = (int) Math.max(2, ROUND_BYTES / blockBytes / PREFIX_BLOCKS);
        order = new int[prefixes];
    }

    /** Runs every block size. */
    public static BenchResult run(BenchSettings settings) {
        List<BenchRow> rows = new ArrayList<>();
        List<Pages> pages = new ArrayList<>();
        for (int blockBytes : settings.blockBytes()) {
            new RestoreBench(settings, blockBytes).run(rows, pages);
        }
        return new BenchResult(rows, pages);
    }

    private void run(List<BenchRow> rows, List<Pages> pages) {
        long padded = (blockBytes + 4095L) / 4096 * 4096;
        long setBytes = prefixes * PREFIX_BLOCKS * padded;
        long poolBytes = Math.max(2 * setBytes, 64L << 20);
        int segmentBytes =
                (int) Long.highestOneBit(Math.min(64L << 20, Math.max(poolBytes / SEGMENTS_PER_POOL, 4 * padded)));
        long capBytes = 2 * poolBytes + 3 * setBytes + 16L * segmentBytes + (128L << 20);
        ExecutorService readers = Executors.newFixedThreadPool(READ_THREADS);
        try (BenchStore bench = BenchStore.open(
                        settings.folder(), blockBytes, poolBytes, capBytes, segmentBytes, settings.seed());
                DataFolder folder = HostFolder.open(bench.folder);
                MemoryRegion memory =
                        MemoryRegion.anonymous(2 * setBytes, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL)) {
            memory.fill(0, memory.bytes(), (byte) 5);
            UnsafeBuffer cold = saveSet(bench, memory);
            for (long pushed = 0; pushed < poolBytes + setBytes; pushed += setBytes) {
                saveSet(bench, memory); // until the first set has left host memory
            }
            UnsafeBuffer hot = saveSet(bench, memory);
            bench.sync(Level.DURABLE);
            MemoryRegion target = bench.store.allocate(setBytes);
            host(rows, bench, hot, memory, target);
            nvme(rows, bench, folder, segmentBytes, cold, target, readers);
            pages.add(Pages.of(target));
        } finally {
            readers.shutdownNow();
            files.clear();
        }
    }

    private UnsafeBuffer saveSet(BenchStore bench, MemoryRegion memory) {
        settings.progress().accept("restore, blocks of " + blockBytes + " bytes: saving");
        UnsafeBuffer keys = bench.freshKeys(prefixes * PREFIX_BLOCKS);
        for (int prefix = 0; prefix < prefixes; prefix++) {
            int first = prefix * PREFIX_BLOCKS;
            blocks.set(memory, (long) first * blockBytes);
            bench.store.save(bench.shard, null, 0, keys, first * BenchStore.KEY_BYTES, PREFIX_BLOCKS, blocks, result);
            if (result.accepted() < PREFIX_BLOCKS) {
                throw new OrbitKvException(
                        ErrorCode.FOUND_PROBLEMS, "a save of the benchmark was not taken: " + result);
            }
            if (prefix % 8 == 7) {
                bench.sync(Level.WRITTEN); // the queue never fills, so that nothing is dropped
            }
        }
        bench.sync(Level.WRITTEN);
        return keys;
    }

    private void host(
            List<BenchRow> rows, BenchStore bench, UnsafeBuffer keys, MemoryRegion memory, MemoryRegion target) {
        double[] copy = new double[settings.rounds()];
        double[] restore = new double[settings.rounds()];
        SplittableRandom random = new SplittableRandom(settings.seed());
        for (int round = -2; round < settings.rounds(); round++) {
            settings.progress().accept("restore from host, blocks of " + blockBytes + " bytes: round " + round);
            shuffle(random);
            int slot = Math.max(round, 0);
            long nvmeBefore = bench.store.stats().restoredNvmeBlocks();
            for (int step = 0; step < 2; step++) {
                if (Math.floorMod(step + round, 2) == 0) {
                    copy[slot] = copy(memory, target);
                } else {
                    restore[slot] = restore(bench, keys, target, PREFIX_BLOCKS);
                }
            }
            requireTier(bench, nvmeBefore, 0);
        }
        rows.add(BenchRow.ofFloor("plain copy", blockBytes, PREFIX_BLOCKS, copy));
        rows.add(BenchRow.of("restore from host", "plain copy", blockBytes, PREFIX_BLOCKS, restore, copy));
    }

    private void nvme(
            List<BenchRow> rows,
            BenchStore bench,
            DataFolder folder,
            int segmentBytes,
            UnsafeBuffer keys,
            MemoryRegion target,
            ExecutorService readers) {
        List<StorageFile> file = new ArrayList<>();
        long[] offsets = new long[prefixes * PREFIX_BLOCKS];
        locate(
                bench,
                new LogGeometry(segmentBytes, 1, new byte[LogGeometry.STORE_ID_BYTES]),
                folder,
                keys,
                file,
                offsets);
        SplittableRandom random = new SplittableRandom(settings.seed() + 1);
        for (int depth : new int[] {1, PREFIX_BLOCKS}) {
            double[] pread = new double[settings.rounds()];
            double[] restore = new double[settings.rounds()];
            for (int round = -1; round < settings.rounds(); round++) {
                settings.progress()
                        .accept("restore from NVMe, blocks of " + blockBytes + " bytes, " + depth + " a call: round "
                                + round);
                shuffle(random);
                int slot = Math.max(round, 0);
                long nvmeBefore = bench.store.stats().restoredNvmeBlocks();
                for (int step = 0; step < 2; step++) {
                    if (Math.floorMod(step + round, 2) == 0) {
                        pread[slot] = pread(file, offsets, target, depth == 1 ? null : readers);
                    } else {
                        restore[slot] = restore(bench, keys, target, depth);
                    }
                }
                requireTier(bench, nvmeBefore, (long) prefixes * PREFIX_BLOCKS);
            }
            String floor = depth == 1 ? "pread" : "pread by " + READ_THREADS + " threads";
            rows.add(BenchRow.ofFloor(floor, blockBytes, depth, pread));
            rows.add(BenchRow.of("restore from NVMe", floor, blockBytes, depth, restore, pread));
        }
    }

    private void locate(
            BenchStore bench,
            LogGeometry geometry,
            DataFolder folder,
            UnsafeBuffer keys,
            List<StorageFile> file,
            long[] offsets) {
        for (int block = 0; block < offsets.length; block++) {
            Location place = bench.store.locate(bench.shard, keys, block * BenchStore.KEY_BYTES);
            if (place.inHost() || !place.onDrive()) {
                throw new OrbitKvException(
                        ErrorCode.BUG, "block " + block + " of the benchmark should be on the drive alone: " + place);
            }
            String name = LogGeometry.fileName(geometry.file(place.segment()));
            file.add(files.computeIfAbsent(name, n -> folder.open(n, false)));
            offsets[block] = geometry.fileOffset(place.segment(), place.page());
        }
    }

    private static void requireTier(BenchStore bench, long nvmeBefore, long expected) {
        long read = bench.store.stats().restoredNvmeBlocks() - nvmeBefore;
        if (read != expected) {
            throw new OrbitKvException(
                    ErrorCode.BUG, read + " blocks of the benchmark came from NVMe, expected " + expected);
        }
    }

    private double copy(MemoryRegion memory, MemoryRegion target) {
        long began = System.nanoTime();
        for (int prefix : order) {
            for (int i = 0; i < PREFIX_BLOCKS; i++) {
                long at = (long) (prefix * PREFIX_BLOCKS + i) * blockBytes;
                target.copyFrom(at, memory, at, blockBytes);
            }
        }
        return (double) (System.nanoTime() - began) / (prefixes * PREFIX_BLOCKS);
    }

    private double restore(BenchStore bench, UnsafeBuffer keys, MemoryRegion target, int callBlocks) {
        long nanos = 0;
        for (int prefix : order) {
            int first = prefix * PREFIX_BLOCKS;
            try (Lease lease = bench.store.query(bench.family, keys, first * BenchStore.KEY_BYTES, PREFIX_BLOCKS)) {
                for (int i = 0; i < PREFIX_BLOCKS; i += callBlocks) {
                    blocks.set(target, (long) (first + i) * blockBytes);
                    long began = System.nanoTime();
                    int got = bench.store.restore(lease, bench.shard, i, callBlocks, blocks);
                    nanos += System.nanoTime() - began;
                    if (got < callBlocks) {
                        throw new OrbitKvException(
                                ErrorCode.FOUND_PROBLEMS,
                                "a restore of the benchmark stopped short: " + got + " of " + callBlocks);
                    }
                }
            }
        }
        return (double) nanos / (prefixes * PREFIX_BLOCKS);
    }

    /** Reads every block by its place in the files: on this thread, or spread over the readers. */
    private double pread(List<StorageFile> file, long[] offsets, MemoryRegion target, ExecutorService readers) {
        long began = System.nanoTime();
        if (readers == null) {
            for (int prefix : order) {
                preadPrefix(file, offsets, target, prefix);
            }
        } else {
            List<Future<?>> all = new ArrayList<>();
            for (int prefix : order) {
                all.add(readers.submit(() -> preadPrefix(file, offsets, target, prefix)));
            }
            all.forEach(RestoreBench::await);
        }
        return (double) (System.nanoTime() - began) / (prefixes * PREFIX_BLOCKS);
    }

    private void preadPrefix(List<StorageFile> file, long[] offsets, MemoryRegion target, int prefix) {
        int padded = (blockBytes + 4095) / 4096 * 4096;
        for (int block = prefix * PREFIX_BLOCKS; block < (prefix + 1) * PREFIX_BLOCKS; block++) {
            file.get(block).read(offsets[block], target, (long) block * padded, padded);
        }
    }

    private static void await(Future<?> read) {
        try {
            read.get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new OrbitKvException(ErrorCode.BUG, "interrupted while reading", e);
        } catch (ExecutionException e) {
            throw new OrbitKvException(ErrorCode.DRIVE, "a read of the benchmark failed: " + e.getCause(), e);
        }
    }

    private void shuffle(SplittableRandom random) {
        for (int i = 0; i < order.length; i++) {
            int j = random.nextInt(i + 1);
            order[i] = order[j];
            order[j] = i;
        }
    }
}
