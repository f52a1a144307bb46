package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.recovery.LastUsedBlocks;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.HostTier;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Writes down at a clean stop which blocks host memory holds, segments that were used last first, and brings them back behind
 * the next start, from the drive, as restores do.
 */
final class LastUsed {
    /** Blocks that are brought back at once: whoever wants it to end waits for no more. */
    private static final int RUN_BLOCKS_MAX = 64;

    private static final int RUN_BYTES_MAX = 8 << 20;

    private final PrefixIndex index;
    private final HostTier host;
    private final LogListener.IndexNumbers numbers;
    private final BlockListing listing = new BlockListing();
    private final UnsafeBuffer key = new UnsafeBuffer(0, 0);
    private final UnsafeBuffer before = new UnsafeBuffer(0, 0);
    private final UnsafeBuffer parent = new UnsafeBuffer(0, 0);

    LastUsed(PrefixIndex index, HostTier host, LogListener.IndexNumbers numbers) {
        this.index = index;
        this.host = host;
        this.numbers = numbers;
    }

    // ---- at a stop: nobody else works any more ----

    /** Writes down as many as fit into so many bytes of the folder. Under the writer lock. */
    void write(DataFolder folder, long bytesMax) {
        List<Integer> segments = new ArrayList<>();
        int blocks = 0;
        for (int segment = 0; segment < host.segments(); segment++) {
            if (host.heldBlocks(segment) > 0) {
                segments.add(segment);
                blocks += host.heldBlocks(segment);
            }
        }
        segments.sort(Comparator.comparingLong(host::lastUse).reversed());
        int blocksMax = Math.min(blocks, LastUsedBlocks.blocksIn(bytesMax));
        try (LastUsedBlocks used = new LastUsedBlocks(blocksMax)) {
            for (int segment : segments) {
                add(segment, used, blocksMax);
            }
            used.write(folder);
        }
    }

    /** Adds the blocks of a segment that the index finds there, in the order in which they lie. */
    private void add(int segment, LastUsedBlocks used, int blocksMax) {
        int page = 0;
        long last = Extent.NONE;
        for (int number = 0; number < host.heldBlocks(segment) && used.count() < blocksMax; number++) {
            long extent = host.extentAt(segment, page);
            if (host.listingNumber(extent) != number
                    || !host.listing(extent, listing).isSound()) {
                return; // a place that was claimed and never filled: what lies behind it can't be told
            }
            page += Extent.pages(listing.storedBytes());
            listing.region().wrap(key, listing.offset(), PrefixIndex.KEY_BYTES);
            int namespace = numbers.of(listing.namespaceId64(), listing.namespaceEpoch());
            if (namespace >= 0 && index.holds(namespace, key, 0, Tier.HOST, extent)) {
                used.add(
                        listing.region(),
                        listing.offset(),
                        listing.namespaceId64(),
                        listing.namespaceEpoch(),
                        isNextBehind(last));
                last = extent;
            }
            if (page >= host.segmentBytes() / MemoryRegion.PAGE_BYTES) {
                return;
            }
        }
    }

    /** Whether the block of the listing is the next of its prompt behind another one of its namespace. */
    private boolean isNextBehind(long other) {
        if (other == Extent.NONE || !listing.hasParent()) {
            return false;
        }
        long id64 = listing.namespaceId64();
        listing.region().wrap(parent, listing.parentOffset(), PrefixIndex.KEY_BYTES);
        long here = listing.offset();
        host.listing(other, listing);
        listing.region().wrap(before, listing.offset(), PrefixIndex.KEY_BYTES);
        boolean isNext = id64 == listing.namespaceId64() && parent.equals(before);
        listing.wrap(listing.region(), here);
        return isNext;
    }

    // ---- behind a start ----

    /** Whether host memory takes the blocks of a run without evicting any. Under the writer lock. */
    boolean hasRoom(Run run, int paddedBytes) {
        return host.freeBytes() >= (long) run.count * paddedBytes + (long) host.lanes() * host.segmentBytes();
    }

    /** Where the blocks of a run go through. */
    static final class Run implements AutoCloseable {
        final LastUsedBlocks used;
        final UnsafeBuffer keys = new UnsafeBuffer(0, 0);
        final MemoryRegion keyMemory = MemoryRegion.anonymous(
                (long) RUN_BLOCKS_MAX * PrefixIndex.KEY_BYTES, PageKind.SMALL, MemoryPurpose.STAGING);
        final Blocks into = Blocks.unset();
        int first;
        int count;

        /** How many of them are in host memory now. */
        int restored;

        private MemoryRegion memory;

        /** Nothing yet of what was used; owned from here on. */
        Run(LastUsedBlocks used) {
            this.used = used;
            keyMemory.wrap(keys, 0, RUN_BLOCKS_MAX * PrefixIndex.KEY_BYTES);
        }

        /** Moves to the blocks that follow one another from one on; whether there are any. */
        boolean next(int from) {
            first = from;
            count = 0;
            restored = 0;
            while (first + count < used.count()
                    && count < RUN_BLOCKS_MAX
                    && (count == 0 || used.goesOn(first + count))) {
                used.copyKey(first + count, keyMemory, (long) count * PrefixIndex.KEY_BYTES);
                count++;
            }
            return count > 0;
        }

        /** Room for blocks of a size; as many of the run as fit stay in it. */
        void makeRoom(int blockBytes) {
            count = Math.min(count, Math.max(1, RUN_BYTES_MAX / blockBytes));
            if (memory == null || memory.bytes() < (long) count * blockBytes) {
                MemoryRegion old = memory;
                memory = MemoryRegion.anonymous(
                        Math.max(RUN_BYTES_MAX, blockBytes), PageKind.SMALL, MemoryPurpose.STAGING);
                if (old != null) {
                    old.close();
                }
            }
            into.set(memory, 0);
        }

        @Override
        public void close() {
            used.close();
            keyMemory.close();
            if (memory != null) {
                memory.close();
            }
        }
    }
}
