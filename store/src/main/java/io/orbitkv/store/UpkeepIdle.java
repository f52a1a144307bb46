package io.orbitkv.store;

import io.orbitkv.tiers.Drives;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.IdleStrategy;

/** How upkeep sleeps: from one look at the drives to the next, and not at all once it is to stop. */
final class UpkeepIdle implements IdleStrategy {
    private final Drives drives;
    private volatile Thread sleeper;
    private volatile boolean stopping;

    UpkeepIdle(Drives drives) {
        this.drives = drives;
    }

    /** No more sleep: the thread is about to end. */
    void stop() {
        stopping = true;
        LockSupport.unpark(sleeper);
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
            LockSupport.parkNanos(this, drives.nextWatchNanos());
        }
    }

    @Override
    public void reset() {}
}
