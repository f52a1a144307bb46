package io.orbitkv.recovery;

import io.orbitkv.tiers.LogGeometry;

/**
 * How to open a folder. Immutable; {@code with...} methods answer changed copies.
 *
 * @param capBytes most bytes that the folder may take on the drive; 0: what the store there was made with
 * @param segmentBytes bytes of a segment, a power of two; 0: by the cap, or what the store there was made with
 * @param segmentsMin fewest segments that the store can work with
 * @param lockWaitNanos how long to wait for the transfers of a killed holder to end
 * @param readThreads threads that read segments; 1 reads on the caller's, in one order
 * @param storeIdSeed 0: the id of a new store is random; otherwise it follows from this number (simulations)
 * @param flushesBeforeReuse whether the store will flush before it puts a segment to use again; otherwise the catalog vouches for no segment
 * @param pid the process id for the lock page
 * @param progress is told how far the opening has come
 */
public record OpeningOptions(
        long capBytes,
        int segmentBytes,
        int segmentsMin,
        long lockWaitNanos,
        int readThreads,
        long storeIdSeed,
        boolean flushesBeforeReuse,
        long pid,
        OpeningProgress progress) {
    /** Open segments of the default tier, one to reclaim, one prepared, and two of room to evict from. */
    public static final int SEGMENTS_MIN = 8;

    /** Long enough for a drive to finish what a killed process had in flight. */
    public static final long LOCK_WAIT_NANOS = 2_000_000_000L;

    /** They wait for the drive nearly all the time, so that few cores are no reason for fewer. */
    private static final int READ_THREADS = 16;

    /** The default way to open a folder with a cap. */
    public static OpeningOptions of(long capBytes) {
        return new OpeningOptions(
                capBytes,
                0,
                SEGMENTS_MIN,
                LOCK_WAIT_NANOS,
                READ_THREADS,
                0,
                true,
                ProcessHandle.current().pid(),
                OpeningProgress.NONE);
    }

    /** With another segment size; at most {@link LogGeometry#SEGMENT_BYTES_MAX}. */
    public OpeningOptions withSegmentBytes(int bytes) {
        return new OpeningOptions(
                capBytes,
                bytes,
                segmentsMin,
                lockWaitNanos,
                readThreads,
                storeIdSeed,
                flushesBeforeReuse,
                pid,
                progress);
    }

    /** With another smallest number of segments. */
    public OpeningOptions withSegmentsMin(int segments) {
        return new OpeningOptions(
                capBytes,
                segmentBytes,
                segments,
                lockWaitNanos,
                readThreads,
                storeIdSeed,
                flushesBeforeReuse,
                pid,
                progress);
    }

    /** With another wait for the lock. */
    public OpeningOptions withLockWaitNanos(long nanos) {
        return new OpeningOptions(
                capBytes,
                segmentBytes,
                segmentsMin,
                nanos,
                readThreads,
                storeIdSeed,
                flushesBeforeReuse,
                pid,
                progress);
    }

    /** With another number of reading threads. */
    public OpeningOptions withReadThreads(int threads) {
        return new OpeningOptions(
                capBytes,
                segmentBytes,
                segmentsMin,
                lockWaitNanos,
                threads,
                storeIdSeed,
                flushesBeforeReuse,
                pid,
                progress);
    }

    /** With one reading thread and a store id that follows from a seed: the same calls in the same order every time. */
    public OpeningOptions simulated(long seed) {
        return new OpeningOptions(capBytes, segmentBytes, segmentsMin, 0, 1, seed, flushesBeforeReuse, pid, progress);
    }

    /** With somebody who is told how far it has come. */
    public OpeningOptions withProgress(OpeningProgress listener) {
        return new OpeningOptions(
                capBytes,
                segmentBytes,
                segmentsMin,
                lockWaitNanos,
                readThreads,
                storeIdSeed,
                flushesBeforeReuse,
                pid,
                listener);
    }

    /** For a store that flushes before it puts a segment to use again, or doesn't. */
    public OpeningOptions withFlushesBeforeReuse(boolean flushes) {
        return new OpeningOptions(
                capBytes, segmentBytes, segmentsMin, lockWaitNanos, readThreads, storeIdSeed, flushes, pid, progress);
    }
}
