package io.orbitkv.bench.simulate;

/**
 * A store to simulate: host memory and a drive, or one of them.
 *
 * @param host how host memory is cut, or null for none
 * @param nvme how the drive is cut, or null for none
 * @param hostOrder what leaves host memory
 * @param nvmeOrder what leaves the drive
 * @param admission what is written to the drive
 * @param price what a written block costs in the duel, in blocks of compute saved
 */
public record StoreShape(
        SegmentShape host,
        SegmentShape nvme,
        SegmentOrder hostOrder,
        SegmentOrder nvmeOrder,
        AdmissionRule admission,
        double price) {
    /** Checks that there is a tier. */
    public StoreShape {
        if (host == null && nvme == null) {
            throw new IllegalArgumentException("a store needs host memory or a drive");
        }
    }

    /** What is written to the drive. */
    public enum AdmissionRule {
        /** Everything that is saved. */
        ALL,
        /** What is used a second time. */
        REUSE,
        /** One of the two, whichever scores better in a sample. */
        DUEL
    }
}
