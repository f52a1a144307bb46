package io.orbitkv.tiers;

/** How one read of a batch ended. */
public enum ReadResult {
    /** Not yet, or its batch was never submitted. */
    PENDING,
    /** The pages are there. The drive may have kept other bytes than were written: check them. */
    DONE,
    /** The segment has another life by now: nothing was read. Can't happen to a block that was pinned in time. */
    STALE,
    /** The drive answered with an error. */
    FAILED
}
