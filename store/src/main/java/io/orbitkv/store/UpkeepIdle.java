package io.orbitkv.store;

import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.IdleStrategy;

/**
 * How upkeep sleeps: as long as it may not commit yet while something waits, longer while nothing does, and not at all
 * once it is to stop. The log wakes it with the first change to write down.
 */
final class UpkeepIdle implements IdleStrategy {
    /** As often as the catalog is committed at most. */
    private static final long PACE_NANOS = 100_000_000;

    /** A wake-up costs some 80 µs of a busy machine's core: one a second is next to nothing of it. */
    private static final long CALM_NANOS = 1_000_000_000;

    private final Upkeep upkeep;
    private volatile Thread sleeper;
    private volatile boolean stopping;

    UpkeepIdle(Upkeep upkeep) {
        this.upkeep = upkeep;
    }

    /** Ends the present or next sleep. Any thread. */
    void wake() {
        LockSupport.unpark(sleeper);
    }

    /** No more sleep: the thread is about to end. */
    void stop() {
        stopping = true;
        wake();
    }

    @Override
    public void idle(int workCount) {
        if (workCount == 0) {
            idle();
        }
    }

    @Override
    public void idle() {
        sleeper = Thread.currentThread();
        if (!stopping) { // partner: stop() says so before it wakes
            LockSupport.parkNanos(this, upkeep.hasWork() ? PACE_NANOS : CALM_NANOS);
        }
    }

    @Override
    public void reset() {}
}
