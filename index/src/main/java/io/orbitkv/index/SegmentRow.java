package io.orbitkv.index;

/**
 * A segment of the log as the catalog last heard of it; the log itself wins where they differ.
 *
 * @param segment its number
 * @param useSequence which use of the segment this is about
 * @param state how far that use had come
 * @param blocks blocks in it, dead ones included
 * @param payloadPages pages of their payloads
 * @param overheadPages all other pages: header, batch headers, footer, unused tail
 */
public record SegmentRow(int segment, long useSequence, State state, int blocks, int payloadPages, int overheadPages) {
    /** How far the use of a segment has come. */
    public enum State {
        /** Holds nothing. */
        FREE,
        /** Takes batches. */
        OPEN,
        /** Ended with a footer. */
        SEALED,
        /** Sealed, and everything in it was flushed: a power loss can't take it away. */
        DURABLE,
        /** Has no pages on the drive, and no blocks: it was given up for the cap. */
        ABSENT
    }
}
