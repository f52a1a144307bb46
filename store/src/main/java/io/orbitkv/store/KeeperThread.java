package io.orbitkv.store;

import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread of a {@link CatalogKeeper}, which may hang with a drive: whoever ends it waits for so long and no longer.
 *
 * <p>It sleeps as long as it may not commit yet while something waits, and longer while nothing does. The log wakes it with the
 * first change to write down.
 */
final class KeeperThread {
    private static final Logger LOG = LoggerFactory.getLogger(KeeperThread.class);

    /** As often as the catalog is committed at most. */
    private static final long PACE_NANOS = 100_000_000;

    /** A wake-up costs some 80 µs of a busy machine's core: one a second is next to nothing of it. */
    private static final long CALM_NANOS = 1_000_000_000;

    private static final long WAIT_NANOS = 50_000;

    private final CatalogKeeper keeper;
    private final Thread thread;
    private volatile Runnable last;
    private volatile RuntimeException failure;

    KeeperThread(CatalogKeeper keeper) {
        this.keeper = keeper;
        this.thread = new Thread(this::run, "orbitkv-catalog");
        thread.setDaemon(true);
        keeper.wakeWith(() -> LockSupport.unpark(thread));
        thread.start();
    }

    private void run() {
        while (last == null) {
            try {
                if (keeper.doWork() > 0) {
                    continue;
                }
            } catch (RuntimeException e) {
                LOG.error("the catalog's thread met an error", e);
            }
            if (last == null) { // partner: finish() says so before it wakes
                LockSupport.parkNanos(this, keeper.hasWork() ? PACE_NANOS : CALM_NANOS);
            }
        }
        try {
            last.run();
        } catch (RuntimeException e) {
            failure = e;
        }
    }

    /**
     * Ends the thread with a last piece of work.
     *
     * @param work what to do there
     * @param timeoutNanos longest wait
     * @return whether it has ended in time; otherwise the work goes on, or hangs
     */
    boolean finish(Runnable work, long timeoutNanos) {
        last = work;
        LockSupport.unpark(thread);
        long start = System.nanoTime();
        while (thread.isAlive()) {
            if (System.nanoTime() - start > timeoutNanos) {
                return false;
            }
            LockSupport.parkNanos(WAIT_NANOS);
        }
        if (failure != null) {
            throw failure;
        }
        return true;
    }

    boolean isAlive() {
        return thread.isAlive();
    }
}
