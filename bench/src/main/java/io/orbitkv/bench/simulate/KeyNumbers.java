package io.orbitkv.bench.simulate;

import java.util.Arrays;

/** Numbers keys, told apart by their parent's number and their own id, as they come. Open addressing, half full. */
final class KeyNumbers {
    private static final int FREE = -1;

    private int[] table = new int[1 << 12];
    private int[] parents = new int[1 << 11];
    private long[] ids = new long[1 << 11];
    private int count;

    KeyNumbers() {
        Arrays.fill(table, FREE);
    }

    /** The number of a key: the one it had before, or the next. */
    int number(int parent, long id) {
        int slot = slot(parent, id);
        if (table[slot] != FREE) {
            return table[slot];
        }
        if (count == ids.length) {
            grow();
            slot = slot(parent, id);
        }
        parents[count] = parent;
        ids[count] = id;
        table[slot] = count;
        return count++;
    }

    /** The parents of all keys by number. */
    int[] parents() {
        return Arrays.copyOf(parents, count);
    }

    private int slot(int parent, long id) {
        int slot = (int) (Mix.hash(id + Mix.hash(parent)) >>> 32) & (table.length - 1);
        while (table[slot] != FREE && (ids[table[slot]] != id || parents[table[slot]] != parent)) {
            slot = (slot + 1) & (table.length - 1);
        }
        return slot;
    }

    private void grow() {
        parents = Arrays.copyOf(parents, 2 * count);
        ids = Arrays.copyOf(ids, 2 * count);
        table = new int[2 * table.length];
        Arrays.fill(table, FREE);
        for (int key = 0; key < count; key++) {
            table[slot(parents[key], ids[key])] = key;
        }
    }
}
