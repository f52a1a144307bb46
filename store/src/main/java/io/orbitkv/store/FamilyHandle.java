package io.orbitkv.store;

import io.orbitkv.index.Family;
import java.util.List;

/** An open family: blocks whose bytes are compatible. Valid until the store is closed; safe from any thread. */
public final class FamilyHandle {
    private final KvStore store;
    private final Family family;
    private List<ShardHandle> shards = List.of();

    FamilyHandle(KvStore store, Family family) {
        this.store = store;
        this.family = family;
    }

    void shards(List<ShardHandle> handles) {
        shards = List.copyOf(handles);
    }

    /** What makes its blocks compatible. */
    public Family family() {
        return family;
    }

    /** How many shards a block has; 1 where all ranks hold the same bytes. */
    public int shards() {
        return shards.size();
    }

    /**
     * One of its shards.
     *
     * @param number from 0 to {@link #shards()} - 1
     */
    public ShardHandle shard(int number) {
        return shards.get(number);
    }

    KvStore store() {
        return store;
    }
}
