package io.orbitkv.store;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;

/**
 * Sizes that follow from the options.
 *
 * @param hostSegmentBytes segment of the host tier
 * @param logSegmentBytes segment of the log
 * @param writeQueueBlocks most blocks between save and drive
 * @param stagingBytes buffer of one restore
 */
record Sizes(int hostSegmentBytes, int logSegmentBytes, int writeQueueBlocks, int stagingBytes) {
    private static final int SEGMENT_BYTES_MIN = 1 << 20;
    private static final int SEGMENT_BYTES_MAX = 64 << 20;
    private static final int SEGMENT_BYTES_SMALLEST = 64 << 10;

    /** A tier is cut into about so many segments, so that evicting one costs little of it. */
    private static final int SEGMENTS_WANTED = 1024;

    /** A segment holds at least so many of the largest blocks beside its own pages, where the tier is large enough. */
    private static final int BLOCKS_A_SEGMENT = 4;

    /** Blocks may be this much smaller than the largest before the index evicts for want of room. */
    private static final int SMALLER_BLOCKS = 4;

    private static final int STAGING_BYTES_MIN = 8 << 20;
    private static final int STAGING_BLOCKS = 4;
    private static final int QUEUE_BLOCKS_MIN = 64;
    private static final int QUEUE_BLOCKS_MAX = 1 << 16;

    static Sizes of(StoreOptions options) {
        int padded = pages(options.blockBytesLargest()) * MemoryRegion.PAGE_BYTES;
        int host = segmentBytes(options, options.poolBytes(), padded, 2L * options.openSegments());
        int log = segmentBytes(options, options.capBytes(), padded, 4L * options.openSegments());
        // Half of the pool may wait for the drive; the other half stays for reads and for saves that are being copied.
        long queue = options.writeQueueBlocks() != 0
                ? options.writeQueueBlocks()
                : Math.max(QUEUE_BLOCKS_MIN, Math.min(QUEUE_BLOCKS_MAX, options.poolBytes() / 2 / padded));
        long staging = Math.max(STAGING_BYTES_MIN, (long) STAGING_BLOCKS * padded);
        return new Sizes(host, log, (int) queue, (int) Math.min(staging, 1 << 30));
    }

    /** Most blocks in the index of a store with so many bytes of log. */
    static long indexBlocksMax(StoreOptions options, long logBytes) {
        if (options.indexBlocksMax() != 0) {
            return options.indexBlocksMax();
        }
        int smallest = pages(options.blockBytesLargest()) * MemoryRegion.PAGE_BYTES / SMALLER_BLOCKS;
        return (options.poolBytes() + logBytes) / Math.max(MemoryRegion.PAGE_BYTES, smallest) + QUEUE_BLOCKS_MIN;
    }

    /** Blocks of the largest size that so many bytes of log hold. */
    static long logBlocks(StoreOptions options, long logBytes) {
        return Math.max(1, logBytes / MemoryRegion.PAGE_BYTES / pages(options.blockBytesLargest()));
    }

    /** The largest power of two that cuts the tier well and holds a few blocks; smaller where the tier is tiny. */
    private static int segmentBytes(StoreOptions options, long tierBytes, int padded, long segmentsMin) {
        if (options.segmentBytes() != 0) {
            return (int) options.segmentBytes();
        }
        long wanted = Long.highestOneBit(Math.max(1, tierBytes / SEGMENTS_WANTED));
        wanted = Math.max(SEGMENT_BYTES_MIN, Math.min(SEGMENT_BYTES_MAX, wanted));
        wanted = Math.max(wanted, Math.min(SEGMENT_BYTES_MAX, powerOfTwo((long) BLOCKS_A_SEGMENT * padded)));
        long smallest = Math.max(SEGMENT_BYTES_SMALLEST, powerOfTwo(padded + 4L * MemoryRegion.PAGE_BYTES));
        while (wanted / 2 >= smallest && tierBytes / wanted < segmentsMin) {
            wanted /= 2;
        }
        return (int) wanted;
    }

    private static int pages(int bytes) {
        return Extent.pages(bytes);
    }

    private static long powerOfTwo(long atLeast) {
        return Long.highestOneBit(Math.max(1, atLeast - 1)) << 1;
    }
}
