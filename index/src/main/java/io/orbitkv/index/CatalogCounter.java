package io.orbitkv.index;

/** Numbers that must survive. The order is the order on the drive: append only. */
public enum CatalogCounter {
    /** The store's epoch: raised by each opening. */
    EPOCH,
    /** No position at or above this one was ever handed out. */
    NEXT_POSITION,
    /** No use-sequence at or above this one was ever given to a segment. */
    NEXT_USE_SEQUENCE,
    /** Clean stops. */
    CLEAN_STOPS,
    /** Openings that found no clean stop: the process was killed. */
    KILLS,
    /** Openings that found no clean stop and another boot of the machine. */
    POWER_LOSSES,
    /** Blocks whose bytes were found wrong. */
    WRONG_BLOCKS,
    /** Scoped clears. */
    CLEARS,
    /** Commits, over all folders alike; 0 where there is one folder only. */
    COMMITS,
    /** A number of chance that only the last commit has; the same in all folders once it is done. */
    STAMP,
    /** The stamp of the commit before: what a folder has that a death kept the last commit from. */
    STAMP_BEFORE
}
