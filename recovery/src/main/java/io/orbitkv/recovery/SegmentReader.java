package io.orbitkv.recovery;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.tiers.BatchHeader;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.Footer;
import io.orbitkv.tiers.ListedBlocks;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.SegmentHeader;
import io.orbitkv.tiers.Verdict;
import java.util.BitSet;

/**
 * Reads one segment at a time: header, then the listings of its footer or else of its batches, and payloads where they
 * are to be checked. What was read stays until the next call. Not thread-safe: each thread has its own.
 */
final class SegmentReader implements AutoCloseable {
    /** Footers of up to some 1,200 blocks come with one read. */
    private static final int TAIL_PAGES = 32;

    private static final int PIECE_BYTES = 1 << 20;
    private static final int PAGE_BYTES = MemoryRegion.PAGE_BYTES;

    /** Where header pages and trailers keep their use-sequence, whatever else is wrong with them. */
    private static final int BATCH_USE_SEQUENCE = 16;

    private static final int TRAILER_USE_SEQUENCE = PAGE_BYTES - 24;

    private final DataFolders folders;
    private final LogGeometry geometry;
    private final SegmentHeader header;
    private final BatchHeader batch;
    private final Footer footer;
    private final BlockListing look = new BlockListing();
    private final ListedBlocks blocks = new ListedBlocks();
    private final BlockChecksum checksum = new BlockChecksum();
    private final MemoryRegion scratch = MemoryRegion.anonymous(PIECE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING);
    private final MemoryRegion listings;
    private StorageFile file;
    private int fileNumber = -1;

    private int segment;
    private long useSequence;
    private Verdict headerVerdict;
    private Verdict footerVerdict;
    private Verdict endVerdict;
    private boolean fromFooter;
    private int count;
    private int batches;
    private int payloadPages;
    private int endPage;
    private boolean stale;
    private final BitSet wrong = new BitSet();

    SegmentReader(DataFolders folders, LogGeometry geometry) {
        this.folders = folders;
        this.geometry = geometry;
        this.header = new SegmentHeader(geometry);
        this.batch = new BatchHeader(geometry);
        this.footer = new Footer(geometry);
        this.listings = MemoryRegion.anonymous(
                (long) Footer.pagesMax(geometry) * PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING);
    }

    /** Reads a segment's first page; {@link #useSequence()} is 0 unless it is valid. */
    Verdict readHeader(int number) {
        segment = number;
        read(0, 1, scratch, 0);
        headerVerdict = header.decode(scratch, 0, number);
        useSequence = header.useSequence();
        return headerVerdict;
    }

    /** Whether the header page that was just read has nothing but zeros. */
    boolean isZeroHeader() {
        for (int i = 0; i < PAGE_BYTES; i += Long.BYTES) {
            if (scratch.getLong(i) != 0) {
                return false;
            }
        }
        return true;
    }

    /** What the header that was just read says of itself, for messages. */
    String headerText() {
        return "version " + header.version() + ", segment " + header.segment() + " of " + header.segmentBytes()
                + " bytes";
    }

    /**
     * Finds out which use a segment with a damaged header is in: its first batch tells, else its footer.
     *
     * @return the use-sequence, or 0 when neither stands
     */
    long useBehindHeader(int number) {
        segment = number;
        read(1, 1, scratch, 0);
        long fromBatch = scratch.getLong(BATCH_USE_SEQUENCE);
        if (fromBatch >= 1 && batch.decode(scratch, 0, number, fromBatch, 0, 1) == Verdict.VALID) {
            return fromBatch;
        }
        read(geometry.segmentPages() - 1, 1, scratch, 0);
        long fromTrailer = scratch.getLong(TRAILER_USE_SEQUENCE);
        return fromTrailer >= 1 && readFooter(number, fromTrailer) == Verdict.VALID ? fromTrailer : 0;
    }

    /** Reads the listings of a segment's use: of its footer, and where that doesn't count, of its batches. */
    void read(int number, long use) {
        read(number, use, 0);
    }

    /**
     * The same with one read where it is known how many blocks there are.
     *
     * @param blocks how many the footer lists; 0, or another number: it is found out
     */
    void read(int number, long use, int blocks) {
        fromFooter = readFooterOf(number, use, blocks) || readFooter(number, use) == Verdict.VALID;
        if (!fromFooter) {
            readBatches(number, use);
        }
    }

    private boolean readFooterOf(int number, long use, int blocks) {
        int pages = Footer.pagesFor(blocks);
        if (blocks == 0 || pages > Footer.pagesMax(geometry)) {
            return false;
        }
        begin(number, use);
        read(geometry.segmentPages() - pages, pages, listings, 0);
        return decodeFooter(pages) == Verdict.VALID;
    }

