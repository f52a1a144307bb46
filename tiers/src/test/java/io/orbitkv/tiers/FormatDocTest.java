package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * Goal: docs/format.md is the truth: who reads pages by its tables finds what was written, and the codecs write the same
 * bytes for ever.
 * Method: a fixture of fixed bytes is in the repository. It is decoded by the tables as they stand in the document, and
 * by the codecs; the codecs make it again byte by byte. {@code -Dorbitkv.fixture=PATH} writes a new one for the next run.
 */
class FormatDocTest {
    private static final int SEGMENT = 3;
    private static final long USE = 0x0102030405060708L;
    private static final LogGeometry GEOMETRY = new LogGeometry(1 << 20, 40, Listings.STORE_ID);
    private static final String BOOT_ID = "6a1e7b2c-3d4f-4a5b-8c6d-7e8f9a0b1c2d";
    private static final int[] SIZES = {4096, 1, 10_000};
    private static final int LOCK = 0;
    private static final int HEADER = 4096;
    private static final int BATCH = 2 * 4096;
    private static final int FOOTER = 3 * 4096;
    private static final int PAGES = 4;

    private record Row(int offset, int bytes) {}

    @Test
    void fixtureReadsByTheTables() throws IOException {
        byte[] fixture = fixture();
        Map<String, Map<String, Row>> tables = tables();

        Map<String, Row> lock = tables.get("Lock");
        assertEquals("OKVLOCK1", text(fixture, LOCK, lock.get("magic")));
        assertEquals(4711, number(fixture, LOCK, lock.get("pid")));
        assertEquals(9, number(fixture, LOCK, lock.get("epoch")));
        assertEquals(BOOT_ID, text(fixture, LOCK, lock.get("boot id")));
        assertEquals("0123456789abcdef", text(fixture, LOCK, lock.get("store id")));
        assertSealed(fixture, LOCK, LOCK, lock.get("crc"));
        assertZero(fixture, LOCK, lock.get("zero"));

        Map<String, Row> segment = tables.get("Segment header");
        assertEquals("OKVSEG01", text(fixture, HEADER, segment.get("magic")));
        assertEquals(1, number(fixture, HEADER, segment.get("version")));
        assertEquals(SEGMENT, number(fixture, HEADER, segment.get("segment number")));
        assertEquals(1 << 20, number(fixture, HEADER, segment.get("segment bytes")));
        assertEquals(USE, number(fixture, HEADER, segment.get("use-sequence")));
        assertEquals("0123456789abcdef", text(fixture, HEADER, segment.get("store id")));
        assertSealed(fixture, HEADER, HEADER, segment.get("crc"));
        assertZero(fixture, HEADER, segment.get("zero"));

        Map<String, Row> batch = tables.get("Batch header");
        assertEquals("OKVBAT01", text(fixture, BATCH, batch.get("magic")));
        assertEquals(1, number(fixture, BATCH, batch.get("version")));
        assertEquals(1, number(fixture, BATCH, batch.get("kind")));
        assertEquals(SEGMENT, number(fixture, BATCH, batch.get("segment number")));
        assertEquals(USE, number(fixture, BATCH, batch.get("use-sequence")));
        assertEquals(0, number(fixture, BATCH, batch.get("batch sequence")));
        assertEquals(3, number(fixture, BATCH, batch.get("count")));
        assertEquals(5, number(fixture, BATCH, batch.get("payload pages")));
        assertSealed(fixture, BATCH, BATCH, batch.get("crc"));
        assertZero(fixture, BATCH, batch.get("zero"));
        assertListings(
                tables.get("Listing"), fixture, BATCH + batch.get("listings").offset());

        Map<String, Row> footer = tables.get("Footer");
        assertEquals("OKVFTR01", text(fixture, FOOTER, footer.get("magic")));
        assertEquals(1, number(fixture, FOOTER, footer.get("version")));
        assertEquals(SEGMENT, number(fixture, FOOTER, footer.get("segment number")));
        assertEquals(USE, number(fixture, FOOTER, footer.get("use-sequence")));
        assertEquals(3, number(fixture, FOOTER, footer.get("count")));
        assertEquals(1, number(fixture, FOOTER, footer.get("footer pages")));
        assertEquals(1, number(fixture, FOOTER, footer.get("batches")));
        assertEquals(5, number(fixture, FOOTER, footer.get("payload pages")));
        assertEquals(251, number(fixture, FOOTER, footer.get("overhead pages")));
        assertZero(fixture, FOOTER, footer.get("zero"));
        assertListings(
                tables.get("Listing"), fixture, FOOTER + footer.get("listings").offset());

        Map<String, Row> trailer = tables.get("Trailer");
        int at = FOOTER + 4096 - 32;
        assertEquals("OKVTRL01", text(fixture, at, trailer.get("magic")));
        assertEquals(USE, number(fixture, at, trailer.get("use-sequence")));
        assertEquals(255, number(fixture, at, trailer.get("first footer page")));
        assertEquals(1, number(fixture, at, trailer.get("footer pages")));
        assertSealed(fixture, FOOTER, at, trailer.get("crc"));
        assertZero(fixture, at, trailer.get("zero"));
    }

