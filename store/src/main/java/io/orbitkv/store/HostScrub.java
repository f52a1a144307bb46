package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.HostTier;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Reads host memory again: every block of every segment that nobody fills, one block at a time under a short pin. What is
 * given up meanwhile, and what the index does not look for any more, is no damage. One thread; counters from any.
 */
final class HostScrub {
    /** Looking at a segment costs about as much as so many bytes: an empty pool is not walked in circles. */
    private static final long LOOK_BYTES = 4096;

    private final Object writerLock;
    private final HostTier host;
    private final Quarantine quarantine;
    private final LogListener.IndexNumbers numbers;
    private final BlockListing listing = new BlockListing();
    private final BlockChecksum checksum = new BlockChecksum();
    private final UnsafeBuffer key = new UnsafeBuffer(0, 0);

    private int segment;
    private int blocks;
    private int next;
    private int page;
    private long life;

    final AtomicLong bytes = new AtomicLong();
    final AtomicLong found = new AtomicLong();
    final AtomicLong passes = new AtomicLong();

    HostScrub(Object writerLock, HostTier host, Quarantine quarantine, LogListener.IndexNumbers numbers) {
        this.writerLock = writerLock;
        this.host = host;
        this.quarantine = quarantine;
        this.numbers = numbers;
    }

    double progress() {
        return (double) segment / host.segments();
    }

    /** Looks at the next block, or for the next segment; how many bytes that cost. */
    long step() {
        if (next >= blocks) {
            return beginSegment();
        }
        if (!host.pin(life)) {
            next = blocks; // given up
            return LOOK_BYTES;
        }
        try {
            return check(Extent.pack(segment, page, Extent.generation(life)));
        } finally {
            host.unpin(life);
        }
    }

    private long beginSegment() {
        if (blocks >= 0 && ++segment >= host.segments()) {
            segment = 0;
            passes.incrementAndGet();
        }
        synchronized (writerLock) {
            blocks = host.restingBlocks(segment);
            life = host.extentAt(segment, 0);
        }
        next = 0;
        page = 0;
        return LOOK_BYTES;
    }

    private long check(long extent) {
        if (host.listingNumber(extent) != next) {
            next = blocks; // a place that was claimed and never filled: what lies behind it can't be told
            return LOOK_BYTES;
        }
        host.listing(extent, listing);
        int stored = listing.storedBytes();
        long end = (long) page + Extent.pages(stored);
        if (stored < 1 || end * io.orbitkv.nativeio.MemoryRegion.PAGE_BYTES > host.segmentBytes()) {
            next = blocks;
            return LOOK_BYTES;
        }
        next++;
        page = (int) end;
        checksum.reset().update(listing.region(), listing.offset(), PrefixIndex.KEY_BYTES);
        checksum.update(host.memory(), host.payloadOffset(extent), stored);
        bytes.addAndGet(stored);
        if (checksum.value() != listing.checksum()) {
            drop(extent);
        }
        if (page >= host.segmentBytes() / io.orbitkv.nativeio.MemoryRegion.PAGE_BYTES) {
            next = blocks;
        }
        return stored;
    }

    private void drop(long extent) {
        int number;
        synchronized (writerLock) {
            number = numbers.of(listing.namespaceId64(), listing.namespaceEpoch());
        }
        listing.region().wrap(key, listing.offset(), PrefixIndex.KEY_BYTES);
        if (number >= 0 && quarantine.dropFound(number, key, Tier.HOST, extent, "host memory (scrub)")) {
            found.incrementAndGet();
        }
    }
}
