package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/**
 * Goal: what a codec wrote it reads back, every flipped bit is noticed, and no page whatever makes it throw or read past
 * its bounds.
 * Method: seeded round trips; every bit of a valid page flipped; random pages; and random pages and fields with their
 * checksum made right again, so that the checks behind it are reached. Regions are exactly as large as the pages that a
 * decoder was given, so a read past them throws.
 */
class CodecTest {
    private static final int SEGMENT = 5;
    private static final long USE = 77;
    private static final int SEGMENT_BYTES = 1 << 20;
    private static final LogGeometry GEOMETRY = new LogGeometry(SEGMENT_BYTES, 100, Listings.STORE_ID);

    private final Gen gen = new Gen(Seed.of(CodecTest.class));

    @Test
    void geometryPlacesSegmentsInFiles() {
        assertEquals(64, GEOMETRY.segmentsPerFile());
        assertEquals(2, GEOMETRY.files());
        assertEquals(64L << 20, GEOMETRY.fileBytes(0));
        assertEquals(36L << 20, GEOMETRY.fileBytes(1));
        assertEquals(1, GEOMETRY.file(64));
        assertEquals(3L << 20, GEOMETRY.fileOffset(67));
        assertEquals((3L << 20) + 8192, GEOMETRY.fileOffset(67, 2));
        assertEquals("segments/000000000001.seg", LogGeometry.fileName(1));
        assertEquals(1, LogGeometry.fileNumber("000000000001.seg"));
        assertEquals(-1, LogGeometry.fileNumber("000000000001.tmp"));
        assertEquals(-1, LogGeometry.fileNumber("00000000001.seg"));
        assertEquals(-1, LogGeometry.fileNumber("00000000000x.seg"));
        assertEquals(-1, LogGeometry.fileNumber("999999999999.seg"));
        assertEquals(1, new LogGeometry(128 << 20, 3, Listings.STORE_ID).segmentsPerFile());
        assertThrows(OrbitKvException.class, () -> new LogGeometry(3 << 20, 3, Listings.STORE_ID));
        assertThrows(OrbitKvException.class, () -> new LogGeometry(1 << 20, 0, Listings.STORE_ID));
        assertThrows(OrbitKvException.class, () -> new LogGeometry(1 << 20, 1, new byte[15]));
    }

    @Test
    void segmentHeaderRoundTrip() {
        try (MemoryRegion page = Listings.pages(1)) {
            SegmentHeader header = new SegmentHeader(GEOMETRY);
            assertEquals(Verdict.ABSENT, header.decode(page, 0, SEGMENT));
            header.encode(page, 0, SEGMENT, USE);
            assertEquals(Verdict.VALID, header.decode(page, 0, SEGMENT));
            assertEquals(USE, header.useSequence());
            assertEquals(Verdict.OTHER_SEGMENT, header.decode(page, 0, SEGMENT + 1));
            assertEquals(0, header.useSequence());
            byte[] otherId = Arrays.copyOf("other".getBytes(java.nio.charset.StandardCharsets.US_ASCII), 16);
            assertEquals(
                    Verdict.OTHER_STORE,
                    new SegmentHeader(new LogGeometry(SEGMENT_BYTES, 100, otherId)).decode(page, 0, SEGMENT));
            assertEquals(
                    Verdict.OTHER_SEGMENT,
                    new SegmentHeader(new LogGeometry(2 << 20, 100, Listings.STORE_ID)).decode(page, 0, SEGMENT));
            page.putInt(8, 2);
            assertEquals(Verdict.TORN, header.decode(page, 0, SEGMENT));
            reseal(page, 0);
            assertEquals(Verdict.OTHER_VERSION, header.decode(page, 0, SEGMENT));
            assertEquals(2, header.version());
        }
    }