    /** Reads the footer of a segment's use. */
    Verdict readFooter(int number, long use) {
        begin(number, use);
        int tail = Math.min(TAIL_PAGES, geometry.segmentPages() - 1);
        int tailPage = geometry.segmentPages() - tail;
        read(tailPage, tail, scratch, 0);
        footerVerdict = footer.decodeTrailer(scratch, (tail - 1L) * PAGE_BYTES, use);
        if (footerVerdict != Verdict.VALID) {
            return footerVerdict;
        }
        int pages = footer.pages();
        int first = footer.firstPage();
        if (pages <= tail) {
            listings.copyFrom(0, scratch, (first - tailPage) * (long) PAGE_BYTES, (long) pages * PAGE_BYTES);
        } else {
            read(first, pages, listings, 0);
        }
        return decodeFooter(pages);
    }

    private Verdict decodeFooter(int pages) {
        footerVerdict = footer.decode(listings, 0, pages, segment, useSequence);
        if (footerVerdict == Verdict.VALID) {
            count = footer.count();
            batches = footer.batches();
            payloadPages = footer.payloadPages();
            endPage = count == 0 ? SegmentHeader.PAGES : listing(count - 1).firstPage() + look.pages();
        }
        return footerVerdict;
    }

    /** Reads the footer that an earlier use left, where it has not been written over yet; its listings are stale. */
    void readOldFooter(int number, long use) {
        begin(number, use);
        read(geometry.segmentPages() - 1, 1, scratch, 0);
        long fromTrailer = scratch.getLong(TRAILER_USE_SEQUENCE);
        if (fromTrailer < 1 || fromTrailer == use || readFooter(number, fromTrailer) != Verdict.VALID) {
            begin(number, use);
            return;
        }
        stale = true;
    }

    /** Whether the listings are those of a use that has ended. */
    boolean isStale() {
        return stale;
    }

    /** Walks the batches of a segment's use up to the first that doesn't count; {@link #endVerdict()} tells why. */
    void readBatches(int number, long use) {
        readBatches(number, use, (page, sequence, listed, pages) -> {});
    }

    /** Is told of each batch that counts. */
    @FunctionalInterface
    interface BatchTaker {
        void take(int page, int sequence, int count, int payloadPages);
    }

    /** The same, and tells somebody of each batch. */
    void readBatches(int number, long use, BatchTaker taker) {
        begin(number, use);
        int page = SegmentHeader.PAGES;
        endVerdict = Verdict.ABSENT;
        while (page < geometry.segmentPages()) {
            read(page, 1, scratch, 0);
            endVerdict = batch.decode(scratch, 0, number, use, batches, page);
            if (endVerdict != Verdict.VALID) {
                break;
            }
            long bytes = (long) batch.count() * BlockListing.BYTES;
            listings.copyFrom(Footer.listingOffset(count), scratch, BatchHeader.listingOffset(0), bytes);
            taker.take(page, batches, batch.count(), batch.payloadPages());
            count += batch.count();
            batches++;
            payloadPages += batch.payloadPages();
            page += BatchHeader.PAGES + batch.payloadPages();
        }
        endPage = page;
    }

    /** Reads every payload and compares it with its checksum; answers how many are {@link #isWrong wrong}. */
    int checkPayloads() {
        wrong.clear();
        for (int i = 0; i < count; i++) {
            wrong.set(i, !payloadMatches(listing(i)));
        }
        return wrong.cardinality();
    }

    boolean payloadMatches(BlockListing block) {
        checksum.reset().update(block.region(), block.offset(), BlockListing.KEY_BYTES);
        readPayload(block.firstPage(), block.storedBytes(), piece -> {});
        return checksum.value() == block.checksum();
    }

    /** Is given the bytes of a payload, piece by piece, at the start of the scratch memory. */
    private interface Pieces {
        void take(int bytes);
    }

    private void readPayload(int page, int bytes, Pieces pieces) {
        for (int done = 0; done < bytes; ) {
            int piece = Math.min(PIECE_BYTES, bytes - done);
            read(page + done / PAGE_BYTES, io.orbitkv.nativeio.Extent.pages(piece), scratch, 0);
            checksum.update(scratch, 0, piece);
            pieces.take(piece);
            done += piece;
        }
    }

    /** The checksum of a key and the bytes that stand at a place, of which the first are copied out. */
    int checksumOf(int number, int page, int bytes, byte[] key, byte[] first) {
        segment = number;
        scratch.copyFrom(0, key, 0, BlockListing.KEY_BYTES);
        checksum.reset().update(scratch, 0, BlockListing.KEY_BYTES);
        int[] copied = new int[1];
        readPayload(page, bytes, piece -> {
            int length = Math.min(piece, first.length - copied[0]);
            scratch.copyTo(0, first, copied[0], length);
            copied[0] += length;
        });
        return checksum.value();
    }

