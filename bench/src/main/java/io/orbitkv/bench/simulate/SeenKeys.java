package io.orbitkv.bench.simulate;

/** Remembers keys, up to a number of them; the one that came first is forgotten first. */
final class SeenKeys {
    private final KeyList keys;
    private final int capacity;

    SeenKeys(int uniqueKeys, long capacity) {
        keys = new KeyList(uniqueKeys);
        this.capacity = (int) Math.max(1, Math.min(uniqueKeys, capacity));
    }

    boolean has(int key) {
        return keys.has(key);
    }

    void see(int key) {
        if (keys.has(key)) {
            return;
        }
        if (keys.size() == capacity) {
            keys.remove(keys.first());
        }
        keys.addLast(key);
    }
}
