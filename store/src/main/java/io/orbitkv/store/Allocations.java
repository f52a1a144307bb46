package io.orbitkv.store;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.util.ArrayList;
import java.util.List;

/** Memory handed out to the embedding program; the store frees it, since a drive may write there until it stops. */
final class Allocations implements AutoCloseable {
    private final List<MemoryRegion> regions = new ArrayList<>();

    synchronized MemoryRegion allocate(long bytes, PageKind kind) {
        MemoryRegion region = MemoryRegion.anonymous(bytes, kind, MemoryPurpose.CALLER);
        regions.add(region);
        return region;
    }

    @Override
    public synchronized void close() {
        regions.forEach(MemoryRegion::close);
        regions.clear();
    }
}
