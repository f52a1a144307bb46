package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.HostTier;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Appends the used blocks of host segments again before these are given up. Whoever has claimed pages, and so may have
 * chosen a victim, does it on its own thread, outside of the writer lock but for claims and index; one at a time.
 */
final class HostMover {
    /** Most victims that one call works on: those that its own claims may have chosen, and as many again. */
    private static final int VICTIMS_MAX = 4;

    /** Blocks that are claimed and noted under the lock at once. */
    private static final int BLOCKS_MAX = 32;

    private final Object writerLock;
    private final PrefixIndex index;
    private final HostTier host;
    private final Counters counters;
    private final LogListener.IndexNumbers numbers;

    // Used by the one who has begun a move.
    private final long[] from = new long[BLOCKS_MAX];
    private final long[] to = new long[BLOCKS_MAX];
    private final int[] numberOf = new int[BLOCKS_MAX];
    private final BlockListing listing = new BlockListing();
    private final BlockListing copy = new BlockListing();
    private final UnsafeBuffer key = new UnsafeBuffer(0, 0);
    private int claimed;
    private int nextPage;
    private int left;

    HostMover(
            Object writerLock, PrefixIndex index, HostTier host, Counters counters, LogListener.IndexNumbers numbers) {
        this.writerLock = writerLock;
        this.index = index;
        this.host = host;
        this.counters = counters;
        this.numbers = numbers;
    }

    /** Works on victims that wait, if nobody else does. */
    void run() {
        for (int victims = 0; victims < VICTIMS_MAX && host.hasMoves(); victims++) {
            int segment;
            synchronized (writerLock) {
                segment = host.beginMove();
            }
            if (segment < 0) {
                return;
            }
            move(segment);
        }
    }

    private void move(int segment) {
        nextPage = 0;
        left = 0;
        boolean more = true;
        try {
            while (more) {
                synchronized (writerLock) {
                    more = claim(segment);
                }
                for (int i = 0; i < claimed; i++) {
                    copy(i);
                }
                synchronized (writerLock) {
                    place();
                }
            }
        } finally {
            synchronized (writerLock) {
                host.endMove(segment, left);
            }
        }
    }

    /** Claims pages for the next used blocks; whether there may be more of them. */
    private boolean claim(int segment) {
        claimed = 0;
        while (claimed < BLOCKS_MAX) {
            long extent = host.nextUsed(segment, nextPage);
            if (extent == Extent.NONE) {
                return false;
            }
            nextPage = Extent.page(extent) + 1;
            host.listing(extent, listing);
            int number = numbers.of(listing.namespaceId64(), listing.namespaceEpoch());
            listing.region().wrap(key, listing.offset(), PrefixIndex.KEY_BYTES);
            if (number < 0 || !index.holds(number, key, 0, Tier.HOST, extent)) {
                continue; // cleared, or a claim that was given up
            }
            long target = host.claimAgain(listing.storedBytes());
            if (target == Extent.NONE) {
                left++;
                continue;
            }
            from[claimed] = extent;
            to[claimed] = target;
            numberOf[claimed++] = number;
        }
        return true;
    }

    private void copy(int i) {
        host.listing(from[i], listing);
        host.listing(to[i], copy).set(listing);
        MemoryRegion pool = host.memory();
        pool.copyFrom(
                host.payloadOffset(to[i]),
                pool,
                host.payloadOffset(from[i]),
                (long) listing.pages() * MemoryRegion.PAGE_BYTES);
    }

    private void place() {
        for (int i = 0; i < claimed; i++) {
            host.listing(to[i], copy);
            copy.region().wrap(key, copy.offset(), PrefixIndex.KEY_BYTES);
            if (index.place(numberOf[i], key, 0, Tier.HOST, from[i], Tier.HOST, to[i])) {
                counters.reappendedHostBlocks.increment();
                counters.reappendedHostBytes.add(copy.storedBytes());
            }
            host.unpin(to[i]);
        }
    }
}
