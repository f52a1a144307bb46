package io.orbitkv.store;

import io.orbitkv.index.Match;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.LearnedCost;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Estimates what a restore will take, from what restores took and the reads that are under way.
 *
 * <p>There are three paths: copies out of host memory, reads of one or two blocks, and batches of more. Reads of others that are in flight are waited for first, so they count as if they were the
 * restore's own; so is a flush that is under way.
 *
 * <p>Copies of few blocks take 3 µs or 30, by how warm the caches and how compiled the code is. The query that asks meets
 * the same, so its own time tells: its {@link #pace}.
 *
 * <p>Any thread; nothing is allocated and no lock is taken.
 */
final class RestoreEstimate {
    /** Up to so many blocks of a turn a batch is few: what counts is how long one read takes. */
    static final int FEW_BLOCKS_MAX = 2;

    /** What a caller sees beyond the turns, learning from them included: measured; it counts beside a small host hit only. */
    private static final double CALL_NANOS = 1_000;

    // What a query of few blocks usually takes, and what each of its blocks adds: only differences from it matter.
    private static final double QUERY_NANOS = 3_000;
    private static final double QUERY_BLOCK_NANOS = 6;

    /** A query that lost its core tells nothing of copies. */
    private static final double PACE_MAX = 5;

    private static final double PACE_MIN = 0.2;

    // Where nothing was measured yet: memory copies at 7 GB/s, a drive that answers in 0.1 ms and gives 1.6 GB/s.
    private final LearnedCost host = new LearnedCost(2_000, 500, 0.15);
    private final LearnedCost few = new LearnedCost(10_000, 90_000, 0.6);
    private final LearnedCost batch = new LearnedCost(200_000, 5_000, 0.6);

    private final Drives nvme;
    private final AtomicInteger readsInFlight = new AtomicInteger();
    private final AtomicLong bytesInFlight = new AtomicLong();

    RestoreEstimate(Drives nvme) {
        this.nvme = nvme;
    }

    /** Where the blocks of a match lie, by the path that a restore of it would take. Reused; not thread-safe. */
    static final class Paths {
        private int hostTurns;
        private int hostBlocks;
        private int fewTurns;
        private int fewBlocks;
        private int batchTurns;
        private int batchBlocks;

        /** Counts the first blocks of a match, turn by turn. */
        Paths count(Match match, int length, int turnBlocks) {
            hostTurns = 0;
            hostBlocks = 0;
            fewTurns = 0;
            fewBlocks = 0;
            batchTurns = 0;
            batchBlocks = 0;
            for (int from = 0; from < length; from += turnBlocks) {
                int to = Math.min(length, from + turnBlocks);
                int inHost = match.blocks(Tier.HOST, from, to);
                int reads = to - from - inHost;
                hostBlocks += inHost;
                hostTurns += inHost > 0 ? 1 : 0;
                if (reads > FEW_BLOCKS_MAX) {
                    batchBlocks += reads;
                    batchTurns++;
                } else if (reads > 0) {
                    fewBlocks += reads;
                    fewTurns++;
                }
            }
            return this;
        }

        int hostBlocks() {
            return hostBlocks;
        }
    }

    /**
     * How slow this moment is for what does little and touches much, beside others: about 1.
     *
     * @param queryNanos what the query took up to now
     * @param blocks how many it found
     * @return a factor for the first copy of a turn: it grows with the square root of the query's time, as measured
     */
    static double pace(long queryNanos, int blocks) {
        double pace = Math.sqrt(Math.max(0, queryNanos) / (QUERY_NANOS + QUERY_BLOCK_NANOS * blocks));
        return Math.max(PACE_MIN, Math.min(PACE_MAX, pace));
    }

    /** Nanoseconds for the blocks in host memory. */
    double hostNanos(Paths paths, int blockBytes, double pace) {
        return paths.hostBlocks == 0 ? 0 : CALL_NANOS + copyNanos(paths.hostTurns, paths.hostBlocks, blockBytes, pace);
    }

    /** Later copies of a turn stream: only the first of each goes at the query's pace. */
    private double copyNanos(int turns, int blocks, int blockBytes, double pace) {
        double paced = blocks + turns * (pace - 1);
        return host.nanos(turns * pace, paced, paced * blockBytes);
    }

    /** Nanoseconds for the blocks on the drive, those in flight before them included. */
    double nvmeNanos(Paths paths, int blockBytes) {
        double nanos = 0;
        if (paths.fewBlocks > 0) {
            nanos += few.nanos(paths.fewTurns, paths.fewBlocks, (double) paths.fewBlocks * blockBytes);
        }
        if (paths.batchBlocks > 0) {
            nanos += batch.nanos(paths.batchTurns, paths.batchBlocks, (double) paths.batchBlocks * blockBytes);
        }
        if (nanos > 0) {
            nanos += batch.nanos(0, readsInFlight.get(), bytesInFlight.get()) + nvme.flushNanosLeft();
        }
        return nanos;
    }

    /** Notes that the reads of a turn begin, and what was in flight before them. */
    void readsBegin(Workspace work) {
        int reads = work.readCount;
        long bytes = (long) reads * work.paddedBytes;
        work.readsNoted = reads;
        work.flushNanosBefore = nvme.flushNanosLeft();
        work.readsBefore = readsInFlight.getAndAdd(reads);
        work.bytesBefore = bytesInFlight.getAndAdd(bytes);
    }

    /** Notes that they have ended; does nothing where none had begun. */
    void readsEnd(Workspace work) {
        if (work.readsNoted > 0) {
            readsInFlight.getAndAdd(-work.readsNoted);
            bytesInFlight.getAndAdd(-(long) work.readsNoted * work.paddedBytes);
            work.readsNoted = 0;
        }
    }

    /**
     * Takes in what a turn took that has restored all of its blocks. Copies that ran beside reads teach nothing: they lack
     * what surrounds a turn, and reads that take longer anyway hide them.
     */
    void learn(Workspace work, long turnNanos) {
        int reads = work.readCount;
        int copies = work.count - reads;
        if (reads == 0) {
            double paced = copies + work.pace - 1;
            host.learn(work.pace, paced, paced * work.blockBytes, turnNanos);
        } else {
            double ofCopies = copies == 0 ? 0 : copyNanos(1, copies, work.blockBytes, work.pace);
            learnReads(work, reads, (long) Math.max(turnNanos / 2.0, turnNanos - ofCopies));
        }
    }

    private void learnReads(Workspace work, int reads, long nanos) {
        double bytes = (double) reads * work.blockBytes;
        boolean isBatch = reads > FEW_BLOCKS_MAX;
        LearnedCost cost = isBatch ? batch : few;
        double flush = work.flushNanosBefore;
        if (flush > cost.nanos(1, reads, bytes)) {
            return; // most of what was measured is the flush
        }
        long unflushed = Math.max(nanos / 2, nanos - (long) flush);
        if (isBatch) {
            batch.learn(1, reads + (double) work.readsBefore, bytes + work.bytesBefore, unflushed);
        } else {
            double queued = batch.nanos(0, work.readsBefore, work.bytesBefore);
            few.learn(1, reads, bytes, Math.max(unflushed / 2, unflushed - (long) queued));
        }
    }
}
