package io.orbitkv.index;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.Tier;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Runs: up to 64 consecutive blocks of one prefix each.
 *
 * <pre>
 *  0  8 sequence      even: readable; odd: free or being rewritten; only grows while the slab keeps its class
 *  8  4 count         blocks; written last by an append, with release
 * 12  4 namespace     number
 * 16  4 depth         of the first block: blocks before it in its prefix, as far as the index knew them
 * 20  4 reserved
 * 24  8 parent tag    of the block before the first one; 0: none, or not known     (while free: next free run)
 * 32  8 host turns    one bit a block: its host extent has another segment or generation than the block before it
 * 40  8 NVMe turns    the same of NVMe extents; bits of block 0 and from the count on mean nothing
 * 48 16 reserved
 * 64 24 a block, capacity times:
 *        0 8 tag          bytes 8..16 of the key
 *        8 8 host extent
 *       16 8 NVMe extent
 *  .  8 a block, capacity times; apart, because a query, which asks for extents only, is as fast as memory is read:
 *        0 4 bytes        stored bytes of the block
 *        4 4 checksum
 *  .  8 a block, capacity times: bytes 0..8 of the key, for the writer, which finds directory slots by them
 * </pre>
 *
 * <p>Reader protocol: life of the slab, sequence (acquire), count (acquire), blocks, acquire fence, sequence and life
 * again; a difference voids all that was read. An append needs no new sequence, because the count is stored last; an
 * extent that turns nothing is replaced by one aligned store. Whatever else changes a run makes its sequence odd first.
 *
 * <p>Single writer: every method that stores is the writer's.
 */
final class Runs implements AutoCloseable {
    static final int BLOCKS_MAX = 64;
    static final int CLASS_MAX = RunMemory.CLASSES - 1;

    static final int SEQUENCE = 0;
    static final int COUNT = 8;
    static final int NAMESPACE = 12;
    static final int DEPTH = 16;
    static final int PARENT_TAG = 24;
    static final int LINK = PARENT_TAG;
    static final int HOST_TURNS = 32;
    static final int NVME_TURNS = 40;
    static final int HEADER_BYTES = 64;

    static final int BLOCK_BYTES = 24;
    static final int TAG = 0;
    static final int HOST = 8;
    static final int NVME = 16;

    /** Of an extent, all but the page: what blocks between two turns have in common. */
    private static final long SEGMENT_AND_GENERATION =
            ~(Extent.pack(0, 0, 1) ^ Extent.pack(0, Extent.PAGES_MAX - 1, 1));

    private static final long CHECKSUM_MASK = 0xffff_ffffL;

    private final RunMemory slabs;
    private final MemoryRegion memory;
    private final Generations host;
    private final Generations nvme;

    /** Written by the one writer only. */
    private final AtomicLong runs = new AtomicLong();

    Runs(long blocksMax, Generations host, Generations nvme) {
        this.slabs = new RunMemory(blocksMax);
        this.memory = slabs.memory();
        this.host = host;
        this.nvme = nvme;
    }

    static long base(long place) {
        return Place.unit(place) * RunMemory.UNIT_BYTES;
    }

    /** Offset of the block at a place. */
    static long block(long place) {
        return base(place) + HEADER_BYTES + (long) Place.offset(place) * BLOCK_BYTES;
    }

    /** Offset of bytes and checksum of the block at a place. */
    static long sizeOffset(long place) {
        return base(place)
                + HEADER_BYTES
                + (long) RunMemory.capacity(Place.sizeClass(place)) * BLOCK_BYTES
                + (long) Place.offset(place) * Long.BYTES;
    }

    private static long key0Offset(long place) {
        return sizeOffset(place) + (long) RunMemory.capacity(Place.sizeClass(place)) * Long.BYTES;
    }

    /** Bytes and checksum of a block in one word: on a little-endian machine the bytes are its low half. */
    static long size(int bytes, int checksum) {
        return (long) checksum << 32 | bytes & CHECKSUM_MASK;
    }

    MemoryRegion memory() {
        return memory;
    }

