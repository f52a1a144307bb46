package io.orbitkv.tiers;

/** What a decoder found in pages of a drive. Only {@link #VALID} may be used; everything else names the reason. */
public enum Verdict {
    /** Everything checks out. */
    VALID,
    /** Not ours at all: the magic is not there (zeros, payload, somebody else's bytes). */
    ABSENT,
    /** Ours, but the checksum does not match: torn, rotten, or being written. */
    TORN,
    /** Whole, but of another format version. */
    OTHER_VERSION,
    /** Whole, but of another store. */
    OTHER_STORE,
    /** Whole, but it says that it belongs to another segment, or to segments of another size. */
    OTHER_SEGMENT,
    /** Whole, but of another use of the segment: left over from before. */
    OTHER_USE,
    /** Whole and of this use, but not the batch that comes next. */
    OTHER_BATCH,
    /** Whole, but its fields contradict each other or the geometry. */
    MALFORMED
}
