package io.orbitkv.tiers;

import io.orbitkv.nativeio.OrbitKvException;

/** Hears what the log did. All calls come on the thread of the drive's agent and must neither block long nor allocate. */
public interface NvmeListener {
    /**
     * A batch lies in the log. The host extents are still pinned; the log gives the pins back after this call.
     *
     * @param hostExtents where the blocks were taken from; valid during the call
     * @param nvmeExtents where they lie in the log; valid during the call
     * @param count how many
     */
    void onBatchWritten(long[] hostExtents, long[] nvmeExtents, int count);

    /**
     * A segment has changed its state. FREE comes when its blocks are given up, with the use-sequence that ended.
     *
     * @param segment its number
     * @param useSequence which use of it
     * @param state what it is now
     * @param blocks blocks in it, 0 unless sealed or durable
     * @param payloadPages pages of blocks, 0 unless sealed or durable
     * @param overheadPages all other pages, 0 unless sealed or durable
     */
    void onSegment(int segment, long useSequence, SegmentState state, int blocks, int payloadPages, int overheadPages);

    /**
     * Whether a block is worth being appended again: it is still looked for where it lies.
     *
     * @param block its listing; valid during the call
     * @param extent where it lies
     */
    default boolean isWanted(BlockListing block, long extent) {
        return true;
    }

    /**
     * A used block was appended again; where it lay before is given up once this copy is durable.
     *
     * @param block its listing; valid during the call
     * @param from where it lay
     * @param to where it lies too
     */
    default void onBlockMoved(BlockListing block, long from, long to) {}

    /** Written or durable position has moved. */
    default void onPositions(long written, long durable) {}

    /**
     * The drive is out of service: what waited for it, or was on its way, stays in host memory only.
     *
     * @param drive which, from 0
     * @param reason what it did
     */
    default void onOut(int drive, OrbitKvException reason) {}

    /** The drive serves again. */
    default void onBack(int drive) {}

    /** The log of a drive has failed, by a mistake of its own; comes once. */
    void onFailure(OrbitKvException failure);
}
