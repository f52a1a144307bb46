package io.orbitkv.bench;

import io.orbitkv.nativeio.BlockChecksum;
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
import io.orbitkv.store.StoreOptions;
import io.orbitkv.tiers.Durability;
import io.orbitkv.tiers.LogGeometry;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.UnsafeBuffer;

/** The store's side of {@link DiskBench}: a store whose drive holds a round's bytes, all of its log written before. */
final class DiskStore implements AutoCloseable {
    private static final int CALL_BLOCKS_MAX = 16;
    private static final long CALL_BYTES_MAX = 16L << 20;
    private static final long PROMPT_BYTES = 512L << 20;
    private static final long POOL_BYTES = 1L << 30; // the default
    private static final long SOURCE_BYTES = 128L << 20;
    private static final int PROMPTS_AT_ONCE =
            8; // and segments that are open: a loaded drive is slow to write a header

    /** A stall of a shared drive counts on both sides; it takes nobody out of a benchmark. */
    private static final long DRIVE_TIMEOUT_MILLIS = 60_000;

    private static final long WAIT_NANOS = 50_000;
    private static final int SEGMENT_BLOCKS = 16;
    private static final int SEGMENT_BYTES_MIN = 4 << 20;
    private static final int SEGMENT_BYTES_MAX = 64 << 20;

    private final DiskSettings settings;
    private final int blockBytes;
    private final int segmentBytes;
    private final long capBytes;
    private final BenchStore bench;
    private final MemoryRegion source;
    private final MemoryRegion target;
    private final int promptBlocks;
    private final int prompts;
    private final SplittableRandom random;
    private final Blocks blocks = Blocks.unset();
    private final SaveResult result = new SaveResult();

    /** Keys of the saved prompts, one after the other. */
    private UnsafeBuffer keys;

    /** Where the next save takes its bytes from. */
    private long sourceAt;

    DiskStore(DiskSettings settings, int blockBytes, int depth, boolean hugePages) {
        this.settings = settings;
        this.blockBytes = blockBytes;
        segmentBytes = Math.max(
                SEGMENT_BYTES_MIN, Math.min(SEGMENT_BYTES_MAX, Integer.highestOneBit(SEGMENT_BLOCKS * blockBytes)));
        promptBlocks = (int) Math.min(PROMPT_BYTES, settings.roundBytes()) / blockBytes;
        prompts = (int) (settings.roundBytes() / blockBytes / promptBlocks);
        random = new SplittableRandom(settings.seed());
        PageKind pages = hugePages ? PageKind.TRANSPARENT_HUGE : PageKind.SMALL;
        capBytes = logBytes(settings);
        bench = BenchStore.open(
                settings.folder(),
                blockBytes,
                settings.seed(),
                folder -> StoreOptions.in(folder)
                        .poolBytes(POOL_BYTES)
                        .capBytes(capBytes)
                        .segmentBytes(segmentBytes)
                        .blockBytesLargest(blockBytes)
                        .openSegments(PROMPTS_AT_ONCE)
                        .durability(Durability.WRITTEN)
                        .pageKind(pages)
                        .ringDepth(depth)
                        .driveTimeoutMillis(DRIVE_TIMEOUT_MILLIS));
        source = MemoryRegion.anonymous(SOURCE_BYTES, pages, MemoryPurpose.TOOL);
        target = bench.store.allocate((long) promptBlocks * blockBytes);
    }

    /** About what the store's log takes of the drive; rounds of writes walk over it. */
    static long logBytes(DiskSettings settings) {
        return settings.roundBytes() * 5 / 4 + 2 * POOL_BYTES;
    }

    /** Writes all of the log once: the first write of a page allocates it in the file system, which is not measured. */
    void fill() {
        source.fill(0, source.bytes(), (byte) 7);
        target.fill(0, target.bytes(), (byte) 9);
        for (long written = 0; written < capBytes; written += (long) prompts * promptBlocks * blockBytes) {
            settings.progress().accept("writing the store's files once, blocks of " + blockBytes + " bytes");
            save();
        }
    }

    /** Whether what reads land in lies on huge pages. */
    boolean isOnHugePages() {
        return target.hugeBytes() >= target.bytes() * 9 / 10;
    }

    int blocksPerCall() {
        return promptBlocks;
    }

    /** Starts what this store does with each block beside its transfer, on memory like its own. */
    ByteWork work(ByteWork.Kind kind, double paceNanos) {
        return kind == ByteWork.Kind.CHECK
                ? ByteWork.start(kind, target, target, blockBytes, paceNanos)
                : ByteWork.start(kind, source, target, blockBytes, paceNanos);
    }

    /** Saves a round's bytes as new prompts, eight at once, and waits until all is written; nanoseconds of a block. */
    double save() {
        int count = prompts * promptBlocks / PROMPTS_AT_ONCE;
        int call = (int) Math.max(1, Math.min(CALL_BLOCKS_MAX, CALL_BYTES_MAX / blockBytes));
        keys = bench.freshKeys(PROMPTS_AT_ONCE * count);
        long began = System.nanoTime();
        for (int first = 0; first < count; first += call) {
            for (int prompt = 0; prompt < PROMPTS_AT_ONCE; prompt++) {
                save(prompt * count + first, first > 0, Math.min(call, count - first));
            }
        }
        bench.sync(Level.WRITTEN);
        return (double) (System.nanoTime() - began) / (prompts * promptBlocks);
    }

