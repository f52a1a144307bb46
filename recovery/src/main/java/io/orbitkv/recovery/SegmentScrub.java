package io.orbitkv.recovery;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.Resources;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.Verdict;

/**
 * Reads a sealed segment again, block by block, and says which of them no longer match their checksums. Small blocks come in
 * pieces of up to 1 MiB of neighbours. One thread; the caller keeps the segment from being reused meanwhile.
 */
public final class SegmentScrub implements AutoCloseable {
    private static final int WINDOW_PAGES = 256;

    private final SegmentReader reader;
    private final BlockChecksum checksum = new BlockChecksum();
    private final MemoryRegion window;
    private int windowFirst;
    private int windowPages;

    /** Opens nothing yet. */
    public SegmentScrub(DataFolders folders, LogGeometry geometry) {
        Resources made = new Resources();
        try {
            window = made.keep(MemoryRegion.anonymous(
                    (long) WINDOW_PAGES * MemoryRegion.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING));
            reader = made.keep(new SegmentReader(folders, geometry));
            made.release();
        } finally {
            made.close();
        }
    }

    /**
     * Reads the listings of a segment's use.
     *
     * @return how many blocks it has
     */
    public int begin(int segment, long useSequence) {
        windowPages = 0;
        reader.read(segment, useSequence);
        return reader.count();
    }

    /** Whether the footer does not check out; the listings are those of the batch headers then. */
    public boolean isFooterWrong() {
        return reader.footerVerdict() != Verdict.VALID;
    }

    /** A view of the listing of a block; the same object each time. */
    public BlockListing listing(int i) {
        return reader.listing(i);
    }

    /**
     * Reads a block's payload and compares it with its checksum.
     *
     * @throws io.orbitkv.nativeio.OrbitKvException {@link io.orbitkv.nativeio.ErrorCode#DRIVE} where it can't be read
     */
    public boolean matches(int i) {
        BlockListing block = reader.listing(i);
        int pages = Extent.pages(block.storedBytes());
        if (pages > WINDOW_PAGES) {
            return reader.payloadMatches(block);
        }
        int first = block.firstPage();
        if (first < windowFirst || first + pages > windowFirst + windowPages) {
            int behind = reader.endPage() - first;
            windowPages = 0; // a read that fails leaves nothing that counts
            reader.readPages(first, Math.max(pages, Math.min(WINDOW_PAGES, behind)), window);
            windowFirst = first;
            windowPages = Math.max(pages, Math.min(WINDOW_PAGES, behind));
        }
        long at = (long) (first - windowFirst) * MemoryRegion.PAGE_BYTES;
        checksum.reset().update(block.region(), block.offset(), BlockListing.KEY_BYTES);
        return checksum.update(window, at, block.storedBytes()).value() == block.checksum();
    }

    @Override
    public void close() {
        reader.close();
        window.close();
    }
}
