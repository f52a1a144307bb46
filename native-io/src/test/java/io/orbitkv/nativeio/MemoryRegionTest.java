package io.orbitkv.nativeio;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.BiConsumer;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/**
 * Goal: no access leaves a region, whatever the offset; memory is counted and given back.
 * Method: every accessor at every kind of bad offset, on open and closed regions; seals tried by breaking them.
 */
class MemoryRegionTest {
    private static final int PAGE = MemoryRegion.PAGE_BYTES;
    private static final long SEED = Long.getLong("orbitkv.seed", 42);

    /** An accessor and the bytes that it touches. */
    private record Access(String name, int bytes, BiConsumer<MemoryRegion, Long> action) {}

    private static final List<Access> ACCESSES = List.of(
            new Access("getByte", 1, (r, o) -> r.getByte(o)),
            new Access("putByte", 1, (r, o) -> r.putByte(o, (byte) 1)),
            new Access("getShort", 2, (r, o) -> r.getShort(o)),
            new Access("putShort", 2, (r, o) -> r.putShort(o, (short) 1)),
            new Access("getInt", 4, (r, o) -> r.getInt(o)),
            new Access("putInt", 4, (r, o) -> r.putInt(o, 1)),
            new Access("getIntAcquire", 4, (r, o) -> r.getIntAcquire(o)),
            new Access("putIntRelease", 4, (r, o) -> r.putIntRelease(o, 1)),
            new Access("getIntVolatile", 4, (r, o) -> r.getIntVolatile(o)),
            new Access("putIntVolatile", 4, (r, o) -> r.putIntVolatile(o, 1)),
            new Access("getAndAddInt", 4, (r, o) -> r.getAndAddInt(o, 1)),
            new Access("compareAndSetInt", 4, (r, o) -> r.compareAndSetInt(o, 1, 2)),
            new Access("getLong", 8, (r, o) -> r.getLong(o)),
            new Access("putLong", 8, (r, o) -> r.putLong(o, 1)),
            new Access("getLongAcquire", 8, (r, o) -> r.getLongAcquire(o)),
            new Access("putLongRelease", 8, (r, o) -> r.putLongRelease(o, 1)),
            new Access("getLongVolatile", 8, (r, o) -> r.getLongVolatile(o)),
            new Access("putLongVolatile", 8, (r, o) -> r.putLongVolatile(o, 1)),
            new Access("compareAndSetLong", 8, (r, o) -> r.compareAndSetLong(o, 1, 2)),
            new Access("fill", 16, (r, o) -> r.fill(o, 16, (byte) 1)),
            new Access("copyFrom array", 16, (r, o) -> r.copyFrom(o, new byte[16], 0, 16)),
            new Access("copyFrom ints", 16, (r, o) -> r.copyFrom(o, new int[4], 0, 4)),
            new Access("copyFrom longs", 16, (r, o) -> r.copyFrom(o, new long[2], 0, 2)),
            new Access("copyTo array", 16, (r, o) -> r.copyTo(o, new byte[16], 0, 16)),
            new Access("copyTo ints", 16, (r, o) -> r.copyTo(o, new int[4], 0, 4)),
            new Access("copyTo longs", 16, (r, o) -> r.copyTo(o, new long[2], 0, 2)),
            new Access("touch", 72, (r, o) -> r.touch(o, 2)),
            new Access("copyFrom itself", 16, (r, o) -> r.copyFrom(o, r, o, 16)),
            new Access("sameBytes", 16, (r, o) -> r.sameBytes(o, r, o, 16)),
            new Access("wrap", 16, (r, o) -> r.wrap(new UnsafeBuffer(0, 0), o, 16)),
            new Access("address", 16, (r, o) -> r.address(o, 16)),
            new Access("part", 16, (r, o) -> r.part(o, 16)),
            new Access("checksum", 16, (r, o) -> new BlockChecksum().update(r, o, 16)));

