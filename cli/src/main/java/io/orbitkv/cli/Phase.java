package io.orbitkv.cli;

import io.orbitkv.bench.simulate.Compute;
import java.io.DataInputStream;
import java.io.IOException;
import org.HdrHistogram.Histogram;

/** What one life of the child did, as its frames told: before the restart, or after it. */
final class Phase {
    private static final long NANOS_MAX = 60_000_000_000L;

    /** Ratios of estimate to measurement are counted in thousandths. */
    private static final double RATIO_UNIT = 1000;

    private static final long RATIO_MAX = 1_000_000_000L;

    final Histogram queryNanos = new Histogram(NANOS_MAX, 3);
    final Histogram restoreNanos = new Histogram(NANOS_MAX, 3);
    final Histogram saveNanos = new Histogram(NANOS_MAX, 3);

    /** Estimated by measured time of each request's restore, in thousandths. */
    final Histogram estimateRatios = new Histogram(RATIO_MAX, 3);

    final int blockBytes;
    private final RequestOutcome outcome = new RequestOutcome();
    String kind = "";
    long openNanos;
    long firstQueryNanos;
    long wholeNanos;
    long blocksIndexed;
    int segmentBytes;
    long requests;
    long blocks;
    long hostHits;
    long nvmeHits;
    long wrong;
    long saved;
    long dropped;
    long shortBlocks;
    long gone;
    double askedOperations;
    double savedOperations;
    long estimatesWithinTwo;
    long nvmeHitBytes;
    long driveReadBytes;
    long logReadBytes;
    long logWrittenBytes;
    long admittedBytes;
    long corrupt;
    long restoreNanosSum;
    long saveNanosSum;
    long waitedNanosSum;
    long wallNanos;

    Phase(int blockBytes) {
        this.blockBytes = blockBytes;
    }

    void readOpened(DataInputStream in) throws IOException {
        kind = in.readUTF();
        openNanos = in.readLong();
        firstQueryNanos = in.readLong();
        wholeNanos = in.readLong();
        blocksIndexed = in.readLong();
        segmentBytes = in.readInt();
    }

    /** The frame counts once it is whole: a killed child may have said half of it. */
    RequestOutcome readRequest(DataInputStream in, int blockTokens) throws IOException {
        outcome.begin(in.readInt(), in.readInt());
        outcome.hostHits = in.readInt();
        outcome.nvmeHits = in.readInt();
        outcome.wrong = in.readInt();
        outcome.saved = in.readInt();
        outcome.dropped = in.readInt();
        outcome.shortBlocks = in.readInt();
        outcome.queryNanos = in.readLong();
        outcome.restoreNanos = in.readLong();
        outcome.saveNanos = in.readLong();
        outcome.waitedNanos = in.readLong();
        outcome.estimatedNanos = in.readLong();
        count(blockTokens);
        return outcome;
    }

    private void count(int blockTokens) {
        int restored = outcome.hostHits + outcome.nvmeHits;
        requests++;
        blocks += outcome.blocks;
        hostHits += outcome.hostHits;
        nvmeHits += outcome.nvmeHits;
        wrong += outcome.wrong;
        saved += outcome.saved;
        dropped += outcome.dropped;
        shortBlocks += outcome.shortBlocks;
        askedOperations += Compute.ofPrefix((long) outcome.blocks * blockTokens);
        savedOperations += Compute.ofPrefix((long) restored * blockTokens);
        restoreNanosSum += outcome.restoreNanos;
        saveNanosSum += outcome.saveNanos;
        waitedNanosSum += outcome.waitedNanos;
        record(queryNanos, outcome.queryNanos);
        if (restored > 0) {
            record(restoreNanos, outcome.restoreNanos);
        }
        if (outcome.saved > 0) {
            record(saveNanos, outcome.saveNanos);
        }
        if (restored > 0 && outcome.estimatedNanos > 0) {
            double ratio = (double) outcome.estimatedNanos / Math.max(1, outcome.restoreNanos);
            estimatesWithinTwo += ratio >= 0.5 && ratio <= 2 ? 1 : 0;
            estimateRatios.recordValue((long) Math.min(RATIO_MAX, ratio * RATIO_UNIT));
        }
    }

    /** All count from the first request on, so the last frame of a life tells all of it. */
    void readCounters(DataInputStream in) throws IOException {
        long ofHits = in.readLong();
        long fromDrive = in.readLong();
        long fromLog = in.readLong();
        long toLog = in.readLong();
        long admitted = in.readLong();
        corrupt = in.readLong(); // the frame is whole only now
        nvmeHitBytes = ofHits;
        driveReadBytes = fromDrive;
        logReadBytes = fromLog;
        logWrittenBytes = toLog;
        admittedBytes = admitted;
    }

    long hits() {
        return hostHits + nvmeHits;
    }

    double hitRate() {
        return blocks == 0 ? 0 : (double) hits() / blocks;
    }

    double computeSaved() {
        return askedOperations == 0 ? 0 : savedOperations / askedOperations;
    }

    /** Bytes written to the log for each byte that was let in. */
    double amplification() {
        return admittedBytes == 0 ? 1 : (double) logWrittenBytes / admittedBytes;
    }

    /** Share of the restores whose estimate was at least half and at most twice of what they took. */
    double estimatesWithinTwo() {
        long all = estimateRatios.getTotalCount();
        return all == 0 ? Double.NaN : (double) estimatesWithinTwo / all;
    }

    /** Estimate by measurement, at a percentile of the restores. */
    double estimateRatio(double percentile) {
        return estimateRatios.getValueAtPercentile(percentile) / RATIO_UNIT;
    }

    long restoredBytes() {
        return hits() * blockBytes;
    }

    long savedBytes() {
        return saved * blockBytes;
    }

    /** Adds another phase to this one, for totals. */
    Phase add(Phase other) {
        queryNanos.add(other.queryNanos);
        restoreNanos.add(other.restoreNanos);
        saveNanos.add(other.saveNanos);
        estimateRatios.add(other.estimateRatios);
        segmentBytes = Math.max(segmentBytes, other.segmentBytes);
        requests += other.requests;
        blocks += other.blocks;
        hostHits += other.hostHits;
        nvmeHits += other.nvmeHits;
        wrong += other.wrong;
        saved += other.saved;
        dropped += other.dropped;
        shortBlocks += other.shortBlocks;
        gone += other.gone;
        askedOperations += other.askedOperations;
        savedOperations += other.savedOperations;
        estimatesWithinTwo += other.estimatesWithinTwo;
        nvmeHitBytes += other.nvmeHitBytes;
        driveReadBytes += other.driveReadBytes;
        logReadBytes += other.logReadBytes;
        logWrittenBytes += other.logWrittenBytes;
        admittedBytes += other.admittedBytes;
        corrupt += other.corrupt;
        restoreNanosSum += other.restoreNanosSum;
        saveNanosSum += other.saveNanosSum;
        waitedNanosSum += other.waitedNanosSum;
        wallNanos += other.wallNanos;
        return this;
    }

    private static void record(Histogram histogram, long nanos) {
        histogram.recordValue(Math.min(nanos, NANOS_MAX));
    }
}