    @Test
    void columnsSayWhatListingsSay() {
        ListedBlocks columns = new ListedBlocks();
        BlockListing listing = new BlockListing();
        for (int round = 0; round < 40; round++) {
            int count = gen.below(300);
            boolean[] follows = new boolean[count];
            try (MemoryRegion region = Listings.pages(9)) {
                long[] at = {16};
                for (int i = 0; i < count; i++, at[0] += BlockListing.BYTES) {
                    Listings.fill(listing.wrap(region, at[0]), gen, gen.between(1, Integer.MAX_VALUE));
                    listing.firstPage(gen.below(1 << 16));
                    follows[i] = i > 0 && gen.chance(0.9);
                    if (i > 0) {
                        follow(new BlockListing().wrap(region, at[0] - BlockListing.BYTES), listing, follows[i]);
                    }
                }
                columns.take(region, 16, count, SEGMENT, 3);
                for (int i = 0; i < count; i++) {
                    listing.wrap(region, 16 + (long) i * BlockListing.BYTES);
                    assertEquals(region.getLong(listing.offset()), columns.key0s()[i]);
                    assertEquals(region.getLong(listing.offset() + 8), columns.tags()[i]);
                    assertEquals(Extent.pack(SEGMENT, listing.firstPage(), 3), columns.extents()[i]);
                    assertEquals(listing.storedBytes(), (int) columns.sizes()[i]);
                    assertEquals(listing.checksum(), (int) (columns.sizes()[i] >>> 32));
                    assertEquals(listing.pages(), columns.pages(i, 1));
                    int max = Math.min(gen.between(1, 64), count - i);
                    int chain = 1;
                    while (chain < max && follows[i + chain]) {
                        chain++;
                    }
                    assertEquals(chain, columns.chain(i, max));
                }
            }
        }
    }

    /** Makes a listing follow the one before, or differ from that in one thing. */
    private void follow(BlockListing before, BlockListing listing, boolean follows) {
        listing.parent(before.region(), before.offset())
                .namespaceId64(before.namespaceId64())
                .namespaceEpoch(before.namespaceEpoch());
        if (follows) {
            return;
        }
        MemoryRegion region = listing.region();
        switch (gen.below(5)) {
            case 0 -> listing.flags(0);
            case 1 -> listing.namespaceId64(before.namespaceId64() + 1);
            case 2 -> listing.namespaceEpoch(before.namespaceEpoch() + 1);
            case 3 -> region.putLong(listing.parentOffset(), region.getLong(before.offset()) + 1);
            default -> region.putLong(listing.parentOffset() + 8, region.getLong(before.offset() + 8) + 1);
        }
    }

    @Test
    void batchRoundTripAtItsLimits() {
        int[] sizes = new int[BatchHeader.LISTINGS_MAX];
        Arrays.setAll(sizes, i -> i % 3 == 0 ? 1 : gen.between(1, 20_000));
        try (MemoryRegion page = Listings.pages(1)) {
            int pages = Listings.batch(GEOMETRY, page, 0, gen, SEGMENT, USE, 3, 9, sizes);
            BatchHeader header = new BatchHeader(GEOMETRY);
            assertEquals(Verdict.VALID, header.decode(page, 0, SEGMENT, USE, 3, 9));
            assertEquals(sizes.length, header.count());
            assertEquals(pages, header.payloadPages());
            assertEquals(Verdict.OTHER_SEGMENT, header.decode(page, 0, SEGMENT + 1, USE, 3, 9));
            assertEquals(Verdict.OTHER_USE, header.decode(page, 0, SEGMENT, USE + 1, 3, 9));
            assertEquals(Verdict.OTHER_BATCH, header.decode(page, 0, SEGMENT, USE, 4, 9));
            assertEquals(3, header.batchSequence());
            assertEquals(0, header.count());
            assertEquals(Verdict.MALFORMED, header.decode(page, 0, SEGMENT, USE, 3, 10), "listings name other pages");
        }
    }

