package io.orbitkv.tiers;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * Settings of the log. All bounds; a value that is out of range is refused.
 *
 * @param openSegments segments that are written at once, 1 to 64; a small log uses fewer
 * @param queueBlocks most blocks that were offered and aren't settled, 1 to 1,048,576
 * @param batchBytesMax a batch is not extended beyond this many payload bytes; one block always fits
 * @param lingerNanos how long the first block of a batch waits for company
 * @param durability when to flush
 * @param flushIntervalNanos the interval of {@link Durability#INTERVAL}
 * @param ringDepth most transfers in flight, 8 to 4096
 * @param readDepth part of the ring that writes never take, 1 to ringDepth - 4
 * @param readQueueBatches most read batches that wait for the agent, 2 to 65,536
 * @param eviction which segment leaves when room is needed
 * @param driveTimeoutNanos a transfer that takes longer takes the drive out of service, 1 ms to 1 h
 * @param probeNanosMax longest rest before a drive that is out is tried again, 1 ms to 1 h
 */
public record NvmeOptions(
        int openSegments,
        int queueBlocks,
        int batchBytesMax,
        long lingerNanos,
        Durability durability,
        long flushIntervalNanos,
        int ringDepth,
        int readDepth,
        int readQueueBatches,
        EvictionPolicy eviction,
        long driveTimeoutNanos,
        long probeNanosMax) {
    /** Most open segments. */
    public static final int OPEN_SEGMENTS_MAX = 64;

    /** Most blocks in the queue: 1,048,576. */
    public static final int QUEUE_BLOCKS_MAX = 1 << 20;

    private static final int RING_DEPTH_MIN = 8;
    private static final int RING_DEPTH_MAX = 4096;
    private static final int WRITE_DEPTH_MIN = 4;
    private static final int READ_QUEUE_MAX = 1 << 16;
    private static final long NANOS_MIN = 1_000_000;
    private static final long NANOS_MAX = 3_600_000_000_000L;

    /** Refuses what is out of range. */
    public NvmeOptions {
        Objects.requireNonNull(eviction, "eviction");
        require("openSegments", openSegments, 1, OPEN_SEGMENTS_MAX);
        require("queueBlocks", queueBlocks, 1, QUEUE_BLOCKS_MAX);
        require("batchBytesMax", batchBytesMax, 1, Integer.MAX_VALUE);
        require("lingerNanos", lingerNanos, 0, Long.MAX_VALUE / 4);
        require("flushIntervalNanos", flushIntervalNanos, 0, Long.MAX_VALUE / 4);
        require("ringDepth", ringDepth, RING_DEPTH_MIN, RING_DEPTH_MAX);
        require("readDepth", readDepth, 1, ringDepth - WRITE_DEPTH_MIN);
        require("readQueueBatches", readQueueBatches, 2, READ_QUEUE_MAX);
        require("driveTimeoutNanos", driveTimeoutNanos, NANOS_MIN, NANOS_MAX);
        require("probeNanosMax", probeNanosMax, NANOS_MIN, NANOS_MAX);
    }

    /**
     * 4 open segments, 4096 blocks queued, batches of 8 MiB after at most 2 ms, flushes every 100 ms; out after 1.5 s, tried
     * every 4 s.
     */
    public static NvmeOptions defaults() {
        return new NvmeOptions(
                4,
                4096,
                8 << 20,
                2_000_000,
                Durability.INTERVAL,
                100_000_000,
                128,
                64,
                256,
                EvictionPolicy.SECOND_CHANCE,
                1_500_000_000,
                4_000_000_000L);
    }

    /** The same with another number of open segments. */
    public NvmeOptions withOpenSegments(int count) {
        return with(draft -> draft.openSegments = count);
    }

    /** The same with another bound of the queue. */
    public NvmeOptions withQueueBlocks(int count) {
        return with(draft -> draft.queueBlocks = count);
    }

    /** The same with other batches. */
    public NvmeOptions withBatches(int bytesMax, long nanos) {
        return with(draft -> {
            draft.batchBytesMax = bytesMax;
            draft.lingerNanos = nanos;
        });
    }

    /** The same with other flushing. */
    public NvmeOptions withDurability(Durability when, long intervalNanos) {
        return with(draft -> {
            draft.durability = when;
            draft.flushIntervalNanos = intervalNanos;
        });
    }

    /** The same with another ring. */
    public NvmeOptions withRing(int depth, int depthOfReads) {
        return with(draft -> {
            draft.ringDepth = depth;
            draft.readDepth = depthOfReads;
        });
    }

    /** The same with another eviction policy. */
    public NvmeOptions withEviction(EvictionPolicy policy) {
        return with(draft -> draft.eviction = policy);
    }

    /** The same with other patience with the drive. */
    public NvmeOptions withDriveTimeout(long timeoutNanos, long probeMaxNanos) {
        return with(draft -> {
            draft.driveTimeoutNanos = timeoutNanos;
            draft.probeNanosMax = probeMaxNanos;
        });
    }

    private NvmeOptions with(Consumer<Draft> change) {
        Draft draft = new Draft(this);
        change.accept(draft);
        return new NvmeOptions(
                draft.openSegments,
                draft.queueBlocks,
                draft.batchBytesMax,
                draft.lingerNanos,
                draft.durability,
                draft.flushIntervalNanos,
                draft.ringDepth,
                draft.readDepth,
                readQueueBatches,
                draft.eviction,
                draft.driveTimeoutNanos,
                draft.probeNanosMax);
    }

    /** Settings that are being changed. */
    private static final class Draft {
        private int openSegments;
        private int queueBlocks;
        private int batchBytesMax;
        private long lingerNanos;
        private Durability durability;
        private long flushIntervalNanos;
        private int ringDepth;
        private int readDepth;
        private EvictionPolicy eviction;
        private long driveTimeoutNanos;
        private long probeNanosMax;

        Draft(NvmeOptions from) {
            openSegments = from.openSegments;
            queueBlocks = from.queueBlocks;
            batchBytesMax = from.batchBytesMax;
            lingerNanos = from.lingerNanos;
            durability = from.durability;
            flushIntervalNanos = from.flushIntervalNanos;
            ringDepth = from.ringDepth;
            readDepth = from.readDepth;
            eviction = from.eviction;
            driveTimeoutNanos = from.driveTimeoutNanos;
            probeNanosMax = from.probeNanosMax;
        }
    }

    private static void require(String name, long value, long min, long max) {
        if (value < min || value > max) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, name + " of the log is " + value + "; take " + min + " to " + max);
        }
    }
}
