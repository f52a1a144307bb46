package io.orbitkv.store;

import io.orbitkv.index.Family;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
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
     * @throws OrbitKvException {@link ErrorCode#BAD_ARGUMENT} for another number
     */
    public ShardHandle shard(int number) {
        if (number < 0 || number >= shards.size()) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    family + " has shards 0 to " + (shards.size() - 1) + ", asked for " + number
                            + (family.replicated() ? "; its ranks share one shard a pipeline stage" : ""));
        }
        return shards.get(number);
    }

    KvStore store() {
        return store;
    }
}
