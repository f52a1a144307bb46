package io.orbitkv.store;

import io.orbitkv.tiers.AdmissionPolicy;

/**
 * What admission has decided since the store was opened, and what it knows. Blocks count once for each shard.
 *
 * @param now what is done with new blocks now: {@link AdmissionPolicy#ALL} or {@link AdmissionPolicy#REUSE}
 * @param admittedBlocks blocks that were sent to the drive when they were saved
 * @param admittedBytes their bytes
 * @param refusedBlocks blocks that were saved into host memory only; those offered later are among them
 * @param refusedBytes their bytes
 * @param offeredLaterBlocks blocks that were refused when they were saved and sent to the drive when they were used again
 * @param usesWaitingBytes what the history has yet to take in of uses, in bytes of their queue; 0: it has seen all
 * @param usesDropped uses that went by unnoticed, since their queue was full
 * @param historyTags keys that the history remembers; those used in both of its halves count twice
 * @param historyTagsMax most of them
 * @param historyBytes native memory of the history
 * @param askedBlocks blocks of queries that the history was asked about
 * @param askedSeenBlocks those of them that were found, or had been used before
 */
public record AdmissionStats(
        AdmissionPolicy now,
        long admittedBlocks,
        long admittedBytes,
        long refusedBlocks,
        long refusedBytes,
        long offeredLaterBlocks,
        long usesWaitingBytes,
        long usesDropped,
        long historyTags,
        long historyTagsMax,
        long historyBytes,
        long askedBlocks,
        long askedSeenBlocks) {
    /**
     * The hit rate that a store of any size would have had, as far as the history reaches back.
     *
     * @return from 0 to 1; 0 without a history, which {@link AdmissionPolicy#ALL} does not keep
     */
    public double hitCeiling() {
        return askedBlocks == 0 ? 0 : (double) askedSeenBlocks / askedBlocks;
    }
}
