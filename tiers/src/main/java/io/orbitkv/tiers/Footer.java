package io.orbitkv.tiers;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.MemoryRegion;

/**
 * The last pages of a sealed segment: all listings of its batches once more, so that a restart reads them at once.
 *
 * <pre>
 * offset bytes
 *    0     8   magic "OKVFTR01"
 *    8     4   version
 *   12     4   segment number
 *   16     8   use-sequence of the segment
 *   24     4   count of listings, at least 1
 *   28     4   footer pages: as few as hold 64 + 104 * count + 32 bytes
 *   32     4   batches
 *   36     4   payload pages
 *   40     4   overhead pages: segment pages less payload pages
 *   44    20   zero
 *   64 104*n   listings in order of their pages
 *  ...         zero
 *  -32     8   magic "OKVTRL01"       the trailer: the last 32 bytes of the segment
 *  -24     8   use-sequence of the segment
 *  -16     4   first footer page within the segment
 *  -12     4   footer pages
 *   -8     4   CRC32C of all footer bytes before this field
 *   -4     4   zero
 * </pre>
 *
 * <p>To read one: read the segment's last page (or more), {@link #decodeTrailer}, read {@link #pages()} pages from
 * {@link #firstPage()} on, {@link #decode}. Not thread-safe.
 */
public final class Footer {
    static final long MAGIC = DiskFormat.magic("OKVFTR01");
    static final long TRAILER_MAGIC = DiskFormat.magic("OKVTRL01");

    private static final int VERSION = 8;
    private static final int SEGMENT = 12;
    private static final int USE_SEQUENCE = 16;
    private static final int COUNT = 24;
    private static final int FOOTER_PAGES = 28;
    private static final int BATCHES = 32;
    private static final int PAYLOAD_PAGES = 36;
    private static final int OVERHEAD_PAGES = 40;
    private static final int LISTINGS = 64;

    /** Listings that are looked at with one call. */
    private static final int PIECE_LISTINGS = 64;

    private static final int TRAILER_BYTES = 32;
    private static final int TRAILER_USE_SEQUENCE = 8;
    private static final int TRAILER_FIRST_PAGE = 16;
    private static final int TRAILER_PAGES = 20;
    private static final int TRAILER_CRC = 24;
    private static final int TRAILER_RESERVED = 28;

    private final LogGeometry geometry;
    private final BlockChecksum checksum = new BlockChecksum();
    private final BlockListing look = new BlockListing();
    private int version;
    private int firstPage;
    private int pages;
    private int count;
    private int batches;
    private int payloadPages;

    /** The page behind the listings that were looked at. */
    private int end;

    /** A codec for one log. */
    public Footer(LogGeometry geometry) {
        this.geometry = geometry;
    }

    /** Pages of a footer with so many listings. */
    public static int pagesFor(int listings) {
        long bytes = LISTINGS + (long) listings * BlockListing.BYTES + TRAILER_BYTES;
        return (int) ((bytes + DiskFormat.PAGE_BYTES - 1) / DiskFormat.PAGE_BYTES);
    }

    /** Most pages of any footer of such a log: where every other page of the segment is a block. */
    public static int pagesMax(LogGeometry geometry) {
        return pagesFor(geometry.segmentPages());
    }

    /** Where listing i stands behind the start of the footer. */
    public static long listingOffset(int i) {
        return LISTINGS + (long) i * BlockListing.BYTES;
    }

    /**
     * Completes a footer whose listings are there already, at {@link #listingOffset}.
     *
     * @return its pages; it belongs at page {@code segmentPages - pages} of the segment
     */
    public int encode(
            MemoryRegion region,
            long offset,
            int segment,
            long useSequence,
            int listings,
            int batchCount,
            int blockPages) {
        assert listings >= 1 && batchCount >= 1 && blockPages >= listings : listings + " " + batchCount;
        int size = pagesFor(listings);
        region.fill(offset, LISTINGS, (byte) 0);
        region.putLong(offset, MAGIC);
        region.putInt(offset + VERSION, DiskFormat.VERSION);
        region.putInt(offset + SEGMENT, segment);
        region.putLong(offset + USE_SEQUENCE, useSequence);
        region.putInt(offset + COUNT, listings);
        region.putInt(offset + FOOTER_PAGES, size);
        region.putInt(offset + BATCHES, batchCount);
        region.putInt(offset + PAYLOAD_PAGES, blockPages);
        region.putInt(offset + OVERHEAD_PAGES, geometry.segmentPages() - blockPages);
        long trailer = trailerOffset(offset, size);
        long used = offset + listingOffset(listings);
        region.fill(used, trailer - used, (byte) 0);
        region.putLong(trailer, TRAILER_MAGIC);
        region.putLong(trailer + TRAILER_USE_SEQUENCE, useSequence);
        region.putInt(trailer + TRAILER_FIRST_PAGE, geometry.segmentPages() - size);
        region.putInt(trailer + TRAILER_PAGES, size);
        region.putInt(trailer + TRAILER_CRC, footerChecksum(region, offset, trailer));
        region.putInt(trailer + TRAILER_RESERVED, 0);
        return size;
    }

