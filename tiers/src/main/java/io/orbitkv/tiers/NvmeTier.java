package io.orbitkv.tiers;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.WindowProbe;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;

/** The log on a drive. (signatures only, so far) */
public final class NvmeTier implements Agent, AutoCloseable {
    private final NanoClock clock;

    /** Opens the log. */
    public NvmeTier(
            DataFolder folder,
            LogGeometry geometry,
            LogState initial,
            HostBlocks host,
            NvmeListener listener,
            NanoClock clock,
            WindowProbe probe,
            NvmeOptions options) {
        this.clock = clock;
    }

    static long pagesBytes(int storedBytes) {
        return (long) Extent.pages(storedBytes) * MemoryRegion.PAGE_BYTES;
    }

    long nanoTime() {
        return clock.nanoTime();
    }

    boolean isAgentThread() {
        return false;
    }

    boolean workUntilDrained(ReadBatch batch, long start, long timeoutNanos) {
        return false;
    }

    /** The generations of the log's segments. */
    public Generations generations() {
        throw new UnsupportedOperationException();
    }

    /** Blocks that can still be offered. The caller holds the store's writer lock. */
    public int queueFree() {
        throw new UnsupportedOperationException();
    }

    /** Hands over a block with the caller's pin on its host extent. The caller holds the store's writer lock. */
    public void offer(long hostExtent, long position, int lane) {
        throw new UnsupportedOperationException();
    }

    /** Keeps the bytes of an extent's segment in place; false: stale, nothing pinned. Any thread. */
    public boolean pin(long extent) {
        throw new UnsupportedOperationException();
    }

    /** Gives a pin back. Any thread. */
    public void unpin(long extent) {
        throw new UnsupportedOperationException();
    }

    /** Hands reads to the agent; false: queue full, stopped or failed. Any thread. */
    public boolean submit(ReadBatch batch) {
        throw new UnsupportedOperationException();
    }

    /** Reads a block's pages on the caller's thread; the caller holds a pin. Any thread. */
    public void readNow(long extent, int bytes, MemoryRegion into, long offset) {
        throw new UnsupportedOperationException();
    }

    /** Every block offered up to here is in the log. Any thread. */
    public long writtenPosition() {
        throw new UnsupportedOperationException();
    }

    /** Every block offered up to here survives a power loss. Any thread. */
    public long durablePosition() {
        throw new UnsupportedOperationException();
    }

    /** Writes what is queued now, without linger. Any thread. */
    public void requestWrite() {
        throw new UnsupportedOperationException();
    }

    /** Writes what is queued now, without linger, then flushes. Any thread. */
    public void requestFlush() {
        throw new UnsupportedOperationException();
    }

    /** The use-sequence of a segment, 0 while it is free. Any thread. */
    public long useSequence(int segment) {
        throw new UnsupportedOperationException();
    }

    /** What the tier still does. Any thread. */
    public TierState state() {
        throw new UnsupportedOperationException();
    }

    @Override
    public int doWork() {
        throw new UnsupportedOperationException();
    }

    /** Sleeps until there is work, at most so long. Agent's thread. */
    public void await(long maxNanos) {
        throw new UnsupportedOperationException();
    }

    /** Ends the present or next {@link #await}. Any thread. */
    public void wakeup() {
        throw new UnsupportedOperationException();
    }

    /** One step of a clean stop instead of {@link #doWork}; true when everything is durable. Agent's thread. */
    public boolean stop() {
        throw new UnsupportedOperationException();
    }

    @Override
    public String roleName() {
        return "orbitkv-log";
    }

    @Override
    public void close() {}
}
