package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.HostTier;
import org.agrona.DirectBuffer;

/**
 * Finds blocks in host memory for readers in other processes: the key is compared here, under a pin of microseconds; that
 * the bytes are still those is proved by the reader, who looks at the generation behind its copy.
 */
final class HostPlaces {
    private final PrefixIndex index;
    private final HostTier host;
    private final Drives nvme;
    private final Counters counters;
    private final Admission admission;

    HostPlaces(PrefixIndex index, HostTier host, Drives nvme, Counters counters, Admission admission) {
        this.index = index;
        this.host = host;
        this.nvme = nvme;
        this.counters = counters;
        this.admission = admission;
    }

    void find(ShardHandle shard, DirectBuffer keys, int keysOffset, int count, Workspace work, BlockPlaces into) {
        work.begin(shard, null, 0, keys, keysOffset, null);
        long hostUse = host.nextUse();
        long nvmeUse = nvme.nextUse();
        for (int done = 0; done < count; done += work.count) {
            work.turn(done, Math.min(Workspace.RESTORE_TURN_BLOCKS_MAX, count - done));
            int matched = index.match(work.binding.indexNumber(), keys, work.keyOffset(0), work.count, work.turn);
            int found = 0;
            for (int i = 0; i < matched; i++) {
                if (work.turn.extent(Tier.NVME, i) != Extent.NONE) {
                    nvme.markUsed(work.turn.extent(Tier.NVME, i), nvmeUse);
                }
                found += findOne(work, i, hostUse, into) && found == i ? 1 : 0;
            }
            admission.restored(work, found);
            if (matched < work.count) {
                break;
            }
        }
    }

    private boolean findOne(Workspace work, int i, long use, BlockPlaces into) {
        long extent = work.turn.extent(Tier.HOST, i);
        if (!host.pin(extent)) {
            return false;
        }
        try {
            BlockListing listing = host.listing(extent, work.listing);
            if (listing.storedBytes() != work.blockBytes || !listing.sameKey(work.keys(), work.keyOffset(i))) {
                counters.keyCollisions.increment();
                return false;
            }
            host.markUsed(extent, use);
            if (listing.birth() == SavePath.NEVER_OFFERED) {
                work.hostOnlyBlocks[i / Long.SIZE] |= 1L << i;
            }
            into.set(work.firstBlock + i, extent, listing.checksum());
            counters.restoredHostBlocks.increment();
            counters.restoredHostBytes.add(work.blockBytes);
            return true;
        } finally {
            host.unpin(extent);
        }
    }
}
