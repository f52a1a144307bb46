package io.orbitkv.index;

/**
 * A place whose bytes were found wrong, and which is never indexed again in that use of its segment.
 *
 * @param segment the segment's number
 * @param useSequence which use of the segment
 * @param page the block's first page in it
 * @param key0 the first 8 bytes of the block's key, as a little-endian number
 * @param atMillis when it was found, in milliseconds since 1970
 */
public record QuarantineRow(int segment, long useSequence, int page, long key0, long atMillis) {}
