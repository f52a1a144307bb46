package io.orbitkv.recovery;

/** How the life of the store before this one ended. */
public enum OpeningKind {
    /** There was none: the folder was made now. */
    FRESH,
    /** By a clean stop, and its snapshot was loaded. */
    CLEAN,
    /** Otherwise, and the machine has been up since: what was handed to the drive is there. */
    KILL,
    /** Otherwise, and the machine went down since: only what was flushed is sure to be there. */
    POWER_LOSS
}