    @Test
    void listingKeepsEveryField() {
        try (MemoryRegion page = Listings.pages(1)) {
            BlockListing listing = new BlockListing().wrap(page, 8);
            byte[] key = gen.bytes(32);
            byte[] parent = gen.bytes(32);
            listing.clear().key(key, 0);
            assertFalse(listing.hasParent());
            listing.parent(parent, 0)
                    .namespaceId64(-2)
                    .birth(1L << 60)
                    .namespaceEpoch(-3)
                    .storedBytes(4097)
                    .logicalBytes(9)
                    .checksum(0x80000001)
                    .firstPage(65535);
            BlockListing copy = new BlockListing().wrap(page, 2048).set(listing);
            byte[] read = new byte[32];
            copy.keyTo(read, 0);
            assertArrayEquals(key, read);
            assertArrayEquals(parent, Listings.bytes(page, copy.parentOffset(), 32));
            assertTrue(copy.hasParent());
            assertTrue(copy.isSound());
            assertEquals(-2, copy.namespaceId64());
            assertEquals(1L << 60, copy.birth());
            assertEquals(-3, copy.namespaceEpoch());
            assertEquals(4097, copy.storedBytes());
            assertEquals(2, copy.pages());
            assertEquals(9, copy.logicalBytes());
            assertEquals(0x80000001, copy.checksum());
            assertEquals(65535, copy.firstPage());
            assertFalse(copy.codec(1).isSound());
        }
    }

    @Test
    void footerRoundTripOverSeveralPages() {
        for (int count : new int[] {1, 37, 38, 39, 100, 124}) {
            int size = Footer.pagesFor(count);
            try (MemoryRegion pages = Listings.pages(size)) {
                int batches = footer(pages, count);
                Footer footer = new Footer(GEOMETRY);
                long last = (size - 1L) * DiskFormat.PAGE_BYTES;
                assertEquals(Verdict.VALID, footer.decodeTrailer(pages, last, USE));
                assertEquals(size, footer.pages());
                assertEquals(256 - size, footer.firstPage());
                assertEquals(Verdict.VALID, footer.decode(pages, 0, size, SEGMENT, USE));
                assertEquals(count, footer.count());
                assertEquals(batches, footer.batches());
                assertEquals(count, footer.payloadPages());
                assertEquals(256 - count, footer.overheadPages());
                assertEquals(Verdict.OTHER_USE, footer.decode(pages, 0, size, SEGMENT, USE + 1));
                assertEquals(Verdict.OTHER_SEGMENT, footer.decode(pages, 0, size, SEGMENT + 1, USE));
                assertEquals(0, footer.count());
            }
        }
    }

    /** One-page blocks in batches of up to 30; returns how many batches. */
    private int footer(MemoryRegion pages, int count) {
        BlockListing listing = new BlockListing();
        int batches = 0;
        int page = SegmentHeader.PAGES;
        for (int i = 0; i < count; i++) {
            if (i % 30 == 0) {
                batches++;
                page++;
            }
            Listings.fill(listing.wrap(pages, Footer.listingOffset(i)), gen, gen.between(1, 4096));
            listing.firstPage(page++);
        }
        assertEquals(pages.bytes(), new Footer(GEOMETRY).encode(pages, 0, SEGMENT, USE, count, batches, count) * 4096L);
        return batches;
    }

    @Test
    void everyFlippedBitIsNoticed() {
        try (MemoryRegion region = Listings.pages(2)) {
            SegmentHeader segment = new SegmentHeader(GEOMETRY);
            segment.encode(region, 0, SEGMENT, USE);
            flipAll(region, 4096, () -> segment.decode(region, 0, SEGMENT));
            Listings.batch(GEOMETRY, region, 0, gen, SEGMENT, USE, 0, 1, 100, 5000, 1);
            BatchHeader batch = new BatchHeader(GEOMETRY);
            flipAll(region, 4096, () -> batch.decode(region, 0, SEGMENT, USE, 0, 1));
            footer(region, 60);
            Footer footer = new Footer(GEOMETRY);
            flipAll(region, 8192, () -> footer.decode(region, 0, 2, SEGMENT, USE));
        }
    }

