package io.orbitkv.manager;

import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;

/** Keeps clients from filling the log: a burst of lines, then a count of those that were left out. Safe from any thread. */
final class RateLimits {
    private static final int LINES = 20;
    private static final long PERIOD_NANOS = TimeUnit.SECONDS.toNanos(10);

    private long periodBegan = System.nanoTime();
    private int lines;
    private long leftOut;

    void warn(Logger log, String message) {
        if (mayLog(log)) {
            log.warn(message);
        }
    }

    void error(Logger log, String message, Throwable cause) {
        if (mayLog(log)) {
            log.error(message, cause);
        }
    }

    private synchronized boolean mayLog(Logger log) {
        long now = System.nanoTime();
        if (now - periodBegan > PERIOD_NANOS) {
            if (leftOut > 0) {
                log.warn("{} lines were left out of the log", leftOut);
            }
            periodBegan = now;
            lines = 0;
            leftOut = 0;
        }
        if (lines == LINES) {
            leftOut++;
            return false;
        }
        lines++;
        return true;
    }
}
