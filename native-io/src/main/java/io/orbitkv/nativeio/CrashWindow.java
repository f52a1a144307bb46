package io.orbitkv.nativeio;

/** Stretches of work in which a crash is most interesting: tests count how often they hit each. */
public enum CrashWindow {
    /** Payloads or header page of a batch are being written. */
    BATCH_WRITE,
    /** A footer is being written. */
    SEAL,
    /** A segment was unlinked and its new header is not durable yet. */
    SEGMENT_REUSE,
    /** Used blocks of a segment are being appended again, and are not all durable in their new places. */
    REAPPEND,
    /** A transaction of the catalog is being committed. */
    CATALOG_COMMIT,
    /** A snapshot or its marker is being written or removed. */
    SNAPSHOT,
    /** The marker that makes a snapshot count is being written, or removed, in one folder after the other. */
    SNAPSHOT_MARKER,
    /** A scoped clear is between its request and its commit. */
    CLEAR,
    /** Blocks of earlier lives are being indexed, beside a store that serves already. */
    FILL,
    /** Segments are given back to the file system or taken from it, or the cap is being changed. */
    CAP_CHANGE
}
