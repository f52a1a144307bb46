package io.orbitkv.store;

import io.orbitkv.index.Match;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.TimedReader;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.ReadBatch;
import java.util.Arrays;
import org.agrona.DirectBuffer;

/**
 * What one call of save, query or restore works on: its arguments, narrowed to the present turn, and its buffers.
 * Pooled, so that calls allocate nothing.
 */
final class Workspace implements AutoCloseable {
    /** Blocks that one turn of a save handles: the bound on work under the writer lock. */
    static final int TURN_BLOCKS_MAX = 64;

    /** Blocks that one turn of a restore handles: a batch of reads. */
    static final int RESTORE_TURN_BLOCKS_MAX = ReadBatch.READS_MAX;

    /** What a turn has decided about one of its blocks. */
    enum BlockState {
        /** Stored before the save. */
        PRESENT,
        /** Pages are claimed and pinned; being filled. */
        CLAIMED,
        /** Not taken in. */
        DROPPED,
        /** Pinned in host memory. */
        HOST,
        /** Pinned on the drive. */
        NVME,
        /** In the destination. */
        RESTORED,
        /** Gone, or not what it should be. */
        MISSED
    }

    /** In {@link #reads}: the block lies in host memory. */
    static final int NO_READ = -1;

    // The call, and the turn within it.
    ShardHandle shard;
    ShardHandle.Binding binding;
    Blocks blocks;
    int blockBytes;
    int paddedBytes;
    int firstBlock;
    int count;

    /** Blocks of the turn that a restore has pinned. */
    int pinned;

    /** Blocks that the restore has delivered from host memory so far. */
    int restoredHost;

    long queryBeganNanos;

    // What the turn's time is learned from.
    long turnBeganNanos;
    double pace;
    int readsBefore;
    long bytesBefore;

    /** What a flush that was under way then was expected to take still. */
    double flushNanosBefore;

    /** Reads of the turn that stand among those in flight. */
    int readsNoted;

    /** Reads of the turn, over all drives. */
    int readCount;

    /** No drive took a block of this save: those behind it are not offered. */
    boolean unserved;

    /** A restore has given up on reads that may still run: the workspace rests until they have ended. */
    boolean readsAbandoned;

    /** The drive has kept so many restores waiting that this one leaves it alone. */
    boolean hostOnly;

    private DirectBuffer firstParent;
    private int firstParentOffset;
    private DirectBuffer keys;
    private int keysOffset;

    /** Tag of the block at which a save left what was stored; 0 until it has. */
    long branch;

    /** Admission has refused a block of this call. */
    boolean refusing;

    /** Bits of the turn's blocks, 64 a word, that were restored from host memory and were never offered to the drive. */
    final long[] hostOnlyBlocks = new long[RESTORE_TURN_BLOCKS_MAX / Long.SIZE];

    // Per block of the turn.
    final BlockState[] states = new BlockState[RESTORE_TURN_BLOCKS_MAX];
    final long[] extents = new long[RESTORE_TURN_BLOCKS_MAX];
    final int[] checksums = new int[RESTORE_TURN_BLOCKS_MAX];
    final int[] reads = new int[RESTORE_TURN_BLOCKS_MAX];

    final boolean[] admitted = new boolean[TURN_BLOCKS_MAX];

    /** Of blocks that a restore's turn has read from the drive their extents there, then where they go in host memory. */
    final long[] promotions = new long[RESTORE_TURN_BLOCKS_MAX];

    /** How many the turn has read. */
    int fromDrive;

    final Match prompt;
    final Match turn = new Match(RESTORE_TURN_BLOCKS_MAX);
    final Match single = new Match(1);
    final BlockChecksum checksum = new BlockChecksum();
    final BlockListing listing = new BlockListing();
    final RestoreEstimate.Paths paths = new RestoreEstimate.Paths();

    /** A batch a drive; made when they are needed first, but for the first drive's. */
    private final ReadBatch[] batches;

    /** Reads on the caller's own thread; null where there is none. */
    private final TimedReader reader;

    // Where the reader's last read lands.
    private long readerAddress;
    private long readerBytes;

    private final int stagingBytes;
    private MemoryRegion staging;

    Workspace(int queryBlocksMax, int stagingBytes, int drives, TimedReader reader) {
        this.reader = reader;
        this.batches = new ReadBatch[drives];
        batches[0] = new ReadBatch();
        this.prompt = Match.ofExtents(queryBlocksMax);
        this.stagingBytes = stagingBytes;
    }

    void begin(ShardHandle ofShard, DirectBuffer parent, int parentOffset, DirectBuffer ofKeys, int offset, Blocks at) {
        shard = ofShard;
        blockBytes = ofShard.blockBytes();
        paddedBytes = ofShard.paddedBytes();
        firstParent = parent;
        firstParentOffset = parentOffset;
        keys = ofKeys;
        keysOffset = offset;
        blocks = at;
        branch = 0;
        refusing = false;
        unserved = false;
    }