    /**
     * Reads the trailer in the last page of a segment: where the footer would be. Only {@link #decode} proves it.
     *
     * @param region holds the page; anything may stand in it
     * @param lastPageOffset where the segment's last page starts in the region
     * @param useSequence the use-sequence of the segment's header
     */
    public Verdict decodeTrailer(MemoryRegion region, long lastPageOffset, long useSequence) {
        clear();
        long trailer = trailerOffset(lastPageOffset, 1);
        if (region.getLong(trailer) != TRAILER_MAGIC) {
            return Verdict.ABSENT;
        }
        if (region.getLong(trailer + TRAILER_USE_SEQUENCE) != useSequence) {
            return Verdict.OTHER_USE;
        }
        int size = region.getInt(trailer + TRAILER_PAGES);
        int first = region.getInt(trailer + TRAILER_FIRST_PAGE);
        if (size < 1 || size > pagesMax(geometry) || first != geometry.segmentPages() - size || first < 1) {
            return Verdict.TORN; // its checksum can't be looked for, so this is as far as one can tell
        }
        firstPage = first;
        pages = size;
        return Verdict.VALID;
    }

    /**
     * Reads a footer.
     *
     * @param region holds its pages; anything may stand in them
     * @param offset where its first page starts in the region
     * @param size how many pages from there to the end of the segment, as {@link #decodeTrailer} told
     * @param segment the segment that it lies in
     * @param useSequence the use-sequence of that segment's header
     */
    public Verdict decode(MemoryRegion region, long offset, int size, int segment, long useSequence) {
        Verdict trailerVerdict = decodeTrailer(region, offset + (size - 1L) * DiskFormat.PAGE_BYTES, useSequence);
        if (trailerVerdict != Verdict.VALID) {
            return trailerVerdict;
        }
        if (pages != size) {
            return Verdict.TORN;
        }
        long trailer = trailerOffset(offset, size);
        if (region.getInt(trailer + TRAILER_CRC) != footerChecksum(region, offset, trailer)
                || region.getInt(trailer + TRAILER_RESERVED) != 0) {
            return Verdict.TORN;
        }
        if (region.getLong(offset) != MAGIC) {
            return Verdict.ABSENT;
        }
        version = region.getInt(offset + VERSION);
        if (version != DiskFormat.VERSION) {
            return Verdict.OTHER_VERSION;
        }
        if (region.getInt(offset + SEGMENT) != segment) {
            return Verdict.OTHER_SEGMENT;
        }
        if (region.getLong(offset + USE_SEQUENCE) != useSequence) {
            return Verdict.OTHER_USE;
        }
        return decodeListings(region, offset);
    }

    /** Blocks lie in order, the first behind two header pages, and between two there is nothing or one header page. */
    private Verdict decodeListings(MemoryRegion region, long offset) {
        int listings = region.getInt(offset + COUNT);
        if (listings < 1
                || listings > geometry.segmentPages()
                || pagesFor(listings) != pages
                || region.getInt(offset + FOOTER_PAGES) != pages) {
            return Verdict.MALFORMED;
        }
        end = SegmentHeader.PAGES;
        int blockPages = 0;
        for (int i = 0; i < listings; i += PIECE_LISTINGS) {
            int taken = takeListings(region, offset, i, Math.min(listings, i + PIECE_LISTINGS));
            if (taken < 0) {
                return Verdict.MALFORMED;
            }
            blockPages += taken;
        }
        int headers = end - SegmentHeader.PAGES - blockPages;
        if (headers != region.getInt(offset + BATCHES)
                || blockPages != region.getInt(offset + PAYLOAD_PAGES)
                || geometry.segmentPages() - blockPages != region.getInt(offset + OVERHEAD_PAGES)) {
            return Verdict.MALFORMED;
        }
        count = listings;
        batches = headers;
        payloadPages = blockPages;
        return Verdict.VALID;
    }

    /** Pages of some blocks, which lie from {@link #end} on, or -1 where they don't; called often, so that it is compiled early. */
    private int takeListings(MemoryRegion region, long offset, int from, int to) {
        int blockPages = 0;
        for (int i = from; i < to; i++) {
            look.wrap(region, offset + listingOffset(i));
            int page = look.firstPage();
            int size = look.pages();
            int gap = page - end;
            boolean inPlace = gap == BatchHeader.PAGES || (gap == 0 && i > 0);
            if (!inPlace || !look.isSound() || size > firstPage - page) {
                return -1;
            }
            blockPages += size;
            end = page + size;
        }
        return blockPages;
    }

    private void clear() {
        firstPage = 0;
        pages = 0;
        count = 0;
        batches = 0;
        payloadPages = 0;
    }

    private static long trailerOffset(long offset, int size) {
        return offset + (long) size * DiskFormat.PAGE_BYTES - TRAILER_BYTES;
    }

    private int footerChecksum(MemoryRegion region, long offset, long trailer) {
        return checksum.reset()
                .update(region, offset, trailer + TRAILER_CRC - offset)
                .value();
    }

    /** The version that the last decoded footer names; meaningful unless it was absent or torn. */
    public int version() {
        return version;
    }

    /** The footer's first page within the segment, as a good trailer says; otherwise 0. */
    public int firstPage() {
        return firstPage;
    }

    /** The footer's pages, as a good trailer says; otherwise 0. */
    public int pages() {
        return pages;
    }

    /** Listings of the last decoded footer; 0 unless it was valid. */
    public int count() {
        return count;
    }

    /** Batches of the last decoded footer; 0 unless it was valid. */
    public int batches() {
        return batches;
    }

    /** Pages of blocks of the last decoded footer; 0 unless it was valid. */
    public int payloadPages() {
        return payloadPages;
    }

    /** Pages of the segment that are no block's; 0 unless the last decoded footer was valid. */
    public int overheadPages() {
        return count == 0 ? 0 : geometry.segmentPages() - payloadPages;
    }
}
