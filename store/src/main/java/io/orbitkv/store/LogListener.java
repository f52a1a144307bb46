package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.HostTier;
import io.orbitkv.tiers.NvmeListener;
import io.orbitkv.tiers.SegmentState;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.concurrent.UnsafeBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Carries what the log has done into the index and the book of segments. Called on the threads of the drives' logs. */
final class LogListener implements NvmeListener {
    private static final Logger LOG = LoggerFactory.getLogger(LogListener.class);

    private final Object writerLock;
    private final PrefixIndex index;
    private final HostTier host;
    private final SegmentBook segments;
    private final IndexNumbers numbers;
    private final BlockListing listing = new BlockListing();
    private final UnsafeBuffer key = new UnsafeBuffer(0, 0);
    private final AtomicLong reclaimed = new AtomicLong();

    /** Finds the index number of a namespace at an epoch; called under the writer lock. */
    interface IndexNumbers {
        /** The number, or -1 where a clear has retired it. */
        int of(long namespaceId64, int epoch);
    }

    LogListener(Object writerLock, PrefixIndex index, HostTier host, SegmentBook segments, IndexNumbers numbers) {
        this.writerLock = writerLock;
        this.index = index;
        this.host = host;
        this.segments = segments;
        this.numbers = numbers;
    }

    /** The index learns where the blocks lie now, unless they have left host memory's place or were cleared. */
    @Override
    public void onBatchWritten(long[] hostExtents, long[] nvmeExtents, int count) {
        synchronized (writerLock) {
            for (int i = 0; i < count; i++) {
                host.listing(hostExtents[i], listing);
                int number = numbers.of(listing.namespaceId64(), listing.namespaceEpoch());
                if (number >= 0) {
                    listing.region().wrap(key, listing.offset(), PrefixIndex.KEY_BYTES);
                    index.place(number, key, 0, Tier.HOST, hostExtents[i], Tier.NVME, nvmeExtents[i]);
                }
            }
        }
    }

    @Override
    public boolean isWanted(BlockListing block, long extent) {
        synchronized (writerLock) {
            int number = numbers.of(block.namespaceId64(), block.namespaceEpoch());
            block.region().wrap(key, block.offset(), PrefixIndex.KEY_BYTES);
            return number >= 0 && index.holds(number, key, 0, Tier.NVME, extent);
        }
    }

    @Override
    public void onBlockMoved(BlockListing block, long from, long to) {
        synchronized (writerLock) {
            int number = numbers.of(block.namespaceId64(), block.namespaceEpoch());
            if (number >= 0) {
                block.region().wrap(key, block.offset(), PrefixIndex.KEY_BYTES);
                index.place(number, key, 0, Tier.NVME, from, Tier.NVME, to);
            }
        }
    }

    @Override
    public void onSegment(
            int segment, long useSequence, SegmentState state, int blocks, int payloadPages, int overheadPages) {
        if (state == SegmentState.FREE) {
            reclaimed.incrementAndGet();
        }
        segments.note(segment, useSequence, state, blocks, payloadPages, overheadPages);
    }

    @Override
    public void onFailure(OrbitKvException failure) {
        LOG.error("the log of a drive has failed: nothing is written there, host memory is still served", failure);
    }

    /** Segments that the log has given up since the store was opened. */
    long reclaimedSegments() {
        return reclaimed.get();
    }
}
