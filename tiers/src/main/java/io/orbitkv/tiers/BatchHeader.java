package io.orbitkv.tiers;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.MemoryRegion;

/**
 * The page before the payloads of a batch: it lists them. It is written after they are, so that it proves them.
 *
 * <pre>
 * offset bytes
 *    0     8   magic "OKVBAT01"
 *    8     2   version
 *   10     2   kind: 1 blocks
 *   12     4   segment number
 *   16     8   use-sequence of the segment
 *   24     4   batch sequence within the use, from 0
 *   28     4   count of listings, 1 to 38
 *   32     4   payload pages behind this page
 *   36    28   zero
 *   64 104*n   listings; payloads lie back to back in this order, from the page after this one
 *  ...         zero
 * 4092     4   CRC32C of bytes 0 to 4091
 * </pre>
 *
 * <p>Encodes and decodes one page at a time; after a decode the accessors tell what stood there. Not thread-safe.
 */
public final class BatchHeader {
    /** Pages that it takes. */
    public static final int PAGES = 1;

    /** Most listings of a batch: what fits into its page. */
    public static final int LISTINGS_MAX = 38;

    /** The kind of a batch of blocks; there is no other yet. */
    public static final int KIND_BLOCKS = 1;

    static final long MAGIC = DiskFormat.magic("OKVBAT01");
    private static final int VERSION = 8;
    private static final int KIND = 10;
    private static final int SEGMENT = 12;
    private static final int USE_SEQUENCE = 16;
    private static final int BATCH_SEQUENCE = 24;
    private static final int COUNT = 28;
    private static final int PAYLOAD_PAGES = 32;
    private static final int LISTINGS = 64;

    private final LogGeometry geometry;
    private final BlockChecksum checksum = new BlockChecksum();
    private final BlockListing look = new BlockListing();
    private int version;
    private int batchSequence;
    private int count;
    private int payloadPages;

    /** A codec for one log. */
    public BatchHeader(LogGeometry geometry) {
        this.geometry = geometry;
    }

    /** Where listing i stands behind the start of the page. */
    public static int listingOffset(int i) {
        return LISTINGS + i * BlockListing.BYTES;
    }

    /** Zeroes a page, so that listings can be put at {@link #listingOffset} before {@link #encode}. */
    public static void begin(MemoryRegion region, long offset) {
        region.fill(offset, DiskFormat.PAGE_BYTES, (byte) 0);
    }

    /** Completes a page whose listings are there already. */
    public void encode(
            MemoryRegion region, long offset, int segment, long useSequence, int sequence, int listings, int pages) {
        assert listings >= 1 && listings <= LISTINGS_MAX : listings;
        assert pages >= listings && pages < geometry.segmentPages() : pages;
        region.putLong(offset, MAGIC);
        region.putShort(offset + VERSION, (short) DiskFormat.VERSION);
        region.putShort(offset + KIND, (short) KIND_BLOCKS);
        region.putInt(offset + SEGMENT, segment);
        region.putLong(offset + USE_SEQUENCE, useSequence);
        region.putInt(offset + BATCH_SEQUENCE, sequence);
        region.putInt(offset + COUNT, listings);
        region.putInt(offset + PAYLOAD_PAGES, pages);
        DiskFormat.sealPage(checksum, region, offset);
    }

    /**
     * Reads a page.
     *
     * @param region holds the page; anything may stand in it
     * @param offset where the page starts
     * @param segment the segment that it lies in
     * @param useSequence the use-sequence of that segment's header
     * @param sequence the batch sequence that comes next
     * @param page the page's number within the segment
     */
    public Verdict decode(MemoryRegion region, long offset, int segment, long useSequence, int sequence, int page) {
        count = 0;
        payloadPages = 0;
        if (region.getLong(offset) != MAGIC) {
            return Verdict.ABSENT;
        }
        if (!DiskFormat.isWholePage(checksum, region, offset)) {
            return Verdict.TORN;
        }
        version = region.getShort(offset + VERSION) & 0xFFFF;
        if (version != DiskFormat.VERSION) {
            return Verdict.OTHER_VERSION;
        }
        if (region.getInt(offset + SEGMENT) != segment) {
            return Verdict.OTHER_SEGMENT;
        }
        if (region.getLong(offset + USE_SEQUENCE) != useSequence) {
            return Verdict.OTHER_USE;
        }
        batchSequence = region.getInt(offset + BATCH_SEQUENCE);
        if (batchSequence != sequence) {
            return Verdict.OTHER_BATCH;
        }
        return decodeListings(region, offset, page);
    }

    private Verdict decodeListings(MemoryRegion region, long offset, int page) {
        int listings = region.getInt(offset + COUNT);
        int pages = region.getInt(offset + PAYLOAD_PAGES);
        if (region.getShort(offset + KIND) != KIND_BLOCKS || listings < 1 || listings > LISTINGS_MAX) {
            return Verdict.MALFORMED;
        }
        int next = page + PAGES; // a segment's pages fit into 17 bits and a listing's into 20: no overflow
        for (int i = 0; i < listings; i++) {
            look.wrap(region, offset + listingOffset(i));
            if (!look.isSound() || look.firstPage() != next || look.pages() > geometry.segmentPages() - next) {
                return Verdict.MALFORMED;
            }
            next += look.pages();
        }
        if (next - page - PAGES != pages) {
            return Verdict.MALFORMED;
        }
        count = listings;
        payloadPages = pages;
        return Verdict.VALID;
    }

    /** The version that the last decoded page names; meaningful unless it was absent or torn. */
    public int version() {
        return version;
    }

    /** The batch sequence that the last decoded page names; meaningful if it was valid or another batch. */
    public int batchSequence() {
        return batchSequence;
    }

    /** Listings of the last decoded page; 0 unless it was valid. */
    public int count() {
        return count;
    }

    /** Payload pages behind the last decoded page; 0 unless it was valid. */
    public int payloadPages() {
        return payloadPages;
    }
}
