package io.orbitkv.store;

import io.orbitkv.index.Match;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.HostTier;
import org.agrona.DirectBuffer;

/** Offers blocks to the drive that were refused when they were saved. One thread. */
final class SecondOffers implements Admission.SecondOffer {
    private final Object writerLock;
    private final PrefixIndex index;
    private final HostTier host;
    private final SavePath saves;
    private final LogListener.IndexNumbers numbers;
    private final Match found = Match.ofExtents(1);
    private final BlockListing listing = new BlockListing();

    // What the next blocks are of.
    private long id64;
    private int epoch;
    private int number;

    SecondOffers(
            Object writerLock, PrefixIndex index, HostTier host, SavePath saves, LogListener.IndexNumbers numbers) {
        this.writerLock = writerLock;
        this.index = index;
        this.host = host;
        this.saves = saves;
        this.numbers = numbers;
    }

    @Override
    public void begin(long namespaceId64, int namespaceEpoch) {
        id64 = namespaceId64;
        epoch = namespaceEpoch;
        synchronized (writerLock) {
            number = numbers.of(namespaceId64, namespaceEpoch);
        }
    }

    @Override
    public boolean offer(DirectBuffer keys, int keyOffset) {
        // Most blocks that are found stored lie on the drive: a look without the lock tells.
        return number >= 0 && liesInHostOnly(keys, keyOffset) && offerNow(keys, keyOffset);
    }

    private boolean liesInHostOnly(DirectBuffer keys, int keyOffset) {
        return index.match(number, keys, keyOffset, 1, found) == 1 && found.extent(Tier.NVME, 0) == Extent.NONE;
    }

    private boolean offerNow(DirectBuffer keys, int keyOffset) {
        synchronized (writerLock) {
            if (!saves.hasRoomOnDrive() || !liesInHostOnly(keys, keyOffset)) {
                return false;
            }
            long extent = found.extent(Tier.HOST, 0);
            if (!host.pin(extent)) {
                return false;
            }
            if (!isRefused(extent, keys, keyOffset)) {
                host.unpin(extent);
                return false;
            }
            if (!saves.offerAgain(extent, listing, host.laneFor(extent, keys.getLong(keyOffset)))) {
                host.unpin(extent);
                return false;
            }
            return true;
        }
    }

    /** The block is the one meant, and not on its way to the drive already. */
    private boolean isRefused(long extent, DirectBuffer keys, int keyOffset) {
        host.listing(extent, listing);
        return listing.birth() == SavePath.NEVER_OFFERED
                && listing.sameKey(keys, keyOffset)
                && listing.namespaceId64() == id64
                && listing.namespaceEpoch() == epoch;
    }
}
