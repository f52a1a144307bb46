package io.orbitkv.store;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.Objects;

/**
 * Where the caller's blocks lie: the source of a save or the destination of a restore.
 *
 * <p>Block {@code i} is {@code blockBytes} bytes, one after the other in an array or in native memory, or scattered at
 * given offsets of native memory. Bounds are checked at each copy. The same object can be aimed again and again; it
 * holds no memory itself. Not thread-safe.
 */
public final class Blocks {
    private byte[] array;
    private MemoryRegion region;
    private long[] offsets;
    private long offset;

    private Blocks() {}

    /** Nothing yet: aim it with one of the {@code set} methods. */
    public static Blocks unset() {
        return new Blocks();
    }

    /** Blocks back to back in an array, from its start. */
    public static Blocks of(byte[] array) {
        return new Blocks().set(array, 0);
    }

    /** Blocks back to back in native memory, from its start. */
    public static Blocks of(MemoryRegion region) {
        return new Blocks().set(region, 0);
    }

    /**
     * Aims at blocks back to back in an array.
     *
     * @param bytes the array
     * @param start index of the first byte of block 0
     * @return this
     */
    public Blocks set(byte[] bytes, int start) {
        array = Objects.requireNonNull(bytes, "bytes");
        region = null;
        offsets = null;
        offset = start;
        return this;
    }

    /**
     * Aims at blocks back to back in native memory.
     *
     * @param memory the memory; {@link MemoryRegion#foreign(long, long)} for an engine's own
     * @param start offset of the first byte of block 0
     * @return this
     */
    public Blocks set(MemoryRegion memory, long start) {
        region = Objects.requireNonNull(memory, "memory");
        array = null;
        offsets = null;
        offset = start;
        return this;
    }

    /**
     * Aims at blocks scattered over native memory.
     *
     * @param memory the memory
     * @param starts offset of each block's first byte; read at each copy, so the caller may refill it between calls
     * @return this
     */
    public Blocks setScattered(MemoryRegion memory, long[] starts) {
        region = Objects.requireNonNull(memory, "memory");
        offsets = Objects.requireNonNull(starts, "starts");
        array = null;
        offset = 0;
        return this;
    }

    /** Refuses a call whose blocks would not all lie within bounds, before anything is copied. */
    void requireRoom(int blocks, int blockBytes) {
        if (array == null && region == null) {
            throw new OrbitKvException(ErrorCode.BAD_BUFFER, "the blocks are not aimed at any memory; call set first");
        }
        if (offsets != null) {
            requireScatteredRoom(blocks, blockBytes);
            return;
        }
        long capacity = array != null ? array.length : region.bytes();
        long needed = (long) blocks * blockBytes;
        if (offset < 0 || offset > capacity - needed) {
            throw tooSmall(blocks, blockBytes, offset, capacity);
        }
    }

    private void requireScatteredRoom(int blocks, int blockBytes) {
        if (blocks > offsets.length) {
            throw new OrbitKvException(
                    ErrorCode.BAD_BUFFER,
                    blocks + " blocks need as many offsets, got " + offsets.length + "; give one offset a block");
        }
        for (int i = 0; i < blocks; i++) {
            if (offsets[i] < 0 || offsets[i] > region.bytes() - blockBytes) {
                throw tooSmall(1, blockBytes, offsets[i], region.bytes());
            }
        }
    }

    private static OrbitKvException tooSmall(int blocks, int blockBytes, long start, long capacity) {
        return new OrbitKvException(
                ErrorCode.BAD_BUFFER,
                blocks + " blocks of " + blockBytes + " bytes from byte " + start + " do not fit into " + capacity
                        + " bytes; make the buffer larger or ask for fewer blocks");
    }

    void copyOut(int block, int blockBytes, long from, MemoryRegion target, long targetOffset, int length) {
        if (array != null) {
            target.copyFrom(targetOffset, array, (int) (start(block, blockBytes) + from), length);
        } else {
            target.copyFrom(targetOffset, region, start(block, blockBytes) + from, length);
        }
    }

    void copyIn(int block, int blockBytes, MemoryRegion source, long sourceOffset) {
        if (array != null) {
            source.copyTo(sourceOffset, array, (int) start(block, blockBytes), blockBytes);
        } else {
            region.copyFrom(start(block, blockBytes), source, sourceOffset, blockBytes);
        }
    }

    /** The native memory, or null where the blocks lie in an array. */
    MemoryRegion region() {
        return region;
    }

    /** Whether each block starts where the one before it ends. */
    boolean isBackToBack() {
        return offsets == null;
    }

    /** Where a block lies in native memory, which goes on from there for at least so many bytes. */
    long address(int block, long bytes, int blockBytes) {
        return region.address(start(block, blockBytes), bytes);
    }

    long start(int block, int blockBytes) {
        return offsets != null ? offsets[block] : offset + (long) block * blockBytes;
    }
}
