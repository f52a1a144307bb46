package io.orbitkv.recovery;

import io.orbitkv.index.SegmentRow;
import io.orbitkv.tiers.Verdict;
import java.util.List;

/**
 * One segment of the log, page by page.
 *
 * @param segment its number
 * @param file its file
 * @param fileOffset where it starts in the file, in bytes
 * @param header what its first page is
 * @param useSequence the use that it is in; 0 where none counts
 * @param useFromHeader whether the header says so, and not what stands behind it
 * @param footer what its last page is, as the trailer of a footer
 * @param footerBlocks blocks that the footer lists, where it counts
 * @param batches its batches in order
 * @param end why the walk over batches ended
 * @param endPage the page where it ended
 * @param row what the catalog says; null for a segment that was never used
 * @param blocks blocks that count for this segment: of its footer, else of its batches
 * @param why what counts and why, for people
 * @param places its blocks, with what each is worth
 */
public record SegmentInfo(
        int segment,
        String file,
        long fileOffset,
        Verdict header,
        long useSequence,
        boolean useFromHeader,
        Verdict footer,
        int footerBlocks,
        List<BatchInfo> batches,
        Verdict end,
        int endPage,
        SegmentRow row,
        int blocks,
        String why,
        List<BlockPlace> places) {
    /**
     * One batch.
     *
     * @param page its header's page in the segment
     * @param sequence its number in this use
     * @param count blocks
     * @param payloadPages pages of them
     */
    public record BatchInfo(int page, int sequence, int count, int payloadPages) {}
}