    private static void assertListings(Map<String, Row> table, byte[] fixture, int start) {
        int page = 2;
        for (int i = 0; i < SIZES.length; i++) {
            int at = start + i * 104;
            assertArrayEquals(key(i), raw(fixture, at, table.get("key")));
            assertArrayEquals(i == 0 ? new byte[32] : key(i - 1), raw(fixture, at, table.get("parent key")));
            assertEquals(0x1122334455667788L, number(fixture, at, table.get("namespace id64")));
            assertEquals(1000 + i, number(fixture, at, table.get("birth")));
            assertEquals(7, number(fixture, at, table.get("namespace epoch")));
            assertEquals(SIZES[i], number(fixture, at, table.get("stored bytes")));
            assertEquals(SIZES[i], number(fixture, at, table.get("logical bytes")));
            assertEquals(0xCAFE0000L + i, number(fixture, at, table.get("checksum")));
            assertEquals(page, number(fixture, at, table.get("first page")));
            assertEquals(0, number(fixture, at, table.get("codec")));
            assertEquals(i == 0 ? 0 : 1, number(fixture, at, table.get("flags")));
            assertZero(fixture, at, table.get("zero"));
            page += (SIZES[i] + 4095) / 4096;
        }
    }

    /** No field overlaps the one before, and what is not named is zero, so it may only be a gap at the end. */
    @Test
    void tablesHaveNoHoles() throws IOException {
        Map<String, Map<String, Row>> tables = tables();
        for (String name : List.of("Lock", "Segment header", "Batch header", "Listing", "Footer", "Trailer")) {
            Map<String, Row> rows = tables.get(name);
            int end = 0;
            for (Map.Entry<String, Row> row : rows.entrySet()) {
                boolean afterListings =
                        name.equals("Batch header") && row.getKey().equals("crc");
                assertTrue(afterListings || row.getValue().offset() == end, name + ": " + row);
                end = row.getValue().offset() + row.getValue().bytes();
            }
        }
        assertEquals(104, end(tables.get("Listing")));
        assertEquals(32, end(tables.get("Trailer")));
    }

    private static int end(Map<String, Row> rows) {
        return rows.values().stream()
                .mapToInt(row -> row.offset() + row.bytes())
                .max()
                .orElseThrow();
    }

    @Test
    void codecsReadAndWriteTheFixture() throws IOException {
        byte[] fixture = fixture();
        try (MemoryRegion region = Listings.pages(PAGES)) {
            region.copyFrom(0, fixture, 0, fixture.length);
            SegmentHeader segment = new SegmentHeader(GEOMETRY);
            assertEquals(Verdict.VALID, segment.decode(region, HEADER, SEGMENT));
            assertEquals(USE, segment.useSequence());
            BatchHeader batch = new BatchHeader(GEOMETRY);
            assertEquals(Verdict.VALID, batch.decode(region, BATCH, SEGMENT, USE, 0, 1));
            Footer footer = new Footer(GEOMETRY);
            assertEquals(Verdict.VALID, footer.decode(region, FOOTER, 1, SEGMENT, USE));
            assertEquals(3, footer.count());
        }
        assertArrayEquals(make(), fixture);
    }

    private static byte[] fixture() throws IOException {
        String path = System.getProperty("orbitkv.fixture");
        if (path != null) {
            Files.write(Path.of(path), make());
        }
        try (InputStream in = FormatDocTest.class.getResourceAsStream("/format-1.bin")) {
            assertNotNull(in, "the fixture format-1.bin");
            return in.readAllBytes();
        }
    }