    /** Saves the prompts that are restored: each in one go, or block by block in a random order of prompts. */
    private void savePrompts(boolean scattered) {
        keys = bench.freshKeys(prompts * promptBlocks);
        int call = scattered ? 1 : (int) Math.max(1, Math.min(CALL_BLOCKS_MAX, CALL_BYTES_MAX / blockBytes));
        int[] next = new int[prompts];
        int[] open = new int[prompts];
        for (int prompt = 0; prompt < prompts; prompt++) {
            open[prompt] = prompt;
        }
        for (int left = prompts; left > 0; ) {
            int pick = scattered ? random.nextInt(left) : 0;
            int prompt = open[pick];
            int count = Math.min(call, promptBlocks - next[prompt]);
            save(prompt * promptBlocks + next[prompt], next[prompt] > 0, count);
            next[prompt] += count;
            if (next[prompt] == promptBlocks) {
                open[pick] = open[--left];
            }
        }
        bench.sync(Level.WRITTEN);
    }

    /** Saves consecutive blocks, as soon as the queue to the drive has room for them. */
    private void save(int block, boolean hasParent, int count) {
        long backlog = POOL_BYTES / 4 / blockBytes;
        while (bench.store.acceptedPosition() + count - bench.store.writtenPosition() > backlog) {
            LockSupport.parkNanos(WAIT_NANOS);
        }
        int key = block * BenchStore.KEY_BYTES;
        if (sourceAt + (long) count * blockBytes > source.bytes()) {
            sourceAt = 0;
        }
        blocks.set(source, sourceAt);
        sourceAt += (long) count * blockBytes;
        bench.store.save(
                bench.shard,
                hasParent ? keys : null,
                hasParent ? key - BenchStore.KEY_BYTES : 0,
                keys,
                key,
                count,
                blocks,
                result);
        if (result.accepted() < count) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS, "a save of the benchmark was not taken: " + result + "; try --bytes 2gb");
        }
    }

    /** Saves the prompts that are restored, then others until these have left host memory. */
    void saveCold(boolean scattered) {
        settings.progress().accept("saving what is restored, blocks of " + blockBytes + " bytes");
        savePrompts(scattered);
        UnsafeBuffer restored = keys;
        int pushed = (int) (POOL_BYTES * 5 / 4 / blockBytes);
        UnsafeBuffer others = bench.freshKeys(pushed);
        for (int block = 0; block < pushed; block++) {
            blocks.set(source, 0);
            bench.store.save(bench.shard, null, 0, others, block * BenchStore.KEY_BYTES, 1, blocks, result);
            if (block % 16 == 15) {
                bench.sync(Level.WRITTEN);
            }
        }
        bench.sync(Level.WRITTEN);
        keys = restored;
        for (int block = 0; block < prompts * promptBlocks; block++) {
            locate(block);
        }
    }

    private Location locate(int block) {
        Location place = bench.store.locate(bench.shard, keys, block * BenchStore.KEY_BYTES);
        if (place.inHost() || !place.onDrive()) {
            throw new OrbitKvException(
                    ErrorCode.BUG, "block " + block + " of the benchmark should be on the drive alone: " + place);
        }
        return place;
    }

    /** Restores all prompts, each with one call; nanoseconds of a block. */
    double restore() {
        long before = bench.store.stats().restoredNvmeBlocks();
        long began = System.nanoTime();
        for (int prompt = 0; prompt < prompts; prompt++) {
            try (Lease lease = query(prompt)) {
                blocks.set(target, 0);
                require(bench.store.restore(lease, bench.shard, 0, promptBlocks, blocks), promptBlocks);
            }
        }
        double nanos = (double) (System.nanoTime() - began) / (prompts * promptBlocks);
        require(bench.store.stats().restoredNvmeBlocks() - before, prompts * promptBlocks);
        return nanos;
    }

    private Lease query(int prompt) {
        return bench.store.query(bench.family, keys, prompt * promptBlocks * BenchStore.KEY_BYTES, promptBlocks);
    }

    private static void require(long got, int wanted) {
        if (got != wanted) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS, got + " blocks of the benchmark came from the drive, not " + wanted);
        }
    }

    /**
     * Single cold blocks, each restored and read with {@code pread}, in turns.
     *
     * @param samples how many blocks
     * @param round which way comes first
     * @return medians in nanoseconds: of a restore, of a pread, of a pread and the checksum of what it read
     */
    double[] single(int samples, int round) {
        double[] restore = new double[samples];
        double[] pread = new double[samples];
        double[] checked = new double[samples];
        BlockChecksum checksum = new BlockChecksum();
        Map<String, StorageFile> files = new HashMap<>();
        LogGeometry geometry = new LogGeometry(segmentBytes, 1, new byte[LogGeometry.STORE_ID_BYTES]);
        try (DataFolder folder = HostFolder.open(bench.folder)) {
            for (int sample = 0; sample < samples; sample++) {
                int block = random.nextInt(prompts * promptBlocks);
                Location place = locate(block);
                String name = LogGeometry.fileName(geometry.file(place.segment()));
                StorageFile file = files.computeIfAbsent(name, n -> folder.open(n, false));
                long offset = geometry.fileOffset(place.segment(), place.page());
                try (Lease lease = query(block / promptBlocks)) {
                    for (int step = 0; step < 2; step++) {
                        boolean ours = (step + sample + round) % 2 == 0;
                        long began = System.nanoTime();
                        if (ours) {
                            blocks.set(target, 0);
                            require(bench.store.restore(lease, bench.shard, block % promptBlocks, 1, blocks), 1);
                        } else {
                            file.read(offset, target, blockBytes, blockBytes);
                        }
                        (ours ? restore : pread)[sample] = System.nanoTime() - began;
                        if (!ours) {
                            checksum.reset().update(target, blockBytes, blockBytes);
                            checked[sample] = System.nanoTime() - began;
                        }
                    }
                }
            }
        }
        return new double[] {BenchRow.median(restore), BenchRow.median(pread), BenchRow.median(checked)};
    }

    @Override
    public void close() {
        bench.close();
        source.close();
    }
}
