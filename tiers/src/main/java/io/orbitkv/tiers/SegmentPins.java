package io.orbitkv.tiers;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;

/** How many readers and writers use the bytes of each segment right now. Safe from any thread. */
final class SegmentPins implements AutoCloseable {
    private final MemoryRegion counts;

    SegmentPins(int segments) {
        counts = MemoryRegion.anonymous((long) segments * Integer.BYTES, PageKind.SMALL, MemoryPurpose.SEGMENT_TABLE);
    }

    /** Adds a pin, then looks whether the extent is live; takes the pin back and answers false where it is stale. */
    boolean pin(long extent, Generations generations) {
        if (extent == Extent.NONE) {
            return false;
        }
        int segment = Extent.segment(extent);
        add(segment);
        if (generations.isLive(extent)) {
            return true;
        }
        remove(segment);
        return false;
    }

    void add(int segment) {
        counts.getAndAddInt(offset(segment), 1);
    }

    void remove(int segment) {
        int before = counts.getAndAddInt(offset(segment), -1);
        assert before > 0 : "segment " + segment + " was unpinned more often than pinned";
    }

    boolean isFree(int segment) {
        return counts.getIntVolatile(offset(segment)) == 0;
    }

    private static long offset(int segment) {
        return (long) segment * Integer.BYTES;
    }

    @Override
    public void close() {
        counts.close();
    }
}