    /**
     * Writes the footer for the listings that were read from batches.
     *
     * @return false when the batches leave no room for one: then they are walked each time
     */
    boolean writeFooter() {
        int pages = Footer.pagesFor(count);
        if (count == 0 || endPage + pages > geometry.segmentPages()) {
            return false;
        }
        footer.encode(listings, 0, segment, useSequence, count, batches, payloadPages);
        write(geometry.segmentPages() - pages, pages, listings);
        return true;
    }

    /**
     * Writes the batch headers again that the footer just read implies: a new batch starts wherever a page lies between
     * two blocks. For a power loss that kept a footer and took a header before it.
     */
    void writeBatchHeaders() {
        int sequence = 0;
        for (int i = 0; i < count; ) {
            int page = listing(i).firstPage() - BatchHeader.PAGES;
            int end = page + BatchHeader.PAGES;
            int first = i;
            BatchHeader.begin(scratch, 0);
            while (i < count
                    && i - first < BatchHeader.LISTINGS_MAX
                    && listing(i).firstPage() == end) {
                scratch.copyFrom(
                        BatchHeader.listingOffset(i - first), listings, Footer.listingOffset(i), BlockListing.BYTES);
                end += look.pages();
                i++;
            }
            int pages = end - page - BatchHeader.PAGES;
            batch.encode(scratch, 0, segment, useSequence, sequence++, i - first, pages);
            write(page, 1, scratch);
        }
    }

    /** Writes the header page of a segment's use again. */
    void writeHeader(int number, long use) {
        segment = number;
        header.encode(scratch, 0, number, use);
        write(0, 1, scratch);
    }

    /** Gives a segment that holds nothing the header page of one that was never used. */
    void blankHeader(int number) {
        segment = number;
        scratch.fill(0, PAGE_BYTES, (byte) 0);
        write(0, 1, scratch);
    }

    private void write(int page, int pages, MemoryRegion from) {
        int number = geometry.file(segment);
        try (StorageFile target = folders.get(geometry.folderOfFile(number)).open(LogGeometry.fileName(number), true)) {
            target.write(geometry.fileOffset(segment, page), from, 0, pages * PAGE_BYTES);
            target.flush();
        }
    }

    /** Forgets what was read: the segment holds nothing. */
    void begin(int number, long use) {
        segment = number;
        useSequence = use;
        fromFooter = false;
        stale = false;
        count = 0;
        batches = 0;
        payloadPages = 0;
        endPage = SegmentHeader.PAGES;
        wrong.clear();
    }

    private void read(int page, int pages, MemoryRegion into, long offset) {
        int number = geometry.file(segment);
        if (number != fileNumber) {
            closeFile();
            file = folders.get(geometry.folderOfFile(number)).open(LogGeometry.fileName(number), false);
            fileNumber = number;
        }
        file.read(geometry.fileOffset(segment, page), into, offset, pages * PAGE_BYTES);
    }

    /** Reads pages of the segment whose listings were read. */
    void readPages(int page, int pages, MemoryRegion into) {
        read(page, pages, into, 0);
    }

    int segment() {
        return segment;
    }

    long useSequence() {
        return useSequence;
    }

    Verdict footerVerdict() {
        return footerVerdict;
    }

    Verdict endVerdict() {
        return endVerdict;
    }

    boolean isFromFooter() {
        return fromFooter;
    }

    int count() {
        return count;
    }

    int batches() {
        return batches;
    }

    /** The page behind the last block that was listed. */
    int endPage() {
        return endPage;
    }

    int payloadPages() {
        return payloadPages;
    }

    /** Blocks whose bytes were read and don't match their checksums. */
    int wrongCount() {
        return wrong.cardinality();
    }

    boolean isWrong(int i) {
        return wrong.get(i);
    }

    /** A view of listing i; the same object each time. */
    BlockListing listing(int i) {
        return look.wrap(listings, Footer.listingOffset(i));
    }

    /** The listings in columns, as {@link #list} has taken them. */
    ListedBlocks blocks() {
        return blocks;
    }

    /** Takes the listings apart, for an index; the extents are of a generation. */
    void list(int generation) {
        blocks.take(listings, Footer.listingOffset(0), count, segment, generation);
    }

    /** A copy of listing i's bytes. */
    byte[] listingBytes(int i) {
        byte[] copy = new byte[BlockListing.BYTES];
        listings.copyTo(Footer.listingOffset(i), copy, 0, copy.length);
        return copy;
    }

    private void closeFile() {
        if (file != null) {
            file.close();
            file = null;
            fileNumber = -1;
        }
    }

    @Override
    public void close() {
        closeFile();
        scratch.close();
        listings.close();
    }
}
