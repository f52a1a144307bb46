package io.orbitkv.recovery;

/** Why a listed block of the log was not indexed. */
public enum DeadReason {
    /** A later listing of the same key replaced it. */
    SUPERSEDED,
    /** Its namespace was cleared after it was accepted. */
    CLEARED,
    /** The catalog does not know its namespace. */
    UNKNOWN_NAMESPACE,
    /** It was found wrong earlier. */
    QUARANTINED,
    /** Its bytes do not match its checksum. */
    WRONG_BYTES,
    /** The index had no room for it. */
    INDEX_FULL,
    /** It was evicted from the index before the clean stop; only a snapshot can tell. */
    EVICTED
}
