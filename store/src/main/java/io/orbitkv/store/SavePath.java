package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.index.PrefixIndex.Publication;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.store.SaveResult.DropReason;
import io.orbitkv.store.Workspace.BlockState;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.HostTier;

/**
 * Takes blocks in: claim pages, copy and checksum, publish.
 *
 * <p>A turn handles up to {@link Workspace#TURN_BLOCKS_MAX} blocks. Claims and publication run under the writer lock,
 * which is never held across a copy or I/O; copies run beside other savers. A block that somebody else published
 * meanwhile is dropped in favour of the first: its claim is dead weight until its segment goes. While no drive serves, or the
 * cap leaves none segments enough to write to, blocks are taken into host memory only.
 */
final class SavePath {
    /** Copied and checksummed at a time, so that the checksum finds the bytes in the L2 cache. */
    private static final int PIECE_BYTES = 256 << 10;

    /** Runs that a full index sweeps before it evicts: some microseconds under the writer lock. */
    private static final int SWEEP_RUNS = 4096;

    /** The birth of a block that lies in host memory only. */
    static final long NEVER_OFFERED = 0;

    private final Object writerLock;
    private final PrefixIndex index;
    private final HostTier host;
    private final Drives nvme;
    private final HostMover mover;
    private final Counters counters;
    private final Admission admission;

    /** Position of the last block that was offered to the drive. Guarded by the writer lock. */
    private long accepted;

    /** Claims that will be offered to the drive's queue. Guarded by the writer lock. */
    private int promised;

    /** Most blocks that may wait for the drives while not all of the pool may be used. Guarded by the writer lock. */
    private int waitingMax = Integer.MAX_VALUE;

    private volatile long acceptedPublished;

    SavePath(
            Object writerLock,
            PrefixIndex index,
            HostTier host,
            Drives nvme,
            HostMover mover,
            Counters counters,
            Admission admission,
            long lastPosition) {
        this.writerLock = writerLock;
        this.index = index;
        this.host = host;
        this.nvme = nvme;
        this.mover = mover;
        this.counters = counters;
        this.admission = admission;
        this.accepted = lastPosition;
        this.acceptedPublished = lastPosition;
    }

    long acceptedPosition() {
        return acceptedPublished;
    }

    /** Saves blocks in turns, until one is dropped: what lies behind a hole could never be reached. */
    void save(Workspace work, int count, SaveResult result) {
        for (int done = 0; done < count; done += work.count) {
            work.turn(done, Math.min(Workspace.TURN_BLOCKS_MAX, count - done));
            saveTurn(work, result);
            if (result.dropped() > 0) {
                result.drop(count - done - work.count, result.reason());
                break;
            }
        }
        counters.saved(result, work.blockBytes);
    }

    private void saveTurn(Workspace work, SaveResult result) {
        int lane;
        int claimed;
        synchronized (writerLock) {
            lane = lane(work);
            claimed = claim(work, lane, result);
        }
        boolean taken = false;
        try {
            admission.decide(work);
            for (int i = 0; i < work.count && claimed > 0; i++) {
                if (work.states[i] == BlockState.CLAIMED) {
                    take(work, i);
                }
            }
            taken = true;
        } finally {
            if (!taken) {
                giveUp(work, claimed);
            }
        }
        synchronized (writerLock) {
            promised -= claimed;
            index.expect(claimed);
            publish(work, lane, result);
        }
        admission.saved(work);
        mover.run();
    }

    /** The source could not be read after all (it was closed): without this its claims would stay pinned for good. */
    private void giveUp(Workspace work, int claimed) {
        synchronized (writerLock) {
            promised -= claimed;
            for (int i = 0; i < work.count; i++) {
                if (work.states[i] == BlockState.CLAIMED) {
                    host.unpin(work.extents[i]);
                }
            }
        }
    }

    /** A request goes on in the lane where its parent lies open; one that leaves what was stored picks a lane by key. */
    private int lane(Workspace work) {
        long key0 = work.keys().getLong(work.keyOffset(0));
        if (work.parent(0) != null
                && index.match(work.binding.indexNumber(), work.parent(0), work.parentOffset(0), 1, work.single) == 1) {
            return host.laneFor(work.single.extent(Tier.HOST, 0), key0);
        }
        return host.laneFor(key0);
    }

    private int claim(Workspace work, int lane, SaveResult result) {
        DropReason reason = DropReason.NONE;
        int room = nvme.isAnyTaking() ? roomOnDrive() : Integer.MAX_VALUE;
        int claimed = 0;
        for (int i = 0; i < work.count; i++) {
            if (index.contains(work.binding.indexNumber(), work.keys(), work.keyOffset(i))) {
                work.states[i] = BlockState.PRESENT;
                continue;
            }
            if (reason == DropReason.NONE && claimed >= room) {
                reason = DropReason.QUEUE_FULL;
            }
            if (reason == DropReason.NONE
                    && index.collides(work.binding.indexNumber(), work.keys(), work.keyOffset(i))) {
                reason = DropReason.KEY_COLLISION; // before pages are claimed for nothing
            }
            if (reason == DropReason.NONE) {
                work.extents[i] = host.claim(lane, work.blockBytes);
                reason = work.extents[i] == Extent.NONE ? DropReason.POOL_BUSY : DropReason.NONE;
            }
            if (reason != DropReason.NONE) {
                for (int j = i; j < work.count; j++) {
                    work.states[j] = BlockState.DROPPED;
                }
                result.drop(work.count - i, reason);
                break;
            }
            work.states[i] = BlockState.CLAIMED;
            claimed++;
        }
        promised += claimed;
        return claimed;
    }

