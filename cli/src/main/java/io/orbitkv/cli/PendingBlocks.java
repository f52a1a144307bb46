package io.orbitkv.cli;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Blocks that the store has accepted and not yet written, oldest first: keys and positions in a ring that grows to what
 * the store's write queue holds and then allocates no more. Not thread-safe.
 */
final class PendingBlocks {
    private static final int KEY_BYTES = WrittenBlocks.KEY_BYTES;

    private byte[] keys = new byte[KEY_BYTES << 10];
    private long[] positions = new long[1 << 10];
    private final UnsafeBuffer view = new UnsafeBuffer(keys);
    private long head;
    private long tail;

    /** Adds consecutive blocks; all count as written when the position is. */
    void add(DirectBuffer source, int offset, int count, long position) {
        while (tail - head + count > positions.length) {
            grow();
        }
        for (int i = 0; i < count; i++) {
            int slot = slot(tail++);
            source.getBytes(offset + i * KEY_BYTES, keys, slot * KEY_BYTES, KEY_BYTES);
            positions[slot] = position;
        }
    }

    int size() {
        return (int) (tail - head);
    }

    /** How many of the oldest blocks have a position up to the given one. */
    int upTo(long writtenPosition) {
        int count = 0;
        while (count < size() && positions[slot(head + count)] <= writtenPosition) {
            count++;
        }
        return count;
    }

    /** The array that holds the key of the oldest block at {@link #keyOffset()}. */
    byte[] keys() {
        return keys;
    }

    /** The same bytes as a buffer. */
    DirectBuffer keyBuffer() {
        return view;
    }

    int keyOffset() {
        return slot(head) * KEY_BYTES;
    }

    long position() {
        return positions[slot(head)];
    }

    /** Forgets the oldest block. */
    void remove() {
        head++;
    }

    private int slot(long number) {
        return (int) (number & (positions.length - 1));
    }

    private void grow() {
        int blocks = size();
        byte[] moreKeys = new byte[keys.length * 2];
        long[] morePositions = new long[positions.length * 2];
        for (int i = 0; i < blocks; i++) {
            int slot = slot(head + i);
            System.arraycopy(keys, slot * KEY_BYTES, moreKeys, i * KEY_BYTES, KEY_BYTES);
            morePositions[i] = positions[slot];
        }
        keys = moreKeys;
        positions = morePositions;
        view.wrap(keys);
        head = 0;
        tail = blocks;
    }
}
