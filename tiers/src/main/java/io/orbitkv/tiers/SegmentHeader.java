package io.orbitkv.tiers;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.MemoryRegion;

/**
 * The first page of a segment: whose it is and which use of it this is.
 *
 * <pre>
 * offset bytes
 *    0     8   magic "OKVSEG01"
 *    8     4   version
 *   12     4   segment number
 *   16     8   segment bytes
 *   24     8   use-sequence, at least 1
 *   32    16   store id
 *   48  4044   zero
 * 4092     4   CRC32C of bytes 0 to 4091
 * </pre>
 *
 * <p>Encodes and decodes one page at a time; after a decode the accessors tell what stood there. Not thread-safe.
 */
public final class SegmentHeader {
    /** Pages that it takes. */
    public static final int PAGES = 1;

    static final long MAGIC = DiskFormat.magic("OKVSEG01");
    private static final int VERSION = 8;
    private static final int SEGMENT = 12;
    private static final int SEGMENT_BYTES = 16;
    private static final int USE_SEQUENCE = 24;
    private static final int STORE_ID = 32;

    private final LogGeometry geometry;
    private final byte[] storeId;
    private final BlockChecksum checksum = new BlockChecksum();
    private int version;
    private int segment;
    private long segmentBytes;
    private long useSequence;

    /** A codec for one log. */
    public SegmentHeader(LogGeometry geometry) {
        this.geometry = geometry;
        this.storeId = geometry.storeId();
    }

    /** Writes the page of a segment's use at an offset of a region. */
    public void encode(MemoryRegion region, long offset, int segmentNumber, long use) {
        assert segmentNumber >= 0 && segmentNumber < geometry.segments() : segmentNumber;
        assert use >= 1 : use;
        region.fill(offset, DiskFormat.PAGE_BYTES, (byte) 0);
        region.putLong(offset, MAGIC);
        region.putInt(offset + VERSION, DiskFormat.VERSION);
        region.putInt(offset + SEGMENT, segmentNumber);
        region.putLong(offset + SEGMENT_BYTES, geometry.segmentBytes());
        region.putLong(offset + USE_SEQUENCE, use);
        region.copyFrom(offset + STORE_ID, storeId, 0, storeId.length);
        DiskFormat.sealPage(checksum, region, offset);
    }

    /**
     * Reads a page.
     *
     * @param region holds the page; anything may stand in it
     * @param offset where the page starts
     * @param segmentNumber the segment whose first page it is
     */
    public Verdict decode(MemoryRegion region, long offset, int segmentNumber) {
        useSequence = 0;
        if (region.getLong(offset) != MAGIC) {
            return Verdict.ABSENT;
        }
        if (!DiskFormat.isWholePage(checksum, region, offset)) {
            return Verdict.TORN;
        }
        version = region.getInt(offset + VERSION);
        segment = region.getInt(offset + SEGMENT);
        segmentBytes = region.getLong(offset + SEGMENT_BYTES);
        if (version != DiskFormat.VERSION) {
            return Verdict.OTHER_VERSION;
        }
        if (!hasStoreId(region, offset + STORE_ID)) {
            return Verdict.OTHER_STORE;
        }
        if (segment != segmentNumber || segmentBytes != geometry.segmentBytes()) {
            return Verdict.OTHER_SEGMENT;
        }
        useSequence = region.getLong(offset + USE_SEQUENCE);
        return useSequence >= 1 ? Verdict.VALID : Verdict.MALFORMED;
    }

    private boolean hasStoreId(MemoryRegion region, long offset) {
        for (int i = 0; i < storeId.length; i++) {
            if (region.getByte(offset + i) != storeId[i]) {
                return false;
            }
        }
        return true;
    }

    /** The version that the last decoded page names; meaningful unless it was absent or torn. */
    public int version() {
        return version;
    }

    /** The segment that the last decoded page names; meaningful unless it was absent or torn. */
    public int segment() {
        return segment;
    }

    /** The segment size that the last decoded page names; meaningful unless it was absent or torn. */
    public long segmentBytes() {
        return segmentBytes;
    }

    /** The use-sequence of the last decoded page if it was valid, otherwise 0. */
    public long useSequence() {
        return useSequence;
    }
}