    RunMemory slabs() {
        return slabs;
    }

    /** Runs in use. */
    long runs() {
        return runs.get();
    }

    boolean isFree(long run) {
        return (memory.getLong(base(run) + SEQUENCE) & 1) != 0;
    }

    int count(long place) {
        return memory.getInt(base(place) + COUNT);
    }

    int namespace(long place) {
        return memory.getInt(base(place) + NAMESPACE);
    }

    int depth(long place) {
        return memory.getInt(base(place) + DEPTH) + Place.offset(place);
    }

    long tag(long place) {
        return memory.getLong(block(place) + TAG);
    }

    long key0(long place) {
        return memory.getLong(key0Offset(place));
    }

    long extent(long place, Tier tier) {
        return memory.getLong(block(place) + (tier == Tier.HOST ? HOST : NVME));
    }

    int bytes(long place) {
        return memory.getInt(sizeOffset(place));
    }

    int checksum(long place) {
        return memory.getInt(sizeOffset(place) + Integer.BYTES);
    }

    /** Whether the block at a place lies in some tier. */
    boolean isLive(long place) {
        long block = block(place);
        return isLive(host, memory.getLong(block + HOST)) || isLive(nvme, memory.getLong(block + NVME));
    }

    /** Whether the block at a place lies in a tier. */
    boolean isLive(long place, Tier tier) {
        return isLive(tier == Tier.HOST ? host : nvme, extent(place, tier));
    }

    /** As {@link Generations#isLive}, for words that may be no extent at all: a reader tests them before it knows. */
    static boolean isLive(Generations generations, long extent) {
        return Extent.segment(extent) < generations.segments() && generations.isLive(extent);
    }

    /** Starts a run of one block in the smallest class that has memory. {@link Place#NONE}: the memory is full. */
    long start(int sizeClass, int namespace, int depth, long parentTag) {
        long run = slabs.take(sizeClass);
        for (int c = 0; run == Place.NONE && c <= CLASS_MAX; c++) {
            run = slabs.take(c);
        }
        if (run == Place.NONE) {
            return Place.NONE;
        }
        runs.lazySet(runs.get() + 1);
        long base = base(run);
        memory.putInt(base + COUNT, 0);
        memory.putInt(base + NAMESPACE, namespace);
        memory.putInt(base + DEPTH, depth);
        memory.putLong(base + PARENT_TAG, parentTag);
        memory.putLong(base + HOST_TURNS, 0);
        memory.putLong(base + NVME_TURNS, 0);
        endChange(run);
        return run;
    }

    boolean hasRoom(long run) {
        return count(run) < RunMemory.capacity(Place.sizeClass(run));
    }

    /** Appends a block to a run that has room, and makes it readable. Returns its place. */
    long append(long run, long key0, long tag, Tier tier, long extent, long size) {
        int count = count(run);
        long place = Place.runOf(run) | count;
        memory.putLong(key0Offset(place), key0);
        memory.putLong(block(place) + TAG, tag);
        putContent(place, tier, extent, size);
        memory.putIntRelease(base(run) + COUNT, count + 1); // partner: the reader's acquire of the count
        return place;
    }

    /** Gives a block new content in its old place. */
    void overwrite(long place, Tier tier, long extent, long size) {
        beginChange(place);
        putContent(place, tier, extent, size);
        endChange(place);
    }

    private void putContent(long place, Tier tier, long extent, long size) {
        long block = block(place);
        memory.putLong(block + HOST, tier == Tier.HOST ? extent : Extent.NONE);
        memory.putLong(block + NVME, tier == Tier.NVME ? extent : Extent.NONE);
        memory.putLong(sizeOffset(place), size);
        putTurns(place, HOST, turns(place, HOST, memory.getLong(block + HOST)));
        putTurns(place, NVME, turns(place, NVME, memory.getLong(block + NVME)));
    }

    /** Sets one extent of a block whose content stays the same. */
    void setExtent(long place, Tier tier, long extent) {
        setExtent(place, tier == Tier.HOST ? HOST : NVME, extent);
    }

