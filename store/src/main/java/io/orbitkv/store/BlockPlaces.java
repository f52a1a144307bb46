package io.orbitkv.store;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import java.util.Arrays;

/** Where blocks lie in the {@link Arena}; reused by the caller from call to call. Not thread-safe. */
public final class BlockPlaces {
    private final long[] extents;
    private final int[] checksums;
    private int count;

    /**
     * Room for places.
     *
     * @param blocksMax most blocks of a call
     */
    public BlockPlaces(int blocksMax) {
        this.extents = new long[blocksMax];
        this.checksums = new int[blocksMax];
    }

    void reset(int blocks) {
        count = blocks;
        Arrays.fill(extents, 0, blocks, Extent.NONE);
    }

    void set(int block, long extent, int checksum) {
        extents[block] = extent;
        checksums[block] = checksum;
    }

    /** Most blocks of a call. */
    public int blocksMax() {
        return extents.length;
    }

    /** How many blocks were asked for. */
    public int count() {
        return count;
    }

    /** Whether host memory has the block. */
    public boolean isInHost(int block) {
        return extents[block] != Extent.NONE;
    }

    /** Its segment. */
    public int segment(int block) {
        return Extent.segment(extents[block]);
    }

    /** The life of the segment in which it lies there. */
    public int generation(int block) {
        return Extent.generation(extents[block]);
    }

    /** Where its payload starts within its segment, in bytes. */
    public long offsetInSegment(int block) {
        return (long) Extent.page(extents[block]) * MemoryRegion.PAGE_BYTES;
    }

    /** CRC32C over its key and its payload. */
    public int checksum(int block) {
        return checksums[block];
    }
}
