package io.orbitkv.tiers;

import java.util.concurrent.atomic.AtomicLong;

/**
 * What the log has done since it was opened. Numbers only grow; read from any thread, each by itself.
 *
 * <p>The agent alone raises them, apart from reads, which callers do as well.
 */
public final class NvmeCounters {
    final AtomicLong payloadBytes = new AtomicLong();
    final AtomicLong headerBytes = new AtomicLong();
    final AtomicLong footerBytes = new AtomicLong();
    final AtomicLong blocksWritten = new AtomicLong();
    final AtomicLong blocksDropped = new AtomicLong();
    final AtomicLong reappendedBlocks = new AtomicLong();
    final AtomicLong reappendedBytes = new AtomicLong();
    final AtomicLong usedBlocksDropped = new AtomicLong();
    final AtomicLong batches = new AtomicLong();
    final AtomicLong payloadWrites = new AtomicLong();
    final AtomicLong segmentsSealed = new AtomicLong();
    final AtomicLong segmentsReused = new AtomicLong();
    final AtomicLong segmentsFailed = new AtomicLong();
    final AtomicLong outages = new AtomicLong();
    final AtomicLong flushes = new AtomicLong();
    final AtomicLong reads = new AtomicLong();
    final AtomicLong readBytes = new AtomicLong();
    final AtomicLong readsStale = new AtomicLong();
    final AtomicLong readsFailed = new AtomicLong();

    NvmeCounters() {}

    /** Raises a counter that the calling thread alone writes. */
    static void add(AtomicLong counter, long delta) {
        counter.setRelease(counter.getPlain() + delta);
    }

    /** Bytes of payload pages written, padding included. */
    public long payloadBytes() {
        return payloadBytes.getAcquire();
    }

    /** Bytes of segment and batch headers written. */
    public long headerBytes() {
        return headerBytes.getAcquire();
    }

    /** Bytes of footers written. */
    public long footerBytes() {
        return footerBytes.getAcquire();
    }

    /** Blocks written. */
    public long blocksWritten() {
        return blocksWritten.getAcquire();
    }

    /** Blocks that were offered and not written, since they fit into no segment, or the drive was out. */
    public long blocksDropped() {
        return blocksDropped.getAcquire();
    }

    /** Used blocks of victims that were written again. */
    public long reappendedBlocks() {
        return reappendedBlocks.getAcquire();
    }

    /** Bytes of payload pages that were written again; not among {@link #payloadBytes()}. */
    public long reappendedBytes() {
        return reappendedBytes.getAcquire();
    }

    /** Used blocks that went with their segment, though the policy would have written them again. */
    public long usedBlocksDropped() {
        return usedBlocksDropped.getAcquire();
    }

    /** Batches written. */
    public long batches() {
        return batches.getAcquire();
    }

    /** Transfers that wrote payloads: neighbours are merged. */
    public long payloadWrites() {
        return payloadWrites.getAcquire();
    }

    /** Segments sealed. */
    public long segmentsSealed() {
        return segmentsSealed.getAcquire();
    }

    /** Segments whose blocks were given up for new ones. */
    public long segmentsReused() {
        return segmentsReused.getAcquire();
    }

    /** Segments that were given up since their flush had failed. */
    public long segmentsFailed() {
        return segmentsFailed.getAcquire();
    }

    /** How often the drive went out of service. */
    public long outages() {
        return outages.getAcquire();
    }

    /** Flushes of files. */
    public long flushes() {
        return flushes.getAcquire();
    }

    /** Reads of blocks that ended well. */
    public long reads() {
        return reads.getAcquire();
    }

    /** Bytes of pages that they read. */
    public long readBytes() {
        return readBytes.getAcquire();
    }

    /** Reads that were not started, since the segment had another life. */
    public long readsStale() {
        return readsStale.getAcquire();
    }

    /** Reads that the drive answered with an error, or that a failed or stopped log refused. */
    public long readsFailed() {
        return readsFailed.getAcquire();
    }
}
