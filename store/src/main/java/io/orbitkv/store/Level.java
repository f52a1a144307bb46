package io.orbitkv.store;

/** How safe a saved block is. */
public enum Level {
    /** On the drive as far as the kernel is concerned: it survives a kill of the process. */
    WRITTEN,
    /** Flushed: it survives a power loss. */
    DURABLE
}
