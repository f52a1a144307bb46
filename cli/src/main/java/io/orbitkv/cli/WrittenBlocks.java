package io.orbitkv.cli;

import java.util.Arrays;
import java.util.BitSet;

/**
 * The acknowledgements that the parent of a demo holds: for each key the segment, and the segment's use-sequence, under
 * which the store said that the block is written. The latest acknowledgement of a key counts.
 *
 * <p>Open addressing over flat arrays, about 100 bytes a block at most. Not thread-safe.
 */
final class WrittenBlocks {
    static final int KEY_BYTES = 32;

    private byte[] keys = new byte[KEY_BYTES << 10];
    private int[] segments = new int[1 << 10];
    private long[] useSequences = new long[1 << 10];
    private int[] slots = new int[1 << 12]; // block number + 1; 0 is free
    private final BitSet damaged = new BitSet();
    private int blocks;

    /** Blocks acknowledged. */
    int blocks() {
        return blocks;
    }

    /** Notes an acknowledgement; the key is copied. */
    void put(byte[] key, int offset, int segment, long useSequence) {
        int slot = slot(key, offset);
        if (slots[slot] == 0) {
            if (blocks == segments.length) {
                grow();
                slot = slot(key, offset);
            }
            System.arraycopy(key, offset, keys, blocks * KEY_BYTES, KEY_BYTES);
            slots[slot] = ++blocks;
        }
        segments[slots[slot] - 1] = segment;
        useSequences[slots[slot] - 1] = useSequence;
        damaged.clear(slots[slot] - 1);
    }

    /** Notes that the store has found a block damaged and forgotten it; until it is acknowledged again. */
    void damaged(byte[] key, int offset) {
        int slot = slot(key, offset);
        if (slots[slot] != 0) {
            damaged.set(slots[slot] - 1);
        }
    }

    boolean isDamaged(int block) {
        return damaged.get(block);
    }

    /** All keys, back to back, in the order in which they were first acknowledged; only the first {@link #blocks()}. */
    byte[] keys() {
        return keys;
    }

    int segment(int block) {
        return segments[block];
    }

    long useSequence(int block) {
        return useSequences[block];
    }

    private int slot(byte[] key, int offset) {
        int mask = slots.length - 1;
        // Keys are SHA-256, so any four bytes of them are as good as a hash.
        int slot = (key[offset] & 0xff
                        | (key[offset + 1] & 0xff) << 8
                        | (key[offset + 2] & 0xff) << 16
                        | key[offset + 3] << 24)
                & mask;
        while (slots[slot] != 0 && !isKey(slots[slot] - 1, key, offset)) {
            slot = (slot + 1) & mask;
        }
        return slot;
    }

    private boolean isKey(int block, byte[] key, int offset) {
        int start = block * KEY_BYTES;
        return Arrays.equals(keys, start, start + KEY_BYTES, key, offset, offset + KEY_BYTES);
    }

    private void grow() {
        keys = Arrays.copyOf(keys, keys.length * 2);
        segments = Arrays.copyOf(segments, segments.length * 2);
        useSequences = Arrays.copyOf(useSequences, useSequences.length * 2);
        slots = new int[slots.length * 2];
        for (int block = 0; block < blocks; block++) {
            slots[slot(keys, block * KEY_BYTES)] = block + 1;
        }
    }
}
