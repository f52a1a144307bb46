package io.orbitkv.store;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Lets calls in while the store is open, and lets closing wait until the last of them is out: memory is freed only
 * when nobody can still touch it.
 */
final class Gate {
    private static final long CLOSED = Long.MIN_VALUE;

    /** Calls inside; with {@link #CLOSED} added once the gate is closed. */
    private final AtomicLong inside = new AtomicLong();

    void enter() {
        if (inside.incrementAndGet() < 0) {
            inside.decrementAndGet();
            throw new OrbitKvException(ErrorCode.CLOSED, "the store is closed; open it again");
        }
    }

    void leave() {
        inside.decrementAndGet();
    }

    boolean isClosed() {
        return inside.get() < 0;
    }

    /** Closes; whether this call did it. */
    boolean close() {
        while (true) {
            long now = inside.get();
            if (now < 0) {
                return false;
            }
            if (inside.compareAndSet(now, now + CLOSED)) {
                return true;
            }
        }
    }

    /** Waits until everybody is out; false when the time ran out first. */
    boolean awaitEmpty(long timeoutNanos) {
        long deadline = System.nanoTime() + timeoutNanos;
        while (inside.get() != CLOSED) {
            if (System.nanoTime() - deadline > 0) {
                return false;
            }
            java.util.concurrent.locks.LockSupport.parkNanos(100_000);
        }
        return true;
    }
}
