package io.orbitkv.store;

/** How a store stands to its cap. */
public enum CapCondition {
    /** It has what the cap gives it. */
    WITHIN,
    /** It takes more than the cap, or than foreign files leave of it, and is giving segments up. */
    SHRINKING,
    /** The cap has room for more segments, and it is taking their pages. */
    GROWING,
    /** The cap has room for more segments, and the drive has not; it is tried again. */
    DRIVE_FULL,
    /** The cap, or what foreign files leave of it, holds too few segments: nothing is written, host memory serves. */
    STARVED,
    /** The file system takes no pages back, so the store can't become smaller. */
    CANNOT_SHRINK
}