    private static void flipAll(MemoryRegion region, int bytes, java.util.function.Supplier<Verdict> decode) {
        assertEquals(Verdict.VALID, decode.get());
        for (int bit = 0; bit < bytes * 8; bit++) {
            byte before = region.getByte(bit / 8);
            region.putByte(bit / 8, (byte) (before ^ 1 << bit % 8));
            assertNotEquals(Verdict.VALID, decode.get(), "bit " + bit);
            region.putByte(bit / 8, before);
        }
        assertEquals(Verdict.VALID, decode.get());
    }

    @Test
    void garbageNeverThrows() {
        try (MemoryRegion one = Listings.pages(1);
                MemoryRegion two = Listings.pages(2)) {
            for (int round = 0; round < 20_000; round++) {
                garbage(one, round);
                assertNotEquals(Verdict.VALID, new SegmentHeader(GEOMETRY).decode(one, 0, SEGMENT));
                assertNotEquals(Verdict.VALID, new BatchHeader(GEOMETRY).decode(one, 0, SEGMENT, USE, 0, 1));
                Footer footer = new Footer(GEOMETRY);
                footer.decodeTrailer(one, 0, USE);
                assertTrue(footer.pages() <= Footer.pagesMax(GEOMETRY));
                assertNotEquals(Verdict.VALID, footer.decode(one, 0, 1, SEGMENT, USE));
                assertNotEquals(Verdict.VALID, footer.decode(two, 0, 2, SEGMENT, USE));
            }
        }
    }

    /** Random bytes, sometimes behind a right magic, with a right checksum, or with a right trailer. */
    private void garbage(MemoryRegion page, int round) {
        gen.fill(page, 0, 4096);
        switch (round % 4) {
            case 0 -> page.putLong(0, SegmentHeader.MAGIC);
            case 1 -> page.putLong(0, BatchHeader.MAGIC);
            case 2 -> {
                page.putLong(4064, Footer.TRAILER_MAGIC);
                page.putLong(4072, USE);
                page.putInt(4080, 256 - round % 7);
                page.putInt(4084, round % 7);
            }
            default -> page.fill(0, 4096, (byte) (round % 3 == 0 ? 0xFF : 0));
        }
        if (round % 2 == 0) {
            reseal(page, 0);
        }
    }

    /** One field of a whole page is changed and the checksum made right: no throw, and wrong places are refused. */
    @Test
    void liesWithARightChecksumNeverThrow() {
        int refused = 0;
        try (MemoryRegion page = Listings.pages(1)) {
            BatchHeader batch = new BatchHeader(GEOMETRY);
            Footer footer = new Footer(GEOMETRY);
            for (int round = 0; round < 20_000; round++) {
                Listings.batch(GEOMETRY, page, 0, gen, SEGMENT, USE, 0, 1, 100, 5000, 1);
                lie(page, 64 + 3 * 104);
                reseal(page, 0);
                Verdict verdict = batch.decode(page, 0, SEGMENT, USE, 0, 1);
                refused += verdict == Verdict.VALID ? 0 : 1;
                assertTrue(batch.count() <= BatchHeader.LISTINGS_MAX && batch.payloadPages() < 256);
                page.fill(0, 4096, (byte) 0);
                footer(page, 30);
                lie(page, 64 + 30 * 104);
                page.putInt(4088, new BlockChecksum().update(page, 0, 4088).value());
                verdict = footer.decode(page, 0, 1, SEGMENT, USE);
                refused += verdict == Verdict.VALID ? 0 : 1;
                assertTrue(footer.count() <= 256 && footer.payloadPages() <= 256);
            }
        }
        assertTrue(refused > 10_000, "most fields matter: " + refused);
    }

    private void lie(MemoryRegion page, int bytes) {
        int value = gen.pick(0, 1, -1, Integer.MAX_VALUE, Integer.MIN_VALUE, 256, 65535, gen.nextInt());
        // half of the lies hit the fixed fields, which a uniform choice would seldom
        page.putInt(gen.coin() ? 8 + 4 * gen.below(14) : 4 * gen.below(bytes / 4), value);
    }

    private static void reseal(MemoryRegion page, long offset) {
        page.putInt(
                offset + 4092, new BlockChecksum().update(page, offset, 4092).value());
    }
}
