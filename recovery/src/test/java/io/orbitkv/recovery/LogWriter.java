package io.orbitkv.recovery;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.tiers.BatchHeader;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.Footer;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.SegmentHeader;
import java.util.ArrayList;
import java.util.List;

/** Writes segments by hand, page by page, as the log would. */
final class LogWriter implements AutoCloseable {
    private static final int PAGE_BYTES = MemoryRegion.PAGE_BYTES;

    /** A block and where it was put. */
    record Put(TestBlock block, int segment, int page) {
        long extent() {
            return Extent.pack(segment, page, Indexing.GENERATION);
        }
    }

    private final DataFolder folder;
    private final LogGeometry geometry;
    private final MemoryRegion memory;
    private final BlockListing listing = new BlockListing();
    private final List<Put> inSegment = new ArrayList<>();
    private int segment;
    private long use;
    private int page;
    private int batches;
    private int payloadPages;

    LogWriter(DataFolder folder, LogGeometry geometry) {
        this.folder = folder;
        this.geometry = geometry;
        this.memory = MemoryRegion.anonymous(geometry.segmentBytes() * 2L, PageKind.SMALL, MemoryPurpose.TOOL);
    }

    /** Writes a segment's header, flushed. */
    void start(int newSegment, long newUse) {
        segment = newSegment;
        use = newUse;
        page = SegmentHeader.PAGES;
        batches = 0;
        payloadPages = 0;
        inSegment.clear();
        new SegmentHeader(geometry).encode(memory, 0, segment, use);
        write(0, 1);
        flush();
    }

    /** Whether a batch of these blocks, and the footer after it, still fits. */
    boolean fits(List<TestBlock> blocks) {
        int pages = blocks.stream().mapToInt(TestBlock::pages).sum();
        return page + 1 + pages + Footer.pagesFor(inSegment.size() + blocks.size()) <= geometry.segmentPages();
    }

    /** Writes a batch: payloads, then its header. */
    List<Put> batch(List<TestBlock> blocks) {
        return batch(blocks, true, true);
    }

    /** Writes a batch, or only its payloads (a kill), or only its header (a power loss). */
    List<Put> batch(List<TestBlock> blocks, boolean payloads, boolean header) {
        List<Put> puts = new ArrayList<>();
        BatchHeader.begin(memory, 0);
        int at = page + 1;
        for (int i = 0; i < blocks.size(); i++) {
            TestBlock block = blocks.get(i);
            listing.wrap(memory, BatchHeader.listingOffset(i)).key(block.key(), 0);
            if (block.parentNumber() != TestBlock.NO_PARENT) {
                listing.parent(TestBlock.key(block.parentNumber()), 0);
            }
            listing.namespaceId64(block.namespaceId64())
                    .namespaceEpoch(block.epoch())
                    .birth(block.birth())
                    .storedBytes(block.bytes())
                    .logicalBytes(block.bytes())
                    .checksum(block.checksum())
                    .firstPage(at);
            memory.copyFrom((at - page) * (long) PAGE_BYTES, block.payload(), 0, block.bytes());
            puts.add(new Put(block, segment, at));
            at += block.pages();
        }
        int pages = at - page - 1;
        new BatchHeader(geometry).encode(memory, 0, segment, use, batches, blocks.size(), pages);
        if (payloads) {
            writePart(page + 1, 1, pages);
        }
        if (header) {
            writePart(page, 0, 1);
            batches++;
            payloadPages += pages;
            page = at;
            inSegment.addAll(puts);
        }
        return puts;
    }

    /** Writes the footer. */
    void seal() {
        for (int i = 0; i < inSegment.size(); i++) {
            Put put = inSegment.get(i);
            TestBlock block = put.block();
            listing.wrap(memory, Footer.listingOffset(i)).clear().key(block.key(), 0);
            if (block.parentNumber() != TestBlock.NO_PARENT) {
                listing.parent(TestBlock.key(block.parentNumber()), 0);
            }
            listing.namespaceId64(block.namespaceId64())
                    .namespaceEpoch(block.epoch())
                    .birth(block.birth())
                    .storedBytes(block.bytes())
                    .logicalBytes(block.bytes())
                    .checksum(block.checksum())
                    .firstPage(put.page());
        }
        int pages = new Footer(geometry).encode(memory, 0, segment, use, inSegment.size(), batches, payloadPages);
        write(geometry.segmentPages() - pages, pages);
    }

    /** Pages of blocks in the segment so far. */
    int payloadPages() {
        return payloadPages;
    }

    /** Blocks in the segment so far. */
    int blocks() {
        return inSegment.size();
    }

    private void write(int firstPage, int pages) {
        writePart(firstPage, 0, pages);
    }

    private void writePart(int firstPage, int fromPage, int pages) {
        try (StorageFile file = open()) {
            file.write(
                    geometry.fileOffset(segment, firstPage), memory, fromPage * (long) PAGE_BYTES, pages * PAGE_BYTES);
        }
    }

    /** Flushes the segment's file. */
    void flush() {
        try (StorageFile file = open()) {
            file.flush();
        }
    }

    private StorageFile open() {
        return folder.open(LogGeometry.fileName(geometry.file(segment)), true);
    }

    @Override
    public void close() {
        memory.close();
    }
}
