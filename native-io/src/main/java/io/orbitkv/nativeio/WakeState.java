package io.orbitkv.nativeio;

import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Whether a ring's owner sleeps and whether somebody woke it: one word, so that no wakeup is lost and one that is not
 * needed costs a read.
 *
 * <pre>
 *  AWAKE --sleep()--> SLEEPING --wake()--> NOTIFIED --awake()--> AWAKE
 *  AWAKE --wake()---> NOTIFIED: the next sleep() is refused
 *  any   --close()--> CLOSED: wake() does nothing for good
 * </pre>
 */
final class WakeState {
    private static final int AWAKE = 0;
    private static final int SLEEPING = 1;
    private static final int NOTIFIED = 2;
    private static final int CLOSED = 3;

    private final AtomicInteger state = new AtomicInteger(AWAKE);

    /** Threads between the decision to signal and the end of the signal: close waits for them. */
    private final AtomicInteger signalling = new AtomicInteger();

    /** Owner: is about to sleep; false when somebody woke it before, which is then used up. */
    boolean sleep() {
        if (state.compareAndSet(AWAKE, SLEEPING)) {
            return true;
        }
        state.getAndSet(AWAKE);
        return false;
    }

    /** Owner: whether somebody woke it since it decided to sleep. */
    boolean isNotified() {
        return state.get() == NOTIFIED;
    }

    /** Owner: has slept; whether somebody woke it. */
    boolean awake() {
        return state.getAndSet(AWAKE) == NOTIFIED;
    }

    /**
     * Anybody: wakes the owner.
     *
     * @return whether the owner sleeps: the caller signals it and then calls {@link #signalled()}
     */
    boolean wake() {
        // What the caller wrote before must be visible to an owner that uses this notification up after our look at it.
        VarHandle.fullFence();
        int now = state.get();
        if (now == NOTIFIED || now == CLOSED) {
            return false;
        }
        signalling.incrementAndGet();
        for (; ; ) {
            now = state.get();
            if (now == NOTIFIED || now == CLOSED) {
                break;
            }
            if (state.compareAndSet(now, NOTIFIED)) {
                if (now == SLEEPING) {
                    return true;
                }
                break;
            }
        }
        signalling.decrementAndGet();
        return false;
    }

    /** Anybody: has signalled the owner. */
    void signalled() {
        signalling.decrementAndGet();
    }

    /** Owner: nobody signals any more when this returns, so what carries signals can be freed. */
    void close() {
        state.set(CLOSED);
        while (signalling.get() > 0) {
            Thread.onSpinWait();
        }
    }
}
