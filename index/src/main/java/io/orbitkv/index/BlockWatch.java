package io.orbitkv.index;

/**
 * Is told by a {@link PrefixIndex} which blocks come into it and which have left their last tier, in order. Called by the
 * index's one writer, with the store's writer lock held: it must not wait, nor call the index.
 *
 * <p>The index knows the first 16 bytes of a key, its head, and holds no two keys of a namespace that begin with the same 8
 * bytes: a head names one block.
 */
public interface BlockWatch {
    /**
     * A block is in the index now. Told again for one that is, where its run was moved: a walk may have missed it.
     *
     * @param namespace the index's number of its namespace
     * @param key0 bytes 0 to 7 of its key, little-endian
     * @param key1 bytes 8 to 15
     * @param key2 bytes 16 to 23; 0 where it is told again
     * @param key3 bytes 24 to 31; 0 where it is told again
     */
    void stored(int namespace, long key0, long key1, long key2, long key3);

    /**
     * A block lies in no tier any more. Told as soon as somebody looks at its place, a sweep at the latest; not for blocks of a
     * namespace that was retired.
     *
     * @param namespace the index's number of its namespace
     * @param key0 bytes 0 to 7 of its key, little-endian
     * @param key1 bytes 8 to 15
     */
    void removed(int namespace, long key0, long key1);

    /** Whether blocks at an extent of NVMe can be read now: its drive may be out of service. */
    boolean serves(long nvmeExtent);

    /** Takes the blocks that a walk over the index meets; see {@link PrefixIndex#walk}. */
    @FunctionalInterface
    interface Visitor {
        /** A block that lies in some tier, by the head of its key. */
        void block(int namespace, long key0, long key1);
    }
}
