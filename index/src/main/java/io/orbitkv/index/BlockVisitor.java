package io.orbitkv.index;

/** Takes the blocks of a {@link PrefixIndex} one by one, for the snapshot. */
@FunctionalInterface
public interface BlockVisitor {
    /**
     * One block with a live extent on NVMe.
     *
     * @param namespace the index's number of its namespace
     * @param continuesRun whether it follows the block visited before in the same run
     * @param key0 bytes 0 to 7 of its key, little-endian
     * @param tag bytes 8 to 15 of its key, little-endian
     * @param extent its extent on NVMe
     * @param bytes its stored bytes
     * @param checksum over its key and stored bytes
     * @param depth blocks before it in its prefix, as far as the index knew them when it was published
     */
    void block(
            int namespace, boolean continuesRun, long key0, long tag, long extent, int bytes, int checksum, int depth);
}
