package io.orbitkv.tiers;

/**
 * Chooses the segment that was sealed first. Not the one that was put to use first: a lane that gets few blocks keeps its
 * segment open for long, and what it got last is young.
 */
final class OldestFirst {
    /** What {@link #choose} answers when no segment is sealed. */
    static final int NONE = -1;

    /** The next victim, or {@link #NONE}. Looks at every segment: about a nanosecond each, once a segment's life. */
    int choose(SegmentTable table) {
        int oldest = NONE;
        long smallest = Long.MAX_VALUE;
        for (int segment = 0; segment < table.segments(); segment++) {
            if (table.isSealed(segment) && table.sealOrder(segment) < smallest) {
                smallest = table.sealOrder(segment);
                oldest = segment;
            }
        }
        return oldest;
    }
}
