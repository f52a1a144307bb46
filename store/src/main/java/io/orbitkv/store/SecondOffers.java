package io.orbitkv.store;

import io.orbitkv.index.Match;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.BlockListing;
import org.agrona.MutableDirectBuffer;

/** Offers blocks to the drive that were refused when they were saved. One thread. */
final class SecondOffers implements Admission.SecondOffer {
    private final Object writerLock;
    private final PrefixIndex index;
    private final SavePath saves;
    private final LogListener.IndexNumbers numbers;
    private final Match found = Match.ofExtents(1);
    private final BlockListing listing = new BlockListing();

    SecondOffers(Object writerLock, PrefixIndex index, SavePath saves, LogListener.IndexNumbers numbers) {
        this.writerLock = writerLock;
        this.index = index;
        this.saves = saves;
        this.numbers = numbers;
    }

    @Override
    public boolean offer(long namespaceId64, int epoch, MutableDirectBuffer keys, int keyOffset) {
        int number;
        synchronized (writerLock) {
            number = numbers.of(namespaceId64, epoch);
        }
        // Most blocks that are found stored lie on the drive: a look without the lock tells.
        return number >= 0
                && index.match(number, keys, keyOffset, 1, found) == 1
                && found.extent(Tier.NVME, 0) == Extent.NONE
                && saves.offerAgain(number, keys, keyOffset, found, listing);
    }
}
