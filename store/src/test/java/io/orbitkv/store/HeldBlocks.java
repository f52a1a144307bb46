package io.orbitkv.store;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;

/** What a listener believes that a store holds: it begins with a walk, and begins anew when it is told to. */
final class HeldBlocks implements BlockEvents {
    private record Block(String family, int shard, long key0, long key1) {}

    private record Told(Block block, boolean isStored) {}

    private final KvStore store;
    private final Set<Block> held = new HashSet<>();
    private final List<Told> told = new ArrayList<>();
    private boolean stale = true;
    private int begun;
    private long removed;

    HeldBlocks(KvStore store) {
        this.store = store;
        store.listen(this);
    }

    private static String name(byte[] familyId) {
        return HexFormat.of().formatHex(familyId);
    }

    @Override
    public synchronized void stored(byte[] familyId, int shard, long key0, long key1, long key2, long key3) {
        told.add(new Told(new Block(name(familyId), shard, key0, key1), true));
    }

    @Override
    public synchronized void removed(byte[] familyId, int shard, long key0, long key1) {
        told.add(new Told(new Block(name(familyId), shard, key0, key1), false));
        removed++;
    }

    @Override
    public synchronized void cleared(byte[] familyId) {
        told.add(new Told(new Block(name(familyId), -1, 0, 0), false));
    }

    @Override
    public synchronized void begunAnew() {
        stale = true;
    }

    /** Takes in what was told; where that is not all, all that is stored. */
    void update() {
        boolean anew;
        synchronized (this) {
            anew = stale;
            stale = false;
            begun += anew ? 1 : 0;
            if (anew) {
                held.clear();
                told.clear();
            }
        }
        long cursor = 0;
        do {
            cursor = anew
                    ? store.visitBlocks(
                            cursor, (family, shard, key0, key1) -> held.add(new Block(name(family), shard, key0, key1)))
                    : 0;
        } while (cursor != 0);
        synchronized (this) {
            told.forEach(this::apply);
            told.clear();
        }
    }

    private void apply(Told event) {
        if (event.isStored) {
            held.add(event.block);
        } else if (event.block.shard < 0) {
            held.removeIf(block -> block.family.equals(event.block.family));
        } else {
            held.remove(event.block);
        }
    }

    boolean holds(ShardHandle shard, Prompt prompt, int block) {
        int at = Prompt.keyOffset(block);
        return held.contains(new Block(
                name(shard.family().family().id()),
                shard.number(),
                prompt.keys.getLong(at),
                prompt.keys.getLong(at + Long.BYTES)));
    }

    int count() {
        return held.size();
    }

    synchronized int begun() {
        return begun;
    }

    synchronized long removed() {
        return removed;
    }
}
