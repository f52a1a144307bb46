package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.store.Workspace.BlockState;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.HostTier;
import org.agrona.collections.LongHashSet;

/**
 * Copies blocks that a restore has read from the drive and proved into host memory, on the restore's thread, while they
 * are in its cache. The block keeps its place on the drive and is not offered to it again.
 *
 * <p>Bytes under way are bounded, over all restores; beyond, and where no segment is free, a block stays on the drive
 * only. A table of blocks under way keeps two restores from copying one block twice.
 */
final class Promoter {
    /** As many as all workspaces together can have under way. */
    private static final int UNDER_WAY_MAX = Workspaces.WORKSPACES_MAX * Workspace.TURN_BLOCKS_MAX;

    private final Object writerLock;
    private final PrefixIndex index;
    private final HostTier host;
    private final HostMover mover;
    private final Counters counters;

    /** Extents on the drive. Never grows: it is made for all that can be in it. Guarded by the writer lock. */
    private final LongHashSet underWay = new LongHashSet(UNDER_WAY_MAX * 2);

    /** Guarded by the writer lock. */
    private long bytesUnderWay;

    /** Written under the writer lock; a look without it only skips what could not be claimed anyway. */
    private volatile long bytesMax;

    Promoter(Object writerLock, PrefixIndex index, HostTier host, HostMover mover, Counters counters) {
        this.writerLock = writerLock;
        this.index = index;
        this.host = host;
        this.mover = mover;
        this.counters = counters;
    }

    /** Bounds the bytes under way; none before. Under the writer lock. */
    void allow(long bytes) {
        bytesMax = bytes;
    }

    /** Takes the turn's blocks that came from the drive into host memory. */
    void promote(Workspace work) {
        if (work.fromDrive == 0 || bytesMax == 0) {
            counters.promotionsSkipped.add(work.fromDrive);
            return;
        }
        synchronized (writerLock) {
            claim(work);
        }
        int copied = 0;
        try {
            for (; copied < work.pinned; copied++) {
                if (work.promotions[copied] != Extent.NONE && !copy(work, copied)) {
                    work.states[copied] = BlockState.MISSED; // the destination was written to meanwhile
                }
            }
        } finally { // its owner may even have closed it
            synchronized (writerLock) {
                place(work, copied);
            }
        }
        mover.run();
    }

    private void claim(Workspace work) {
        // All of one restore goes where its first block does, so that a segment holds few requests.
        int lane = host.laneFor(work.firstKey());
        int number = work.binding.indexNumber();
        for (int i = 0; i < work.pinned; i++) {
            long extent = work.promotions[i];
            work.promotions[i] = Extent.NONE;
            if (extent == Extent.NONE || isInHost(work, i) || underWay.contains(extent)) {
                continue;
            }
            boolean fits = bytesUnderWay + work.paddedBytes <= bytesMax && underWay.size() < UNDER_WAY_MAX;
            long target = fits && index.holds(number, work.keys(), work.keyOffset(i), Tier.NVME, extent)
                    ? host.claim(lane, work.blockBytes)
                    : Extent.NONE;
            if (target == Extent.NONE) {
                counters.promotionsSkipped.increment();
                continue;
            }
            work.promotions[i] = target;
            underWay.add(extent);
            bytesUnderWay += work.paddedBytes;
        }
    }

    private boolean isInHost(Workspace work, int i) {
        return index.match(work.binding.indexNumber(), work.keys(), work.keyOffset(i), 1, work.single) == 1
                && work.single.extent(Tier.HOST, 0) != Extent.NONE;
    }

    /** Copies a block and its listing, which keeps no position: only the drive asks for those. Whether it is right. */
    private boolean copy(Workspace work, int i) {
        long target = work.promotions[i];
        MemoryRegion pool = host.memory();
        long at = host.payloadOffset(target);
        int read = work.reads[i];
        pool.copyFrom(at, work.batchOf(i).region(read), work.batchOf(i).offset(read), work.blockBytes);
        work.pad(pool, at);
        BlockListing listing = host.listing(target, work.listing).clear();
        listing.key(work.keys(), work.keyOffset(i));
        if (work.keyOffset(i) >= PrefixIndex.KEY_BYTES) {
            listing.parent(work.keys(), work.keyOffset(i) - PrefixIndex.KEY_BYTES);
        }
        work.describe(listing, work.checksums[i]);
        return work.checksumOf(listing.region(), listing.offset(), pool, at) == work.checksums[i];
    }

    private void place(Workspace work, int copied) {
        for (int i = 0; i < work.pinned; i++) {
            long target = work.promotions[i];
            if (target == Extent.NONE) {
                continue;
            }
            long extent = work.extents[i];
            if (i < copied
                    && work.states[i] == BlockState.RESTORED
                    && index.place(
                            work.binding.indexNumber(),
                            work.keys(),
                            work.keyOffset(i),
                            Tier.NVME,
                            extent,
                            Tier.HOST,
                            target)) {
                counters.promotedBlocks.increment();
                counters.promotedBytes.add(work.blockBytes);
            } else {
                counters.promotionsSkipped.increment();
            }
            host.unpin(target);
            underWay.remove(extent);
            bytesUnderWay -= work.paddedBytes;
            work.promotions[i] = Extent.NONE;
        }
    }
}
