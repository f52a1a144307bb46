package io.orbitkv.recovery;

/** What a listed block of the log is worth. */
public enum BlockState {
    /** It is the block that a query finds. */
    INDEXED,
    /** A later listing of the same key replaced it. */
    SUPERSEDED,
    /** Its namespace was cleared after it was accepted. */
    CLEARED,
    /** The catalog does not know its namespace, or not yet at this epoch. */
    UNKNOWN_NAMESPACE,
    /** It was found wrong earlier, and is never used again. */
    QUARANTINED,
    /** Given up: its segment is free by the catalog, or the clean stop's snapshot has it no more. */
    EVICTED,
    /** Listed by a use of its segment that has ended: its bytes may be another block's by now. */
    STALE_USE
}