    @Test
    void everyAccessIsChecked() {
        try (MemoryRegion region = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL)) {
            for (Access access : ACCESSES) {
                access.action.accept(region, 0L);
                access.action.accept(region, (long) PAGE - access.bytes);
                for (long bad : new long[] {
                    -1, -8, Long.MIN_VALUE, PAGE - access.bytes + 1, PAGE, PAGE + 1L, 1L << 40, Long.MAX_VALUE
                }) {
                    assertOutOfBounds(access, region, bad);
                }
            }
            region.close();
            for (Access access : ACCESSES) {
                assertOutOfBounds(access, region, 0);
            }
        }
    }

    private static void assertOutOfBounds(Access access, MemoryRegion region, long offset) {
        OrbitKvException e = assertThrows(
                OrbitKvException.class, () -> access.action.accept(region, offset), access.name + " at " + offset);
        assertEquals(ErrorCode.OUT_OF_BOUNDS, e.code(), access.name + " at " + offset);
    }

    @Test
    void lengthsAreCheckedToo() {
        try (MemoryRegion region = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL)) {
            assertThrows(OrbitKvException.class, () -> region.fill(0, -1, (byte) 0));
            assertThrows(OrbitKvException.class, () -> region.fill(8, Long.MAX_VALUE, (byte) 0));
            assertThrows(OrbitKvException.class, () -> region.copyFrom(0, region, 8, PAGE));
            assertThrows(OrbitKvException.class, () -> region.sameBytes(0, region, 8, PAGE));
            assertThrows(IndexOutOfBoundsException.class, () -> region.copyFrom(0, new byte[4], 0, 8));
            assertThrows(IndexOutOfBoundsException.class, () -> region.copyFrom(0, new int[4], 2, 4));
            assertThrows(IndexOutOfBoundsException.class, () -> region.copyFrom(0, new long[4], 2, 4));
            assertThrows(IndexOutOfBoundsException.class, () -> region.copyTo(0, new byte[4], 2, 4));
            assertThrows(IndexOutOfBoundsException.class, () -> region.copyTo(0, new int[4], 2, 4));
            assertThrows(IndexOutOfBoundsException.class, () -> region.copyTo(0, new long[4], 2, 4));
            assertThrows(OrbitKvException.class, () -> region.touch(0, PAGE));
            assertThrows(OrbitKvException.class, () -> MemoryRegion.anonymous(0, PageKind.SMALL, MemoryPurpose.TOOL));
            assertEquals(
                    ErrorCode.OUT_OF_MEMORY,
                    assertThrows(
                                    OrbitKvException.class,
                                    () -> MemoryRegion.anonymous(1L << 60, PageKind.SMALL, MemoryPurpose.TOOL))
                            .code());
        }
    }

    @Test
    void memoryIsCountedAndGivenBack() {
        long before = MemoryPurpose.TOOL.bytes();
        long total = MemoryPurpose.totalBytes();
        MemoryRegion small = MemoryRegion.anonymous(1, PageKind.SMALL, MemoryPurpose.TOOL);
        MemoryRegion large =
                MemoryRegion.anonymous(MemoryRegion.HUGE_PAGE_BYTES, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL);
        MemoryRegion shared = MemoryRegion.memfd("test", PAGE + 1, PageKind.SMALL, MemoryPurpose.TOOL);
        MemoryRegion part = small.part(16, 16);
        assertEquals(PAGE, small.bytes());
        assertEquals(2 * PAGE, shared.bytes());
        assertEquals(0, large.address(0, 1) % MemoryRegion.HUGE_PAGE_BYTES);
        assertTrue(MemoryPurpose.TOOL.bytes() - before >= 3 * PAGE + MemoryRegion.HUGE_PAGE_BYTES);
        part.close();
        small.putByte(16, (byte) 1);
        for (MemoryRegion region : List.of(small, large, shared)) {
            region.close();
            region.close();
        }
        assertEquals(before, MemoryPurpose.TOOL.bytes());
        assertEquals(total, MemoryPurpose.totalBytes());
    }

    @Test
    void whatStandsInPopulatedMemoryStays() {
        long bytes = 4 * MemoryRegion.HUGE_PAGE_BYTES + PAGE;
        try (MemoryRegion region = MemoryRegion.anonymous(bytes, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL)) {
            region.putLong(8, 5);
            region.populate(bytes, () -> false);
            assertEquals(5, region.getLong(8));
            assertEquals(0, region.getLong(bytes - 8));
            assertThrows(OrbitKvException.class, () -> region.populate(bytes + 1, () -> false));
            assertThrows(OrbitKvException.class, () -> region.populate(-1, () -> false));
        }
    }

    @Test
    void sealsHold() {
        try (MemoryRegion region = MemoryRegion.memfd("sealed", PAGE, PageKind.SMALL, MemoryPurpose.TOOL)) {
            assertEquals(0, region.seals());
            region.seal(
                    MemoryRegion.Seal.SHRINK,
                    MemoryRegion.Seal.GROW,
                    MemoryRegion.Seal.FUTURE_WRITE,
                    MemoryRegion.Seal.SEAL);
            assertEquals(1 + 2 + 4 + 16, region.seals());
            assertEquals(-1, LibC.ftruncate(region.fd(), 0));
            assertEquals(-1, LibC.ftruncate(region.fd(), 2 * PAGE));
            assertEquals(-1, LibC.mmap(0, PAGE, LibC.PROT_READ | LibC.PROT_WRITE, LibC.MAP_SHARED, region.fd(), 0));
            assertThrows(OrbitKvException.class, () -> region.seal(MemoryRegion.Seal.SHRINK));
            region.putLong(0, 7); // what was mapped before stays writable
        }
        try (MemoryRegion region = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL)) {
            assertThrows(OrbitKvException.class, () -> region.seal(MemoryRegion.Seal.SHRINK));
        }
    }

    @Test
    void copiesAndComparisonsSeeEveryByte() {
        System.out.println("seed " + SEED);
        Random random = new Random(SEED);
        byte[] bytes = new byte[PAGE];
        random.nextBytes(bytes);
        try (MemoryRegion a = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL);
                MemoryRegion b = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL)) {
            for (int round = 0; round < 500; round++) {
                int length = random.nextInt(200);
                int from = random.nextInt(PAGE - length);
                int to = random.nextInt(PAGE - length);
                a.copyFrom(from, bytes, from, length);
                b.copyFrom(to, a, from, length);
                byte[] back = new byte[length];
                b.copyTo(to, back, 0, length);
                assertTrue(Arrays.equals(bytes, from, from + length, back, 0, length));
                assertTrue(a.sameBytes(from, b, to, length));
                if (length > 0) {
                    int spot = random.nextInt(length);
                    b.putByte(to + spot, (byte) (b.getByte(to + spot) ^ 1 << random.nextInt(8)));
                    assertFalse(a.sameBytes(from, b, to, length), "byte " + spot + " of " + length);
                }
            }
        }
    }

    @Test
    void foreignMemoryIsOnlyLookedAt() {
        ByteBuffer buffer = ByteBuffer.allocateDirect(32);
        long total = MemoryPurpose.totalBytes();
        try (MemoryRegion region = MemoryRegion.foreign(buffer)) {
            region.putByte(31, (byte) 9);
            assertEquals(32, region.bytes());
            assertThrows(OrbitKvException.class, () -> region.putByte(32, (byte) 9));
            assertEquals(total, MemoryPurpose.totalBytes());
        }
        assertEquals(9, buffer.get(31));
        assertThrows(OrbitKvException.class, () -> MemoryRegion.foreign(ByteBuffer.allocate(8)));
        assertThrows(OrbitKvException.class, () -> MemoryRegion.foreign(0, 8));
        assertThrows(OrbitKvException.class, () -> MemoryRegion.foreign(4096, -1));
    }

    @Test
    void checksumsAreThoseOfTheStandard() {
        // RFC 3720, appendix B.4, read as little-endian numbers.
        byte[] ascending = new byte[32];
        byte[] descending = new byte[32];
        byte[] ones = new byte[32];
        for (int i = 0; i < 32; i++) {
            ascending[i] = (byte) i;
            descending[i] = (byte) (31 - i);
            ones[i] = (byte) 0xff;
        }
        assertChecksum(0x8A9136AA, new byte[32]);
        assertChecksum(0x62A8AB43, ones);
        assertChecksum(0x46DD794E, ascending);
        assertChecksum(0x113FDB5C, descending);
        assertChecksum(0xE3069283, "123456789".getBytes(StandardCharsets.US_ASCII));
    }

    private static void assertChecksum(int expected, byte[] bytes) {
        BlockChecksum checksum = new BlockChecksum();
        assertEquals(expected, checksum.update(bytes, 0, bytes.length).value());
        try (MemoryRegion region = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL)) {
            region.copyFrom(PAGE - bytes.length, bytes, 0, bytes.length);
            int start = PAGE - bytes.length;
            assertEquals(
                    expected,
                    checksum.reset().update(region, start, bytes.length).value());
            for (int cut = 0; cut <= bytes.length; cut++) {
                checksum.reset().update(region, start, cut).update(bytes, cut, bytes.length - cut);
                assertEquals(expected, checksum.value(), "cut at " + cut);
            }
        }
    }

    @Test
    void extentsGoThereAndBack() {
        int[] segments = {0, 1, 12345, Extent.SEGMENTS_MAX - 1};
        int[] pages = {0, 1, Extent.PAGES_MAX - 1};
        int[] generations = {1, 2, Extent.GENERATION_MAX};
        for (int segment : segments) {
            for (int page : pages) {
                for (int generation : generations) {
                    long extent = Extent.pack(segment, page, generation);
                    assertTrue(extent != Extent.NONE);
                    assertEquals(segment, Extent.segment(extent));
                    assertEquals(page, Extent.page(extent));
                    assertEquals(generation, Extent.generation(extent));
                }
            }
        }
        assertEquals(0, Extent.pages(0));
        assertEquals(1, Extent.pages(1));
        assertEquals(1, Extent.pages(PAGE));
        assertEquals(2, Extent.pages(PAGE + 1));
        assertEquals("segment 3 page 16 generation 2", Extent.text(Extent.pack(3, 16, 2)));
    }

    @Test
    void aRaisedGenerationMakesExtentsStale() {
        long before = MemoryPurpose.SEGMENT_TABLE.bytes();
        try (Generations generations = new Generations(3)) {
            long extent = Extent.pack(1, 5, generations.current(1));
            long neighbour = Extent.pack(2, 5, generations.current(2));
            assertTrue(generations.isLive(extent));
            assertFalse(generations.isLive(Extent.NONE));
            assertEquals(2, generations.raise(1));
            assertFalse(generations.isLive(extent));
            assertTrue(generations.isLive(neighbour));
            assertThrows(OrbitKvException.class, () -> generations.current(1024));
        }
        assertEquals(before, MemoryPurpose.SEGMENT_TABLE.bytes());
    }
}
