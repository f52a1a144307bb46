package io.orbitkv.recovery;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.Map;

/**
 * Every page of the log is one of four: indexed, dead, overhead or free.
 *
 * @param indexedPages pages of blocks that the index knows
 * @param deadPages pages of blocks that it does not
 * @param overheadPages header, batch headers, footer and unused pages of segments in use
 * @param freePages all pages of free segments
 * @param preallocatedPages all pages of all segments but the absent ones, which have none
 * @param indexedBlocks blocks that the index knows
 * @param deadBlocks blocks that it does not, by reason; after a clean stop only {@link DeadReason#EVICTED}
 * @param segmentsUsed segments in use
 * @param segmentsFree the others
 */
public record Accounting(
        long indexedPages,
        long deadPages,
        long overheadPages,
        long freePages,
        long preallocatedPages,
        long indexedBlocks,
        Map<DeadReason, Long> deadBlocks,
        int segmentsUsed,
        int segmentsFree) {
    /** Dead blocks of one reason. */
    public long dead(DeadReason reason) {
        return deadBlocks.getOrDefault(reason, 0L);
    }

    /** Whether the four add up to what was allocated. */
    public boolean isWhole() {
        return indexedPages >= 0
                && deadPages >= 0
                && overheadPages >= 0
                && freePages >= 0
                && indexedPages + deadPages + overheadPages + freePages == preallocatedPages;
    }

    /**
     * Stops where the identity does not hold.
     *
     * @throws OrbitKvException {@link ErrorCode#ACCOUNTING}
     */
    Accounting requireWhole(String path) {
        if (!isWhole()) {
            throw new OrbitKvException(
                    ErrorCode.ACCOUNTING,
                    "the pages of the log in " + path + " do not add up: " + this + "; please report this");
        }
        return this;
    }

    @Override
    public String toString() {
        return "indexed " + indexedPages + " + dead " + deadPages + " + overhead " + overheadPages + " + free "
                + freePages + " of " + preallocatedPages + " pages (" + indexedBlocks + " blocks indexed, dead "
                + deadBlocks + ", " + segmentsUsed + " segments in use, " + segmentsFree + " free)";
    }
}
