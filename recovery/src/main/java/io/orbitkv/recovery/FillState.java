package io.orbitkv.recovery;

/** How far the index of an opened store is. */
public enum FillState {
    /** Blocks of earlier lives are still being indexed: one that is missed may be there in a moment. */
    FILLING,
    /** All is indexed that the log holds. */
    WHOLE,
    /** Filling has ended early, for a reason that {@link IndexFill#failure()} names: what is indexed is served. */
    FAILED
}
