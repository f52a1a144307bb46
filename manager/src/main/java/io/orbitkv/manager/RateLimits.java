package io.orbitkv.manager;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;

/**
 * Keeps clients from filling the log, and the log from holding up sessions: a burst of lines, written by a thread of its
 * own, then a count of those that were left out. Where whoever reads the log has stopped, lines are left out, too. Safe from
 * any thread; never waits.
 */
final class RateLimits implements AutoCloseable {
    private static final int LINES = 20;
    private static final int LINES_WAITING = 2 * LINES;
    private static final long PERIOD_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final ThreadPoolExecutor writer = new ThreadPoolExecutor(
            1,
            1,
            1,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(LINES_WAITING),
            RateLimits::thread,
            (line, all) -> leaveOut());
    private long periodBegan = System.nanoTime();
    private int lines;
    private long leftOut;

    RateLimits() {
        writer.allowCoreThreadTimeOut(true);
    }

    private static Thread thread(Runnable run) {
        Thread thread = new Thread(run, "manager-log");
        thread.setDaemon(true);
        return thread;
    }

    void warn(Logger log, String message) {
        if (mayLog(log)) {
            writer.execute(() -> log.warn(message));
        }
    }

    void error(Logger log, String message, Throwable cause) {
        if (mayLog(log)) {
            writer.execute(() -> log.error(message, cause));
        }
    }

    private synchronized boolean mayLog(Logger log) {
        long now = System.nanoTime();
        if (now - periodBegan > PERIOD_NANOS) {
            long before = leftOut;
            periodBegan = now;
            lines = 0;
            leftOut = 0;
            if (before > 0) {
                writer.execute(() -> log.warn("{} lines were left out of the log", before));
            }
        }
        if (lines == LINES) {
            leftOut++;
            return false;
        }
        lines++;
        return true;
    }

    private synchronized void leaveOut() {
        leftOut++;
    }

    /** Lines that wait are still written, if anybody reads them. */
    @Override
    public void close() {
        writer.shutdown();
    }
}
