package io.orbitkv.recovery;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.tiers.LogGeometry;

/** Makes the index that an opening fills, once the sizes of the log are known. */
@FunctionalInterface
public interface IndexFactory {
    /**
     * Makes an empty index. Its NVMe generations must have one for each segment of the log, all at their first value:
     * extents of recovered blocks carry generation 1. May be called twice, when a snapshot proves bad after all: the
     * first index was closed then.
     */
    PrefixIndex create(LogGeometry geometry);
}