    private static byte[] make() {
        try (MemoryRegion region = MemoryRegion.anonymous(PAGES * 4096L, PageKind.SMALL, MemoryPurpose.TOOL)) {
            byte[] magic = "OKVLOCK1".getBytes(StandardCharsets.US_ASCII);
            region.copyFrom(LOCK, magic, 0, 8);
            region.putLong(LOCK + 8, 4711);
            region.putLong(LOCK + 16, 9);
            region.copyFrom(LOCK + 24, BOOT_ID.getBytes(StandardCharsets.US_ASCII), 0, 36);
            region.copyFrom(LOCK + 60, Listings.STORE_ID, 0, 16);
            region.putInt(
                    LOCK + 4092, new BlockChecksum().update(region, LOCK, 4092).value());
            new SegmentHeader(GEOMETRY).encode(region, HEADER, SEGMENT, USE);
            BlockListing listing = new BlockListing();
            int page = 2;
            for (int i = 0; i < SIZES.length; i++) {
                listing.wrap(region, BATCH + BatchHeader.listingOffset(i)).key(key(i), 0);
                if (i > 0) {
                    listing.parent(key(i - 1), 0);
                }
                listing.namespaceId64(0x1122334455667788L)
                        .birth(1000 + i)
                        .namespaceEpoch(7)
                        .storedBytes(SIZES[i])
                        .logicalBytes(SIZES[i])
                        .checksum(0xCAFE0000 + i)
                        .firstPage(page);
                page += listing.pages();
                new BlockListing()
                        .wrap(region, FOOTER + Footer.listingOffset(i))
                        .set(listing);
            }
            new BatchHeader(GEOMETRY).encode(region, BATCH, SEGMENT, USE, 0, SIZES.length, page - 2);
            new Footer(GEOMETRY).encode(region, FOOTER, SEGMENT, USE, SIZES.length, 1, page - 2);
            return Listings.bytes(region, 0, PAGES * 4096);
        }
    }

    private static byte[] key(int i) {
        byte[] key = new byte[32];
        for (int b = 0; b < key.length; b++) {
            key[b] = (byte) (i * 32 + b + 1);
        }
        return key;
    }

    // ---- the document ----

    /** Tables by their heading; rows by their field. A length such as {@code 104 × count} counts as 104. */
    private static Map<String, Map<String, Row>> tables() throws IOException {
        Path document = Path.of(System.getProperty("orbitkv.root"), "docs", "format.md");
        Pattern row = Pattern.compile("\\| (\\d+) \\| (\\d+)(?: × count)? \\| ([^|]+?) \\|.*");
        Map<String, Map<String, Row>> tables = new LinkedHashMap<>();
        String heading = "";
        for (String line : Files.readAllLines(document)) {
            Matcher matcher = row.matcher(line);
            if (line.startsWith("#")) {
                heading = line.replaceFirst("#+ ", "");
            } else if (matcher.matches()) {
                tables.computeIfAbsent(heading, h -> new LinkedHashMap<>())
                        .put(
                                matcher.group(3),
                                new Row(Integer.parseInt(matcher.group(1)), Integer.parseInt(matcher.group(2))));
            }
        }
        return tables;
    }

    private static byte[] raw(byte[] bytes, int base, Row row) {
        byte[] copy = new byte[row.bytes()];
        System.arraycopy(bytes, base + row.offset(), copy, 0, copy.length);
        return copy;
    }

    private static String text(byte[] bytes, int base, Row row) {
        return new String(raw(bytes, base, row), StandardCharsets.US_ASCII);
    }

    private static long number(byte[] bytes, int base, Row row) {
        byte[] little = raw(bytes, base, row);
        byte[] big = new byte[little.length];
        for (int i = 0; i < big.length; i++) {
            big[i] = little[big.length - 1 - i];
        }
        return new BigInteger(1, big).longValueExact();
    }

    private static void assertZero(byte[] bytes, int base, Row row) {
        assertArrayEquals(new byte[row.bytes()], raw(bytes, base, row));
    }

    private static void assertSealed(byte[] bytes, int from, int base, Row row) {
        int length = base + row.offset() - from;
        int crc = new BlockChecksum().update(bytes, from, length).value();
        assertEquals(crc & 0xFFFFFFFFL, number(bytes, base, row));
    }
}
