package io.orbitkv.nativeio;

/**
 * A bounded queue of numbers between threads. It blocks on its monitor, which, unlike the queues and locks of the JDK,
 * allocates nothing while threads wait.
 */
final class IntQueue {
    private final int[] values;
    private int first;
    private volatile int count;
    private int waiting;
    private boolean ended;

    /** A queue that has room for so many numbers; its users never add more. */
    IntQueue(int capacity) {
        values = new int[capacity];
    }

    boolean isEmpty() {
        return count == 0;
    }

    /** Adds a number; whether there are now more of them than threads that wait for one. */
    synchronized boolean add(int value) {
        int now = count;
        if (now == values.length) {
            throw new OrbitKvException(ErrorCode.BUG, "a queue of " + values.length + " numbers overflowed");
        }
        int last = first + now;
        values[last < values.length ? last : last - values.length] = value;
        count = now + 1;
        if (waiting > 0) {
            notify();
        }
        return now + 1 > waiting;
    }

    /** Takes the first number, waiting for one; -1 when the queue was ended and is empty. Ignores interrupts. */
    synchronized int take() {
        while (count == 0) {
            if (ended) {
                return -1;
            }
            waiting++;
            try {
                wait();
            } catch (InterruptedException e) {
                // Nobody but the queue's owner ends these threads, and it does so with end().
            } finally {
                waiting--;
            }
        }
        return removeFirst();
    }

    /** Takes all numbers that are there; how many. */
    synchronized int drain(int[] into) {
        int taken = count;
        for (int i = 0; i < taken; i++) {
            into[i] = removeFirst();
        }
        return taken;
    }

    private int removeFirst() {
        int value = values[first];
        first = first + 1 == values.length ? 0 : first + 1;
        count = count - 1;
        return value;
    }

    /** Lets those who wait go, once the queue is empty. */
    synchronized void end() {
        ended = true;
        notifyAll();
    }
}
