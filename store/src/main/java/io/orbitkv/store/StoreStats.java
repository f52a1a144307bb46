package io.orbitkv.store;

import io.orbitkv.recovery.FillState;

/**
 * What a store has done since it was opened, and what it holds: a snapshot whose numbers were read one after the other.
 * Blocks count once for each shard.
 *
 * @param savedBlocks blocks that were taken in
 * @param savedBytes their bytes
 * @param presentBlocks blocks given to save that were stored already
 * @param droppedBlocks blocks that save did not take in
 * @param indexFull publications that the index refused
 * @param queries queries
 * @param queriedBlocks keys asked for
 * @param hitHostBlocks blocks found in host memory
 * @param hitNvmeBlocks blocks found on the drive only
 * @param leasesRefused queries that found more than leases may claim together, or missed because all leases were held
 * @param restoredHostBlocks blocks restored from host memory
 * @param restoredHostBytes their bytes
 * @param restoredNvmeBlocks blocks restored from the drive
 * @param restoredNvmeBytes their bytes
 * @param missedBlocks leased blocks that a restore did not deliver
 * @param overtakenBlocks blocks that moved or went between look-up and pin
 * @param keyCollisions blocks whose full key was another one than a match had promised
 * @param corruptBlocks blocks whose checksum failed; each is a miss and quarantined
 * @param readErrors reads that the drive answered with an error
 * @param readTimeouts restores that gave up on a drive
 * @param clears scoped clears
 * @param acceptedPosition position of the last block sent to the drive
 * @param writtenPosition up to where blocks survive a kill
 * @param durablePosition up to where blocks survive a power loss
 * @param nvmeAdmittedBlocks blocks written to the log
 * @param nvmeAdmittedBytes their padded payload bytes
 * @param nvmeWrittenBytes bytes written to the log: payloads, headers, footers, and blocks appended again
 * @param nvmeReadBytes bytes read from the log for restores
 * @param nvmeQueuedBlocks blocks that wait for the drive now
 * @param nvmeSegmentsReused segments of the log that were given up for new blocks
 * @param hostSegmentsReused segments of host memory that were given up for new blocks
 * @param nvmeSecondChances segments of the log that stayed because at least half of their blocks were used
 * @param hostSecondChances segments of host memory that stayed because at least half of their blocks were used
 * @param nvmeReappendedBlocks used blocks that were written to the log again before their segment was given up
 * @param nvmeReappendedBytes their padded payload bytes, among {@code nvmeWrittenBytes}
 * @param hostReappendedBlocks used blocks that were copied within host memory before their segment was given up
 * @param hostReappendedBytes their bytes
 * @param nvmeUsedBlocksDropped used blocks of the log that went with their segment, since appending them again was late
 * @param hostUsedBlocksDropped the same of host memory
 * @param promotedBlocks blocks that were copied from the drive into host memory
 * @param promotedBytes their bytes
 * @param promotionsSkipped restored blocks that were not, for want of budget or of a free segment
 * @param indexBlocks places in the index that hold a block, dead ones that wait for the sweep included
 * @param indexBlocksMax most of them
 * @param indexBytes native memory of the index
 * @param leasesHeld leases that are held and have not expired
 * @param leasedBytes bytes of blocks that leases claim, expired ones that were not closed and not taken back yet included
 * @param savedWithoutDriveBlocks blocks that were taken into host memory only, since no drive was in service, or the cap left none room
 * @param nvmeDroppedBlocks blocks that a drive had taken over and did not write, since it went out of service
 * @param nvmeSegmentsFailed segments that were given up since their flush had failed
 * @param driveOutages how often a drive went out of service
 * @param drivesOut drives that are out of service now
 * @param ownBytes bytes that the store's files take on the drive
 * @param capBytes most bytes that they and foreign ones may take together
 * @param foreignBytes bytes of files in the data folders that are not the store's, as they were seen last
 * @param capCondition how the store stands to its cap
 * @param admission what was let onto the drive
 * @param fill whether blocks of earlier lives are still being indexed
 * @param filledShare the part of them that is, 0 to 1
 * @param scrub what was read again at rest
 */
public record StoreStats(
        long savedBlocks,
        long savedBytes,
        long presentBlocks,
        long droppedBlocks,
        long indexFull,
        long queries,
        long queriedBlocks,
        long hitHostBlocks,
        long hitNvmeBlocks,
        long leasesRefused,
        long restoredHostBlocks,
        long restoredHostBytes,
        long restoredNvmeBlocks,
        long restoredNvmeBytes,
        long missedBlocks,
        long overtakenBlocks,
        long keyCollisions,
        long corruptBlocks,
        long readErrors,
        long readTimeouts,
        long clears,
        long acceptedPosition,
        long writtenPosition,
        long durablePosition,
        long nvmeAdmittedBlocks,
        long nvmeAdmittedBytes,
        long nvmeWrittenBytes,
        long nvmeReadBytes,
        long nvmeQueuedBlocks,
        long nvmeSegmentsReused,
        long hostSegmentsReused,
        long nvmeSecondChances,
        long hostSecondChances,
        long nvmeReappendedBlocks,
        long nvmeReappendedBytes,
        long hostReappendedBlocks,
        long hostReappendedBytes,
        long nvmeUsedBlocksDropped,
        long hostUsedBlocksDropped,
        long promotedBlocks,
        long promotedBytes,
        long promotionsSkipped,
        long indexBlocks,
        long indexBlocksMax,
        long indexBytes,
        int leasesHeld,
        long leasedBytes,
        long savedWithoutDriveBlocks,
        long nvmeDroppedBlocks,
        long nvmeSegmentsFailed,
        long driveOutages,
        int drivesOut,
        long ownBytes,
        long capBytes,
        long foreignBytes,
        CapCondition capCondition,
        AdmissionStats admission,
        FillState fill,
        double filledShare,
        ScrubStats scrub) {}
