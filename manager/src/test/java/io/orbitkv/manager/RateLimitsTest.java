package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Goal: whatever clients do and whoever reads the log, logging holds nobody up. Method: a log that stands still. */
@Timeout(60)
class RateLimitsTest {
    @Test
    void aLogThatNobodyReadsHoldsNobodyUp() throws InterruptedException {
        CountDownLatch read = new CountDownLatch(1);
        AtomicInteger lines = new AtomicInteger();
        CountDownLatch first = new CountDownLatch(1);
        AppenderBase<ILoggingEvent> full = new AppenderBase<>() {
            @Override
            protected void append(ILoggingEvent line) {
                first.countDown();
                try {
                    read.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                lines.incrementAndGet();
            }
        };
        LoggerContext context = new LoggerContext();
        Logger log = context.getLogger("full");
        log.setLevel(Level.WARN);
        full.setContext(context);
        full.start();
        log.addAppender(full);
        try (RateLimits limits = new RateLimits()) {
            for (int i = 0; i < 1_000; i++) {
                limits.warn(log, "line " + i); // this thread would wait for ever
            }
            assertTrue(first.await(30, TimeUnit.SECONDS), "nothing was logged");
            assertEquals(0, lines.get());
            read.countDown();
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
            while (lines.get() < 20) {
                assertTrue(System.nanoTime() - deadline < 0, () -> lines + " lines");
                Thread.onSpinWait();
            }
        }
        assertEquals(20, lines.get());
    }
}
