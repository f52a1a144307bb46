package io.orbitkv.tiers;

import java.util.concurrent.atomic.AtomicLong;

/**
 * The transfers of one ring that are under way, in the order of their submission: what each is for, since when the
 * oldest waits, and when one has ended last, which anybody may ask. All else is the agent's.
 */
final class InFlight {
    private static final int NONE = -1;

    /** Stands for: nothing is under way. */
    private static final long IDLE = Long.MIN_VALUE;

    private final long[] tokens;
    private final long[] since;
    private final int[] next;
    private final int[] previous;
    private int free;
    private int first = NONE;
    private int last = NONE;
    private final AtomicLong oldest = new AtomicLong(IDLE);
    private final AtomicLong ended = new AtomicLong(IDLE);

    InFlight(int depth) {
        tokens = new long[depth];
        since = new long[depth];
        next = new int[depth];
        previous = new int[depth];
        for (int slot = 0; slot < depth; slot++) {
            next[slot] = slot + 1 < depth ? slot + 1 : NONE;
        }
    }

    /** Takes a transfer in before it is submitted, so that a submission that hangs is seen; its slot, -1 when all are taken. */
    int add(long token, long nowNanos) {
        int slot = free;
        if (slot == NONE) {
            return NONE;
        }
        free = next[slot];
        tokens[slot] = token;
        since[slot] = nowNanos;
        next[slot] = NONE;
        previous[slot] = last;
        if (last == NONE) {
            first = slot;
            oldest.setRelease(nowNanos);
        } else {
            next[last] = slot;
        }
        last = slot;
        return slot;
    }

    /** A transfer has ended; what it was for. */
    long end(int slot, long nowNanos) {
        ended.setRelease(nowNanos);
        return remove(slot);
    }

    /** A transfer has ended, or was not submitted after all; what it was for. */
    long remove(int slot) {
        int before = previous[slot];
        int after = next[slot];
        if (after == NONE) {
            last = before;
        } else {
            previous[after] = before;
        }
        if (before == NONE) {
            first = after;
            oldest.setRelease(after == NONE ? IDLE : since[after]);
        } else {
            next[before] = after;
        }
        next[slot] = free;
        free = slot;
        return tokens[slot];
    }

    /** How long the oldest has been under way, 0 when none is. Any thread. */
    long ageNanos(long nowNanos) {
        long then = oldest.getAcquire();
        return then == IDLE ? 0 : nowNanos - then;
    }

    /** Whether one has ended within so long. Any thread. */
    boolean hasEndedWithin(long nanos, long nowNanos) {
        long then = ended.getAcquire();
        return then != IDLE && nowNanos - then <= nanos;
    }
}
