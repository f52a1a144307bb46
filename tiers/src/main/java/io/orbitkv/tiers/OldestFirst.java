package io.orbitkv.tiers;

/** Chooses the sealed segment that was put to use first. */
final class OldestFirst {
    /** What {@link #choose} answers when no segment is sealed. */
    static final int NONE = -1;

    /** The next victim, or {@link #NONE}. Looks at every segment: about a nanosecond each, once a segment's life. */
    int choose(SegmentTable table) {
        int oldest = NONE;
        long smallest = Long.MAX_VALUE;
        for (int segment = 0; segment < table.segments(); segment++) {
            if (table.isSealed(segment) && table.useSequence(segment) < smallest) {
                smallest = table.useSequence(segment);
                oldest = segment;
            }
        }
        return oldest;
    }
}