    private void setExtent(long place, int column, long extent) {
        long turns = turns(place, column, extent);
        if (turns == getTurns(place, column)) {
            // Partner: the reader's acquire of the generation or of what it read the place from.
            memory.putLongRelease(block(place) + column, extent);
        } else {
            beginChange(place);
            memory.putLong(block(place) + column, extent);
            putTurns(place, column, turns);
            endChange(place);
        }
    }

    /** What a column's turns are once the block at a place has an extent there. */
    private long turns(long place, int column, long extent) {
        int offset = Place.offset(place);
        long block = block(place);
        long turns = getTurns(place, column);
        if (offset > 0) {
            turns = withBit(turns, offset, isTurn(memory.getLong(block - BLOCK_BYTES + column), extent));
        }
        if (offset + 1 < count(place)) {
            turns = withBit(turns, offset + 1, isTurn(extent, memory.getLong(block + BLOCK_BYTES + column)));
        }
        return turns;
    }

    private static boolean isTurn(long before, long extent) {
        return ((before ^ extent) & SEGMENT_AND_GENERATION) != 0;
    }

    private static long withBit(long bits, int bit, boolean set) {
        return set ? bits | 1L << bit : bits & ~(1L << bit);
    }

    private long getTurns(long place, int column) {
        return memory.getLong(base(place) + turnsOf(column));
    }

    private void putTurns(long place, int column, long turns) {
        memory.putLong(base(place) + turnsOf(column), turns);
    }

    private static int turnsOf(int column) {
        return column == HOST ? HOST_TURNS : NVME_TURNS;
    }

    /** Zeroes stale extents of a block, so that a wrapped generation can't revive them; whether it is live. */
    boolean scrub(long place) {
        return scrub(place, HOST, host) | scrub(place, NVME, nvme);
    }

    private boolean scrub(long place, int column, Generations generations) {
        long extent = memory.getLong(block(place) + column);
        if (extent == Extent.NONE || generations.isLive(extent)) {
            return extent != Extent.NONE;
        }
        setExtent(place, column, Extent.NONE);
        return false;
    }

    /** Copies a run into one of another class; the old one stays until {@link #free}. NONE: no memory. */
    long copy(long run, int sizeClass) {
        int count = count(run);
        assert count <= RunMemory.capacity(sizeClass) : count + " blocks into class " + sizeClass;
        long copy = slabs.take(sizeClass);
        if (copy == Place.NONE) {
            return Place.NONE;
        }
        runs.lazySet(runs.get() + 1);
        long from = base(run);
        long to = base(copy);
        memory.copyFrom(to + COUNT, memory, from + COUNT, HEADER_BYTES - COUNT + (long) count * BLOCK_BYTES);
        memory.copyFrom(sizeOffset(copy), memory, sizeOffset(run), (long) count * Long.BYTES);
        memory.copyFrom(key0Offset(copy), memory, key0Offset(run), (long) count * Long.BYTES);
        endChange(copy);
        for (int i = 0; i < count; i++) {
            scrub(copy | i); // a sweep that has passed here already must not miss what was stale before it began
        }
        return copy;
    }

    /** Cuts a run to its first blocks. */
    void truncate(long run, int count) {
        beginChange(run);
        memory.putInt(base(run) + COUNT, count);
        endChange(run);
    }

    /** Frees a run that no directory slot names any more. */
    void free(long run) {
        beginChange(run);
        runs.lazySet(runs.get() - 1);
        slabs.free(run);
    }

    private void beginChange(long place) {
        long offset = base(place) + SEQUENCE;
        assert (memory.getLong(offset) & 1) == 0 : "run is free or being changed";
        memory.putLong(offset, memory.getLong(offset) + 1);
        VarHandle.storeStoreFence(); // partner: the acquire fence before a reader looks at the sequence again
    }

    private void endChange(long place) {
        long offset = base(place) + SEQUENCE;
        memory.putLongRelease(offset, memory.getLong(offset) + 1); // partner: the reader's acquire of the sequence
    }

    @Override
    public void close() {
        slabs.close();
    }
}
