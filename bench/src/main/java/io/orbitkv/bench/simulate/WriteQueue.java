package io.orbitkv.bench.simulate;

/** Blocks between save and drive: always as many as it holds, once so many came. */
final class WriteQueue {
    private final int capacity;
    private final KeyList waiting;
    private final byte[] lanes;

    WriteQueue(int keys, int capacity) {
        this.capacity = capacity;
        waiting = new KeyList(capacity == 0 ? 0 : keys);
        lanes = new byte[capacity == 0 ? 0 : keys];
    }

    int capacity() {
        return capacity;
    }

    boolean isWaiting(int key) {
        return capacity > 0 && waiting.has(key);
    }

    boolean isFull() {
        return waiting.size() == capacity;
    }

    /** The one that has waited longest. */
    int first() {
        return waiting.first();
    }

    int laneOf(int key) {
        return lanes[key];
    }

    void add(int key, int lane) {
        waiting.addLast(key);
        lanes[key] = (byte) lane;
    }

    void remove(int key) {
        waiting.remove(key);
    }
}
