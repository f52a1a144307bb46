package io.orbitkv.recovery;

import java.util.List;

/**
 * What a verification found.
 *
 * @param segmentsUsed segments that hold blocks
 * @param segmentsFree the others
 * @param footers footers that check out
 * @param batches batches that check out
 * @param blocks blocks listed
 * @param blocksChecked blocks whose bytes were read and compared with their checksums
 * @param bytesChecked their stored bytes
 * @param wrongBlocks blocks whose bytes are wrong although they should be right
 * @param quarantinedBlocks blocks that are known to be wrong, and never used
 * @param unsureBlocks blocks that a power loss took before they were durable: the next opening drops them
 * @param payloadPages pages of blocks, live or dead
 * @param overheadPages other pages of segments in use
 * @param freePages pages of free segments
 * @param preallocatedPages all pages
 * @param snapshot whether there is a snapshot that checks out
 * @param problemsFound how many problems there are
 * @param problems the first of them
 * @param repairable steps that a repair takes, or would
 * @param repaired those that were taken
 * @param note something to know about the circumstances; empty mostly
 */
public record VerifyReport(
        int segmentsUsed,
        int segmentsFree,
        long footers,
        long batches,
        long blocks,
        long blocksChecked,
        long bytesChecked,
        long wrongBlocks,
        long quarantinedBlocks,
        long unsureBlocks,
        long payloadPages,
        long overheadPages,
        long freePages,
        long preallocatedPages,
        boolean snapshot,
        long problemsFound,
        List<Problem> problems,
        long repairable,
        long repaired,
        String note) {
    /** Whether nothing is wrong. */
    public boolean isClean() {
        return problemsFound == 0;
    }

    /** Whether nothing is wrong any more: each problem was one that a repair could put right, and did. */
    public boolean isMended() {
        return repaired == problemsFound;
    }
}
