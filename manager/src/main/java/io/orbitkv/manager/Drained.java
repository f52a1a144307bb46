package io.orbitkv.manager;

/**
 * What a manager had still to do when it closed its store; all but the last three are 0 behind a stop on drives that keep up.
 *
 * @param requestsInWork messages that did not end in time
 * @param prefetchesWaiting queries whose blocks were yet to come from a drive
 * @param queuedBlocks blocks that were taken in and not written in time: they are lost, but for those that the store writes
 *     while it closes
 * @param droppedBlocks blocks in all its life that were taken in and that a drive did not take: it was out of service
 * @param acceptedPosition position of the last block that was sent to the drives
 * @param writtenPosition up to where blocks are written
 */
public record Drained(
        int requestsInWork,
        int prefetchesWaiting,
        long queuedBlocks,
        long droppedBlocks,
        long acceptedPosition,
        long writtenPosition) {}
