package io.orbitkv.nativeio;

/**
 * Where a block lies in a tier, packed into one {@code long}.
 *
 * <pre>
 *  63            40 39        24 23             0
 * +----------------+------------+----------------+
 * | segment (24)   | page (16)  | generation (24)|
 * +----------------+------------+----------------+
 * </pre>
 *
 * <p>The generation starts at 1, so that no extent is 0, which is {@link #NONE}. The block's length stands elsewhere.
 */
public final class Extent {
    /** No extent: the block is not in this tier. */
    public static final long NONE = 0;

    /** Most segments of a tier. */
    public static final int SEGMENTS_MAX = 1 << 24;

    /** Most pages of a segment. */
    public static final int PAGES_MAX = 1 << 16;

    /** The generation after which a segment starts again at 1. */
    public static final int GENERATION_MAX = (1 << 24) - 1;

    private static final int PAGE_SHIFT = 24;
    private static final int SEGMENT_SHIFT = 40;

    private Extent() {}

    /** Packs an extent. */
    public static long pack(int segment, int page, int generation) {
        assert segment >= 0 && segment < SEGMENTS_MAX : segment;
        assert page >= 0 && page < PAGES_MAX : page;
        assert generation >= 1 && generation <= GENERATION_MAX : generation;
        return (long) segment << SEGMENT_SHIFT | (long) page << PAGE_SHIFT | generation;
    }

    /** The segment's number in its tier. */
    public static int segment(long extent) {
        return (int) (extent >>> SEGMENT_SHIFT);
    }

    /** The first page within the segment. */
    public static int page(long extent) {
        return (int) (extent >>> PAGE_SHIFT) & (PAGES_MAX - 1);
    }

    /** The generation of the segment in which the block lies there. */
    public static int generation(long extent) {
        return (int) extent & GENERATION_MAX;
    }

    /** Pages that a number of bytes takes. */
    public static int pages(long bytes) {
        return (int) ((bytes + MemoryRegion.PAGE_BYTES - 1) / MemoryRegion.PAGE_BYTES);
    }

    /** An extent for people: {@code segment 3 page 16 generation 2}. */
    public static String text(long extent) {
        return extent == NONE
                ? "no extent"
                : "segment " + segment(extent) + " page " + page(extent) + " generation " + generation(extent);
    }
}