    /** Copies a block into its pages and lists it beside them; the checksum is taken of the copy, not of the source. */
    private void take(Workspace work, int i) {
        long extent = work.extents[i];
        BlockListing listing = host.listing(extent, work.listing).clear();
        listing.key(work.keys(), work.keyOffset(i));
        if (work.parent(i) != null) {
            listing.parent(work.parent(i), work.parentOffset(i));
        }
        MemoryRegion pool = host.memory();
        long target = host.payloadOffset(extent);
        work.checksum.reset().update(listing.region(), listing.offset(), PrefixIndex.KEY_BYTES);
        for (int done = 0; done < work.blockBytes; done += PIECE_BYTES) {
            int piece = Math.min(PIECE_BYTES, work.blockBytes - done);
            work.blocks.copyOut(work.firstBlock + i, work.blockBytes, done, pool, target + done, piece);
            work.checksum.update(pool, target + done, piece);
        }
        work.pad(pool, target);
        work.checksums[i] = work.checksum.value();
        work.describe(listing, work.checksums[i]);
    }

    private void publish(Workspace work, int lane, SaveResult result) {
        // A clear between claim and now has forgotten these blocks already.
        DropReason reason = work.shard.binding() == work.binding ? DropReason.NONE : DropReason.CLEARED;
        for (int i = 0; i < work.count && work.states[i] != BlockState.DROPPED; i++) {
            boolean claimed = work.states[i] == BlockState.CLAIMED;
            Publication published = Publication.PRESENT;
            if (reason == DropReason.NONE && claimed) {
                published = publishOne(work, i);
                reason = reasonOf(published);
            }
            if (reason == DropReason.NONE && published == Publication.PUBLISHED) {
                accept(work, i, lane, result);
                continue;
            }
            if (claimed) {
                host.unpin(work.extents[i]);
            }
            if (reason == DropReason.NONE) {
                work.states[i] = BlockState.PRESENT;
                result.present(1);
            } else {
                work.states[i] = BlockState.DROPPED;
                result.drop(1, reason);
            }
        }
        acceptedPublished = accepted;
        if (reason == DropReason.INDEX_FULL) {
            evict();
        }
    }

    private static DropReason reasonOf(Publication published) {
        return switch (published) {
            case FULL -> DropReason.INDEX_FULL;
            case COLLIDES -> DropReason.KEY_COLLISION;
            case PUBLISHED, PRESENT -> DropReason.NONE;
        };
    }

    /** The oldest segments go, for the saves to come; after the turn's own pins are off, for they may be in the way. */
    private void evict() {
        host.evictOldest();
        nvme.requestEviction();
    }

    /**
     * Only what admission lets in and a drive takes gets a position; the rest stays in host memory, with
     * {@link #NEVER_OFFERED}. The first block that no drive takes ends it for the call.
     */
    private void accept(Workspace work, int i, int lane, SaveResult result) {
        boolean wanted = work.admitted[i];
        if (wanted && !work.unserved) {
            long position = offer(work.extents[i], work.listing, lane);
            if (position != NEVER_OFFERED) {
                result.admitted(position);
                return;
            }
            work.unserved = true;
        }
        if (wanted) {
            counters.savedWithoutDrive.increment();
        }
        host.unpin(work.extents[i]);
        result.refused();
    }

    /**
     * The birth is written before the drive's queue can see the block, and the queue takes over the caller's pin.
     *
     * @return its position, or {@link #NEVER_OFFERED} where no drive takes it
     */
    private long offer(long extent, BlockListing listing, int lane) {
        long position = accepted + 1;
        host.listing(extent, listing).birth(position);
        if (!nvme.offer(extent, position, lane)) {
            listing.birth(NEVER_OFFERED);
            return NEVER_OFFERED;
        }
        accepted = position;
        return position;
    }

    /** Sends a pinned block to a drive that was refused when it was saved; whether one takes it. Under the writer lock. */
    boolean offerAgain(long extent, BlockListing listing, int lane) {
        boolean taken = offer(extent, listing, lane) != NEVER_OFFERED;
        acceptedPublished = accepted;
        return taken;
    }

    /** Whether the drive takes a block beside those that saves have claimed pages for. Under the writer lock. */
    boolean hasRoomOnDrive() {
        return roomOnDrive() > 0;
    }

    private int roomOnDrive() {
        int free = nvme.queueFree();
        if (waitingMax < Integer.MAX_VALUE) {
            free = Math.min(free, waitingMax - nvme.queueDepth());
        }
        return free - promised;
    }

    /**
     * Bounds the blocks that wait for the drives below what their queues hold: they keep host memory, and of a part of the
     * pool they must not keep all. Under the writer lock.
     *
     * @param blocks how many; {@link Integer#MAX_VALUE}: the queues alone
     */
    void letWait(int blocks) {
        waitingMax = blocks;
    }

    /** A full index sweeps dead runs before it refuses. */
    private Publication publishOne(Workspace work, int i) {
        Publication published = tryPublish(work, i);
        if (published == Publication.FULL && index.sweep(SWEEP_RUNS) > 0) {
            published = tryPublish(work, i);
        }
        if (published == Publication.FULL) {
            counters.indexFull.increment();
        }
        return published;
    }

    private Publication tryPublish(Workspace work, int i) {
        return index.publish(
                work.binding.indexNumber(),
                work.parent(i),
                work.parentOffset(i),
                work.keys(),
                work.keyOffset(i),
                work.blockBytes,
                work.checksums[i],
                Tier.HOST,
                work.extents[i]);
    }
}
