package io.orbitkv.bench.simulate;

import io.orbitkv.store.StoreGeometry;
import io.orbitkv.tiers.AdmissionPolicy;
import io.orbitkv.tiers.EvictionPolicy;

/**
 * A store to simulate: host memory and a drive, or one of them.
 *
 * @param host how host memory is cut, or null for none
 * @param nvme how the drive is cut, or null for none
 * @param hostOrder what leaves host memory
 * @param nvmeOrder what leaves the drive
 * @param admission what is written to the drive
 * @param price what a written block costs in the duel, in blocks of compute saved
 * @param queueBlocks blocks that wait for the drive at any time, in host memory
 */
public record StoreShape(
        SegmentShape host,
        SegmentShape nvme,
        EvictionPolicy hostOrder,
        EvictionPolicy nvmeOrder,
        AdmissionPolicy admission,
        double price,
        int queueBlocks) {
    /** A replay without pauses keeps about a quarter of a store's write queue full. */
    private static final int QUEUE_PART = 4;

    /** Checks that there is a tier. */
    public StoreShape {
        if (host == null && nvme == null) {
            throw new IllegalArgumentException("a store needs host memory or a drive");
        }
    }

    /**
     * The shape of a real store.
     *
     * @param geometry how it is cut
     * @param blockBytes bytes of a block
     * @param order what leaves both of its tiers
     * @param admission what it writes to the drive
     * @param price what a written block costs in the duel
     * @return its shape
     */
    public static StoreShape of(
            StoreGeometry geometry, int blockBytes, EvictionPolicy order, AdmissionPolicy admission, double price) {
        int lanes = geometry.openSegments();
        return new StoreShape(
                SegmentShape.host(geometry.hostSegments(), geometry.hostSegmentBytes(), blockBytes, lanes),
                SegmentShape.log(geometry.logSegments(), geometry.logSegmentBytes(), blockBytes, lanes),
                order,
                order,
                admission,
                price,
                geometry.writeQueueBlocks() / QUEUE_PART);
    }

    /**
     * The same store when every request finds all before it written.
     *
     * @return its shape
     */
    public StoreShape withoutQueue() {
        return new StoreShape(host, nvme, hostOrder, nvmeOrder, admission, price, 0);
    }
}
