package io.orbitkv.bench.simulate;

/**
 * How a tier is cut, and where in it blocks go.
 *
 * @param segments how many segments, more than can be open
 * @param segmentBlocks blocks that fit into one
 * @param lanes segments that take new blocks at the same time
 * @param laneForAgain whether blocks that are appended again have an open segment of their own; otherwise they go where
 *     the block goes for which room was made
 * @param deepestFirst whether second chance takes, of the segments with the oldest turn, the deepest first
 */
public record SegmentShape(int segments, int segmentBlocks, int lanes, boolean laneForAgain, boolean deepestFirst) {
    private static final int PAGE_BYTES = 4096;

    /** Pages of a segment of the log that hold its header. */
    private static final int HEADER_PAGES = 1;

    /** Bytes of a footer besides its listings, and of a listing; see docs/format.md. */
    private static final int FOOTER_BYTES = 96;

    private static final int LISTING_BYTES = 104;

    /** Blocks of a batch, about: what a request saves at once. */
    private static final int BATCH_BLOCKS = 16;

    /** At most so many segments are prepared ahead, one in so many; about half of them are there at a time. */
    private static final int READY_MAX = 8;

    private static final int SEGMENTS_PER_READY = 64;

    /** Checks that every lane can be open and a segment be sealed beside them. */
    public SegmentShape {
        if (segmentBlocks < 1 || lanes < 1 || segments <= lanes + (laneForAgain ? 1 : 0)) {
            throw new IllegalArgumentException(segments + " segments of " + segmentBlocks + " blocks with " + lanes
                    + " lanes" + (laneForAgain ? " and one for what is appended again" : ""));
        }
    }

    /** One open segment, deepest first: as in the studies that the figures come from. Null where it is too small. */
    static SegmentShape simple(long capacityBlocks, int segmentBlocks) {
        long segments = capacityBlocks / segmentBlocks;
        return segments < 2 ? null : new SegmentShape(Math.toIntExact(segments), segmentBlocks, 1, false, true);
    }

    /**
     * Host memory of a store.
     *
     * @param segments how many
     * @param segmentBytes bytes of a segment
     * @param blockBytes bytes of a block
     * @param lanes open segments
     * @return its shape
     */
    static SegmentShape host(int segments, int segmentBytes, int blockBytes, int lanes) {
        return new SegmentShape(segments, segmentBytes / (pages(blockBytes) * PAGE_BYTES), lanes, true, false);
    }

    /**
     * The log of a store: a segment has a header page, a page before each batch, and a footer; some segments are kept
     * ready, and hold nothing.
     *
     * @param segments how many
     * @param segmentBytes bytes of a segment
     * @param blockBytes bytes of a block
     * @param lanes open segments
     * @return its shape
     */
    static SegmentShape log(int segments, int segmentBytes, int blockBytes, int lanes) {
        int blockPages = pages(blockBytes);
        int blocks = 0;
        while (logPages(blocks + 1, blockPages) <= segmentBytes / PAGE_BYTES) {
            blocks++;
        }
        int ready = Math.min(READY_MAX, Math.max(1, segments / SEGMENTS_PER_READY));
        return new SegmentShape(segments - (ready + 1) / 2, blocks, lanes, true, false);
    }

    private static int logPages(int blocks, int blockPages) {
        int batches = (blocks + BATCH_BLOCKS - 1) / BATCH_BLOCKS;
        int footerPages = pages(FOOTER_BYTES + blocks * LISTING_BYTES);
        return HEADER_PAGES + batches + blocks * blockPages + footerPages;
    }

    private static int pages(int bytes) {
        return (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
    }

    /**
     * Blocks that fit into the tier.
     *
     * @return blocks
     */
    public long capacityBlocks() {
        return (long) segments * segmentBlocks;
    }
}
