package io.orbitkv.bench.simulate;

import java.util.Arrays;

/** Numbers below a bound in an order, linked through two arrays; each stands in it once at most. */
final class KeyList {
    static final int NONE = -1;

    /** The previous of a number that is not in the list. */
    private static final int ABSENT = -2;

    private final int[] previous;
    private final int[] next;
    private int first = NONE;
    private int last = NONE;
    private int size;

    KeyList(int bound) {
        previous = new int[bound];
        next = new int[bound];
        Arrays.fill(previous, ABSENT);
    }

    boolean has(int number) {
        return previous[number] != ABSENT;
    }

    int size() {
        return size;
    }

    /** The oldest, or {@link #NONE}. */
    int first() {
        return first;
    }

    /** The one behind a number that is in the list, or {@link #NONE}. */
    int after(int number) {
        return next[number];
    }

    void addLast(int number) {
        assert !has(number) : number;
        previous[number] = last;
        next[number] = NONE;
        if (last == NONE) {
            first = number;
        } else {
            next[last] = number;
        }
        last = number;
        size++;
    }

    void remove(int number) {
        assert has(number) : number;
        if (previous[number] == NONE) {
            first = next[number];
        } else {
            next[previous[number]] = next[number];
        }
        if (next[number] == NONE) {
            last = previous[number];
        } else {
            previous[next[number]] = previous[number];
        }
        previous[number] = ABSENT;
        size--;
    }

    void moveLast(int number) {
        if (last != number) {
            remove(number);
            addLast(number);
        }
    }
}
