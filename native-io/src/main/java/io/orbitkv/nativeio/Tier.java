package io.orbitkv.nativeio;

/** Where a block can lie. */
public enum Tier {
    /** Segments of host memory. */
    HOST,
    /** Segments of files on a drive. */
    NVME
}
