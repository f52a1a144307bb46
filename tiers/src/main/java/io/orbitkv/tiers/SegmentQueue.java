package io.orbitkv.tiers;

import java.util.Arrays;

/**
 * Segments in order of age, linked through arrays: adding, and removing from anywhere, cost the same at any length and
 * allocate nothing. A segment is in a queue once at most. Not thread-safe.
 */
final class SegmentQueue {
    /** No segment: the queue is empty, or ends here. */
    static final int NONE = -1;

    private static final int OUTSIDE = -2;

    private final int[] next;
    private final int[] previous;
    private int first = NONE;
    private int last = NONE;
    private int size;

    SegmentQueue(int segments) {
        next = new int[segments];
        previous = new int[segments];
        Arrays.fill(next, OUTSIDE);
    }

    boolean isEmpty() {
        return first == NONE;
    }

    int size() {
        return size;
    }

    boolean contains(int segment) {
        return next[segment] != OUTSIDE;
    }

    int first() {
        return first;
    }

    int after(int segment) {
        return next[segment];
    }

    void addLast(int segment) {
        assert next[segment] == OUTSIDE : "segment " + segment + " is queued already";
        next[segment] = NONE;
        previous[segment] = last;
        if (last == NONE) {
            first = segment;
        } else {
            next[last] = segment;
        }
        last = segment;
        size++;
    }

    int removeFirst() {
        int segment = first;
        remove(segment);
        return segment;
    }

    void remove(int segment) {
        assert next[segment] != OUTSIDE : "segment " + segment + " is not queued";
        if (previous[segment] == NONE) {
            first = next[segment];
        } else {
            next[previous[segment]] = next[segment];
        }
        if (next[segment] == NONE) {
            last = previous[segment];
        } else {
            previous[next[segment]] = previous[segment];
        }
        next[segment] = OUTSIDE;
        size--;
    }
}