    void turn(int from, int blockCount) {
        firstBlock = from;
        count = blockCount;
        binding = shard.binding();
        Arrays.fill(hostOnlyBlocks, 0);
    }

    DirectBuffer keys() {
        return keys;
    }

    /** Where the key of the turn's i-th block stands. */
    int keyOffset(int i) {
        return keysOffset + (firstBlock + i) * PrefixIndex.KEY_BYTES;
    }

    /** The first eight bytes of the call's first key. */
    long firstKey() {
        return keys.getLong(keysOffset);
    }

    /** The buffer with the key before the turn's i-th block; null for a prompt's first block. */
    DirectBuffer parent(int i) {
        return firstBlock + i == 0 ? firstParent : keys;
    }

    int parentOffset(int i) {
        return firstBlock + i == 0 ? firstParentOffset : keyOffset(i) - PrefixIndex.KEY_BYTES;
    }

    /** Zeroes what a block leaves of its last page. */
    void pad(MemoryRegion pool, long payloadAt) {
        if (paddedBytes > blockBytes) {
            pool.fill(payloadAt + blockBytes, paddedBytes - blockBytes, (byte) 0);
        }
    }

    /** Writes into a listing what a block of this call is, but for its key, its parent and its birth. */
    void describe(BlockListing of, int blockChecksum) {
        of.namespaceId64(shard.id64())
                .namespaceEpoch(binding.epoch())
                .storedBytes(blockBytes)
                .logicalBytes(blockBytes)
                .checksum(blockChecksum)
                .codec(BlockListing.CODEC_RAW);
    }

    /** The checksum that a block with this key and payload must have. */
    int checksumOf(MemoryRegion keyMemory, long keyAt, MemoryRegion payload, long payloadAt) {
        return checksum.reset()
                .update(keyMemory, keyAt, PrefixIndex.KEY_BYTES)
                .update(payload, payloadAt, blockBytes)
                .value();
    }

    /** Where reads land whose destination the store doesn't own; mapped at first use. */
    MemoryRegion staging() {
        if (staging == null) {
            staging = MemoryRegion.anonymous(stagingBytes, PageKind.TRANSPARENT_HUGE, MemoryPurpose.STAGING);
        }
        return staging;
    }

    int stagingBytes() {
        return stagingBytes;
    }

    TimedReader reader() {
        return reader;
    }

    /** Notes where the reader's next read lands. */
    void readerReads(ReadBatch batch, int read) {
        readerBytes = (long) Extent.pages(batch.bytes(read)) * MemoryRegion.PAGE_BYTES;
        readerAddress = batch.region(read).address(batch.offset(read), readerBytes);
    }

    int drives() {
        return batches.length;
    }

    /** The batch of a drive, or null where there never was one. */
    ReadBatch batch(int drive) {
        return batches[drive];
    }

    /** The batch in which the turn's i-th block is read. */
    ReadBatch batchOf(int i) {
        int drive = batches.length == 1 ? 0 : Extent.segment(extents[i]) % batches.length;
        if (batches[drive] == null) {
            batches[drive] = new ReadBatch();
        }
        return batches[drive];
    }

    /** Forgets all reads. */
    void clearReads() {
        readCount = 0;
        for (ReadBatch batch : batches) {
            if (batch != null) {
                batch.clear();
            }
        }
    }

    /** Whether no read into this workspace is in flight. */
    boolean isDrained() {
        for (ReadBatch batch : batches) {
            if (batch != null && !batch.isDrained()) {
                return false;
            }
        }
        return reader == null || reader.isDrained();
    }

    /** Whether a read into this workspace is under way on a drive that serves. */
    boolean isAwaitedOfServingDrive() {
        for (ReadBatch batch : batches) {
            if (batch != null && batch.isAwaitedOfServingDrive()) {
                return true;
            }
        }
        return false;
    }

    /** Whether a read into this range of memory may be in flight. */
    boolean readsInto(long address, long bytes) {
        for (ReadBatch batch : batches) {
            if (batch != null && readsInto(batch, address, bytes)) {
                return true;
            }
        }
        boolean meets = readerAddress < address + bytes && address < readerAddress + readerBytes;
        return meets && reader != null && !reader.isDrained();
    }

    private static boolean readsInto(ReadBatch batch, long address, long bytes) {
        for (int read = 0; read < batch.count() && !batch.isDrained(); read++) {
            if (batch.region(read).bytes() == 0) {
                continue; // its owner has closed it: nothing lies there any more
            }
            long length = (long) Extent.pages(batch.bytes(read)) * MemoryRegion.PAGE_BYTES;
            long landing = batch.region(read).address(batch.offset(read), length);
            if (landing < address + bytes && address < landing + length) {
                return true;
            }
        }
        return false;
    }

    @Override
    public void close() {
        if (reader != null) {
            reader.close();
        }
        if (staging != null) {
            staging.close();
        }
    }
}
