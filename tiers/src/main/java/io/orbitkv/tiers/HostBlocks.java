package io.orbitkv.tiers;

import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryRegion;

/** What the log needs of the host tier: the pages and listings of blocks that it was handed with a pin. */
public interface HostBlocks {
    /** The generations of the host segments. */
    Generations generations();

    /** The pool that all payloads lie in, page-aligned; stays open until the log is closed. */
    MemoryRegion memory();

    /** No block crosses a multiple of it; memory is taken in such units. Any thread. */
    default long unitBytes() {
        return IoRing.UNIT_BYTES;
    }

    /** Gives back one pin on the segment of an extent. Any thread. */
    void unpin(long extent);

    /** Where the payload of a block starts in {@link #memory()}; the caller holds a pin. */
    long payloadOffset(long extent);

    /** Aims a view at the listing of a block; the caller holds a pin. */
    BlockListing listing(long extent, BlockListing into);
}
