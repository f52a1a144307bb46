package io.orbitkv.manager;

import io.orbitkv.store.BlockEvents;

/** Blocks that a walk over the store met. Reused. One thread. */
final class BlocksSeen implements BlockEvents.Visitor {
    /** The most that one step of a walk meets. */
    static final int STEP_BLOCKS_MAX = 1024;

    /** Steps of a walk that one answer takes at most: an index that is nearly empty is walked all the same. */
    static final int STEPS_MAX = 256;

    static final int BLOCKS_MAX = 8 * STEP_BLOCKS_MAX;

    private final byte[][] familyIds = new byte[BLOCKS_MAX][];
    private final int[] shards = new int[BLOCKS_MAX];
    private final long[] heads = new long[2 * BLOCKS_MAX];
    private int count;

    BlocksSeen clear() {
        count = 0;
        return this;
    }

    boolean hasRoom() {
        return count + STEP_BLOCKS_MAX <= BLOCKS_MAX;
    }

    @Override
    public void block(byte[] familyId, int shard, long key0, long key1) {
        familyIds[count] = familyId;
        shards[count] = shard;
        heads[2 * count] = key0;
        heads[2 * count + 1] = key1;
        count++;
    }

    int count() {
        return count;
    }

    byte[] familyId(int i) {
        return familyIds[i];
    }

    int shard(int i) {
        return shards[i];
    }

    /** Byte {@code b} of the key, of its first 16. */
    short headByte(int i, int b) {
        return Wire.keyByte(heads, 2 * i, b);
    }
}
