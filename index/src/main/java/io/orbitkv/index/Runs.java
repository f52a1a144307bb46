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
 * 32  8 turns         one bit a block: in some tier its extent has another segment or generation than the block before
 *                     it; bits of block 0 and from the count on mean nothing
 * 40  8 last tag      of the block appended last
 * 48 16 reserved
 * 64  4 a block, capacity times, 16 at least: pages, which with the extents at turns say all of what extents say
 *        0 2 host page    of its extent there
 *        2 2 NVMe page
 *  . 16 a block, capacity times:
 *        0 8 host extent
 *        8 8 NVMe extent
 *  .  8 a block, capacity times: tag, bytes 8..16 of the key
 *  .  8 a block, capacity times:
 *        0 4 bytes        stored bytes of the block
 *        4 4 checksum
 *  .  8 a block, capacity times: bytes 0..8 of the key, for the writer, which finds directory slots by them
 * </pre>
 *
 * <p>Each has a place of its own, because a query is as fast as memory is read: it reads header, pages, and extents
 * where they turn.
 *
 * <p>Reader protocol: life of the slab, sequence (acquire), count (acquire), blocks, acquire fence, sequence and life
 * again; a difference voids all that was read. An append needs no new sequence, because the count is stored last; a
 * reader may see the last tag of a block later than those that it counts. Whatever else changes a run makes its sequence
 * odd first.
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
    static final int TURNS = 32;
    static final int LAST_TAG = 40;
    static final int HEADER_BYTES = 64;

    static final int PAGES_BYTES = 4;
    static final int EXTENTS_BYTES = 16;
    static final int HOST = 0;
    static final int NVME = 8;

    /** Of an extent, all but the page: what blocks between two turns have in common. */
    static final long SEGMENT_AND_GENERATION = ~(Extent.pack(0, 0, 1) ^ Extent.pack(0, Extent.PAGES_MAX - 1, 1));

    /** Keeps what follows the pages aligned. */
    private static final int PAGES_BYTES_MIN = 16;

    private static final long CHECKSUM_MASK = 0xffff_ffffL;

    private final RunMemory slabs;
    private final MemoryRegion memory;
    private final Generations host;
    private final Generations nvme;

    /** Written by the one writer only. */
    private final AtomicLong runs = new AtomicLong();

    // The writer's, for blocks that are appended together. Host extents stay NONE.
    private final int[] pageColumn = new int[BLOCKS_MAX];
    private final long[] extentColumn = new long[2 * BLOCKS_MAX];

    Runs(long blocksMax, Generations host, Generations nvme) {
        this.slabs = new RunMemory(blocksMax);
        this.memory = slabs.memory();
        this.host = host;
        this.nvme = nvme;
    }

    static long base(long place) {
        return Place.unit(place) * RunMemory.UNIT_BYTES;
    }

    /** Offset of the pages of the block at a place. */
    static long pages(long place) {
        return base(place) + HEADER_BYTES + (long) Place.offset(place) * PAGES_BYTES;
    }

    /** Offset of the extents of the block at a place. */
    static long extents(long place) {
        int pagesBytes = Math.max(PAGES_BYTES_MIN, RunMemory.capacity(Place.sizeClass(place)) * PAGES_BYTES);
        return base(place) + HEADER_BYTES + pagesBytes + (long) Place.offset(place) * EXTENTS_BYTES;
    }

    /** Offset of the tag of the block at a place. */
    static long tagOffset(long place) {
        return behindExtents(place, 0);
    }

    /** Offset of bytes and checksum of the block at a place. */
    static long sizeOffset(long place) {
        return behindExtents(place, 1);
    }

    private static long key0Offset(long place) {
        return behindExtents(place, 2);
    }

    private static long behindExtents(long place, int columns) {
        long capacity = RunMemory.capacity(Place.sizeClass(place));
        return extents(Place.runOf(place))
                + capacity * (EXTENTS_BYTES + columns * Long.BYTES)
                + (long) Place.offset(place) * Long.BYTES;
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
        return memory.getLong(tagOffset(place));
    }

    long key0(long place) {
        return memory.getLong(key0Offset(place));
    }

    long extent(long place, Tier tier) {
        return memory.getLong(extents(place) + column(tier));
    }

    int bytes(long place) {
        return memory.getInt(sizeOffset(place));
    }

    int checksum(long place) {
        return memory.getInt(sizeOffset(place) + Integer.BYTES);
    }

    /** Whether the block at a place lies in some tier. */
    boolean isLive(long place) {
        long extents = extents(place);
        return isLive(host, memory.getLong(extents + HOST)) || isLive(nvme, memory.getLong(extents + NVME));
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
        memory.putLong(base + TURNS, 0);
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
        memory.putLong(tagOffset(place), tag);
        memory.putLong(base(run) + LAST_TAG, tag);
        putContent(place, tier, extent, size);
        memory.putIntRelease(base(run) + COUNT, count + 1); // partner: the reader's acquire of the count
        return place;
    }

    /**
     * Appends blocks of NVMe to a run that has room for them, column by column, and makes them readable at once.
     *
     * @param sizes what {@link #size} makes of bytes and checksum
     * @return the place of the first
     */
    long append(long run, long[] key0s, long[] tags, long[] extents, long[] sizes, int from, int blocks) {
        int count = count(run);
        assert count + blocks <= RunMemory.capacity(Place.sizeClass(run)) : count + " and " + blocks;
        long place = Place.runOf(run) | count;
        memory.copyFrom(key0Offset(place), key0s, from, blocks);
        memory.copyFrom(tagOffset(place), tags, from, blocks);
        memory.copyFrom(sizeOffset(place), sizes, from, blocks);
        memory.putLong(base(run) + LAST_TAG, tags[from + blocks - 1]);
        long turns = fold(extents, from, blocks) << count;
        memory.copyFrom(pages(place), pageColumn, 0, blocks);
        memory.copyFrom(extents(place), extentColumn, 0, 2 * blocks);
        if (count > 0 && isTurn(extents(place))) {
            turns |= 1L << count;
        }
        memory.putLong(base(run) + TURNS, memory.getLong(base(run) + TURNS) & ~(-1L << count) | turns);
        memory.putIntRelease(base(run) + COUNT, count + blocks); // partner: the reader's acquire of the count
        return place;
    }

    /** Writes extents of NVMe as a run has them into the two columns; the turns among them, the first not looked at. */
    private long fold(long[] extents, int from, int blocks) {
        long turns = 0;
        long before = extents[from];
        for (int i = 0; i < blocks; i++) {
            long extent = extents[from + i];
            extentColumn[2 * i + 1] = extent;
            pageColumn[i] = Extent.page(extent) << Short.SIZE;
            if (((extent ^ before) & SEGMENT_AND_GENERATION) != 0) {
                turns |= 1L << i;
            }
            before = extent;
        }
        return turns;
    }

    /** Gives a block new content in its old place. */
    void overwrite(long place, Tier tier, long extent, long size) {
        beginChange(place);
        putContent(place, tier, extent, size);
        endChange(place);
    }

    private void putContent(long place, Tier tier, long extent, long size) {
        memory.putLong(sizeOffset(place), size);
        putExtents(place, tier == Tier.HOST ? extent : Extent.NONE, tier == Tier.NVME ? extent : Extent.NONE);
    }

    /** Sets one extent of a block whose content stays the same. */
    void setExtent(long place, Tier tier, long extent) {
        long hostExtent = tier == Tier.HOST ? extent : extent(place, Tier.HOST);
        long nvmeExtent = tier == Tier.NVME ? extent : extent(place, Tier.NVME);
        beginChange(place);
        putExtents(place, hostExtent, nvmeExtent);
        endChange(place);
    }

    private void putExtents(long place, long hostExtent, long nvmeExtent) {
        long extents = extents(place);
        memory.putInt(pages(place), Extent.page(hostExtent) | Extent.page(nvmeExtent) << Short.SIZE);
        memory.putLong(extents + HOST, hostExtent);
        memory.putLong(extents + NVME, nvmeExtent);
        int offset = Place.offset(place);
        long turns = memory.getLong(base(place) + TURNS);
        if (offset > 0) {
            turns = withBit(turns, offset, isTurn(extents));
        }
        if (offset + 1 < count(place)) {
            turns = withBit(turns, offset + 1, isTurn(extents + EXTENTS_BYTES));
        }
        memory.putLong(base(place) + TURNS, turns);
    }

    private boolean isTurn(long extents) {
        long before = extents - EXTENTS_BYTES;
        long hostChange = memory.getLong(before + HOST) ^ memory.getLong(extents + HOST);
        long nvmeChange = memory.getLong(before + NVME) ^ memory.getLong(extents + NVME);
        return ((hostChange | nvmeChange) & SEGMENT_AND_GENERATION) != 0;
    }

    private static long withBit(long bits, int bit, boolean set) {
        return set ? bits | 1L << bit : bits & ~(1L << bit);
    }

    private static int column(Tier tier) {
        return tier == Tier.HOST ? HOST : NVME;
    }

    /** Zeroes stale extents of a block, so that a wrapped generation can't revive them; whether it is live. */
    boolean scrub(long place) {
        return scrub(place, Tier.HOST) | scrub(place, Tier.NVME);
    }

    private boolean scrub(long place, Tier tier) {
        long extent = extent(place, tier);
        if (extent == Extent.NONE || isLive(place, tier)) {
            return extent != Extent.NONE;
        }
        setExtent(place, tier, Extent.NONE);
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
        memory.copyFrom(to + COUNT, memory, from + COUNT, HEADER_BYTES - COUNT + (long) count * PAGES_BYTES);
        memory.copyFrom(extents(copy), memory, extents(run), (long) count * EXTENTS_BYTES);
        memory.copyFrom(tagOffset(copy), memory, tagOffset(run), (long) count * Long.BYTES);
        memory.copyFrom(sizeOffset(copy), memory, sizeOffset(run), (long) count * Long.BYTES);
        memory.copyFrom(key0Offset(copy), memory, key0Offset(run), (long) count * Long.BYTES);
        endChange(copy);
        for (int i = 0; i < count; i++) {
            scrub(copy | i); // a sweep that has passed here already must not miss what was stale before it began
        }
        return copy;
    }

    /** Cuts a run to its first blocks, at least one. */
    void truncate(long run, int count) {
        beginChange(run);
        memory.putInt(base(run) + COUNT, count);
        memory.putLong(base(run) + LAST_TAG, tag(run | count - 1));
        endChange(run);
    }

    /** Takes back what was just appended behind a run's first blocks, where no directory slot names it; with none left, the run. */
    void cut(long run, int count) {
        if (count > 0) {
            truncate(run, count);
        } else {
            free(run);
        }
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
