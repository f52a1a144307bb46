package io.orbitkv.bench.simulate;

/** A tier that gives up single blocks: FIFO, LRU or CLOCK. */
final class BlockTier implements KeyTier {
    /** Which block leaves. */
    enum Order {
        /** The one that came first. */
        FIFO,
        /** The one whose last use is the longest ago. */
        LRU,
        /** The one that came first, but those that were used since their last turn are queued again. */
        CLOCK
    }

    private final Order order;
    private final int capacityBlocks;
    private final KeyList list;
    private final boolean[] used;
    private long written;

    BlockTier(Order order, int capacityBlocks, int keys) {
        this.order = order;
        this.capacityBlocks = capacityBlocks;
        list = new KeyList(keys);
        used = new boolean[keys];
    }

    @Override
    public void begin(int request) {
        // requests make no difference here
    }

    @Override
    public boolean has(int key) {
        return list.has(key);
    }

    @Override
    public void touch(int key) {
        if (order == Order.LRU) {
            list.moveLast(key);
        } else {
            used[key] = true;
        }
    }

    @Override
    public void add(int key) {
        if (list.size() == capacityBlocks) {
            evict();
        }
        list.addLast(key);
        used[key] = false;
        written++;
    }

    private void evict() {
        int victim = list.first();
        while (order == Order.CLOCK && used[victim]) {
            used[victim] = false;
            list.moveLast(victim);
            victim = list.first();
        }
        list.remove(victim);
    }

    @Override
    public long written() {
        return written;
    }

    @Override
    public long writtenAgain() {
        return 0;
    }
}
