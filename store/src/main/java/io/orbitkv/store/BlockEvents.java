package io.orbitkv.store;

/**
 * Is told which blocks a store holds: what comes, what has gone, in order; see {@link KvStore#listen}. Each call comes with
 * the store's writer lock held: it must not wait, throw, or call the store.
 *
 * <p>A block is named by family, shard, and the first 16 bytes of its key, little-endian; a store holds no two keys of one
 * shard that agree in them.
 */
public interface BlockEvents {
    /**
     * A block is stored. May be told again of one that is; then the last two parts of its key are 0.
     *
     * @param familyId the family's id, 32 bytes; not to be changed
     * @param shard the shard's number in the family
     * @param key0 bytes 0 to 7 of its key
     * @param key1 bytes 8 to 15
     * @param key2 bytes 16 to 23
     * @param key3 bytes 24 to 31
     */
    void stored(byte[] familyId, int shard, long key0, long key1, long key2, long key3);

    /**
     * A block can be restored from no tier any more. Told behind the fact, by a sweep of the index that the fact has set off.
     *
     * @param familyId the family's id, 32 bytes; not to be changed
     * @param shard the shard's number in the family
     * @param key0 bytes 0 to 7 of its key
     * @param key1 bytes 8 to 15
     */
    void removed(byte[] familyId, int shard, long key0, long key1);

    /** All blocks of a family were forgotten. */
    void cleared(byte[] familyId);

    /**
     * More came or went at once than is told one by one: the index is whole, a drive went out of service or came back. Whoever
     * keeps a picture begins anew, with {@link KvStore#visitBlocks}.
     */
    void begunAnew();

    /** Takes blocks that are stored. */
    @FunctionalInterface
    interface Visitor {
        /** A block, by the first 16 bytes of its key. */
        void block(byte[] familyId, int shard, long key0, long key1);
    }
}
