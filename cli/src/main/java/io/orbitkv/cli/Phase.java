package io.orbitkv.cli;

import org.HdrHistogram.Histogram;

/** What one life of the child did, as its frames told: before the kill, or after it. */
final class Phase {
    private static final long NANOS_MAX = 60_000_000_000L;

    final Histogram queryNanos = new Histogram(NANOS_MAX, 3);
    final Histogram restoreNanos = new Histogram(NANOS_MAX, 3);
    final Histogram saveNanos = new Histogram(NANOS_MAX, 3);
    final int blockBytes;
    String kind = "";
    long openNanos;
    long firstQueryNanos;
    long blocksIndexed;
    long requests;
    long blocks;
    long hostHits;
    long nvmeHits;
    long wrong;
    long saved;
    long dropped;
    long shortBlocks;
    long nvmeHitBytes;
    long driveReadBytes;
    long gone;
    long restoreNanosSum;
    long saveNanosSum;
    long wallNanos;

    Phase(int blockBytes) {
        this.blockBytes = blockBytes;
    }

    long hits() {
        return hostHits + nvmeHits;
    }

    double hitRate() {
        return blocks == 0 ? 0 : (double) hits() / blocks;
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
        requests += other.requests;
        blocks += other.blocks;
        hostHits += other.hostHits;
        nvmeHits += other.nvmeHits;
        wrong += other.wrong;
        saved += other.saved;
        dropped += other.dropped;
        shortBlocks += other.shortBlocks;
        nvmeHitBytes += other.nvmeHitBytes;
        driveReadBytes += other.driveReadBytes;
        gone += other.gone;
        restoreNanosSum += other.restoreNanosSum;
        saveNanosSum += other.saveNanosSum;
        wallNanos += other.wallNanos;
        return this;
    }

    static void record(Histogram histogram, long nanos) {
        histogram.recordValue(Math.min(nanos, NANOS_MAX));
    }
}
