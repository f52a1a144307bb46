package io.orbitkv.store;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.Budget;
import io.orbitkv.recovery.OpeningOptions;

/**
 * How a new store with certain options is cut, known without making it: for planning and for simulation.
 *
 * @param hostSegmentBytes bytes of a segment of host memory
 * @param hostSegments segments of host memory
 * @param logSegmentBytes bytes of a segment on the drive
 * @param logSegments segments on the drive
 * @param openSegments segments that take new blocks at the same time, in each tier
 * @param writeQueueBlocks blocks of the largest size that may wait between save and drive
 */
public record StoreGeometry(
        int hostSegmentBytes,
        int hostSegments,
        int logSegmentBytes,
        int logSegments,
        int openSegments,
        int writeQueueBlocks) {

    /**
     * Works it out.
     *
     * @param options of a store that does not exist yet
     * @return how it would be cut
     * @throws OrbitKvException {@link ErrorCode#CAP_TOO_SMALL} if the cap holds too few segments
     */
    public static StoreGeometry of(StoreOptions options) {
        Sizes sizes = Sizes.of(options);
        int log = sizes.logSegmentBytes();
        return new StoreGeometry(
                sizes.hostSegmentBytes(),
                Math.toIntExact(options.poolBytes() / sizes.hostSegmentBytes()),
                log,
                Budget.of(
                                options.capBytes(),
                                log,
                                OpeningOptions.SEGMENTS_MIN,
                                options.folders().size())
                        .segments(),
                options.openSegments(),
                sizes.writeQueueBlocks());
    }
}
