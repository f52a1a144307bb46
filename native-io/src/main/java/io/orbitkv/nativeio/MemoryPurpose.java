package io.orbitkv.nativeio;

import java.util.concurrent.atomic.AtomicLong;

/** What native memory is for. Every region is counted under one purpose, so that a leak has a name. */
public enum MemoryPurpose {
    /** Host segments: the payload of blocks. */
    HOST_POOL,
    /** What stands beside host segments: listings of their blocks, page maps. */
    HOST_LISTINGS,
    /** Runs and directory of the prefix index. */
    INDEX,
    /** Segment tables: generations and pins. */
    SEGMENT_TABLE,
    /** Buffers that reads land in and headers are written from. */
    STAGING,
    /** Key copies that leases hold. */
    LEASE,
    /** Rings shared with the kernel. */
    RING,
    /** Memory handed out to the embedding program. */
    CALLER,
    /** Frames of a socket, and what a manager shares with one client. */
    SESSION,
    /** Memory of another process, mapped. */
    SHARED,
    /** Tests, benchmarks and tools. */
    TOOL,
    /** Memory that somebody else owns and we only look at; not counted in totals. */
    FOREIGN;

    private final AtomicLong bytes = new AtomicLong();

    /** Bytes mapped for this purpose now. */
    public long bytes() {
        return bytes.get();
    }

    void add(long delta) {
        bytes.addAndGet(delta);
    }

    /** Bytes mapped for all purposes together now, foreign memory left out. */
    public static long totalBytes() {
        long sum = 0;
        for (MemoryPurpose purpose : values()) {
            sum += purpose == FOREIGN ? 0 : purpose.bytes();
        }
        return sum;
    }
}
