package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentRunner;
import org.agrona.concurrent.SleepingMillisIdleStrategy;
import org.junit.jupiter.api.Test;

/** Goal: memory is never freed under a thread of the store that still works, whoever interrupts the one that closes. */
class ThreadsTest {
    /** Works for a while without a look at interrupts, as a commit of the catalog does. */
    private static final class Busy implements Agent {
        final CountDownLatch working = new CountDownLatch(1);
        final AtomicBoolean ended = new AtomicBoolean();

        @Override
        public int doWork() {
            working.countDown();
            for (long start = System.nanoTime(); System.nanoTime() - start < 300_000_000; ) {
                LockSupport.parkNanos(1_000_000);
            }
            ended.set(true);
            return 0;
        }

        @Override
        public String roleName() {
            return "busy";
        }
    }

    @Test
    void endingWaitsForTheThreadThoughTheCallerIsInterrupted() throws InterruptedException {
        Busy busy = new Busy();
        AgentRunner runner = new AgentRunner(new SleepingMillisIdleStrategy(1), failure -> {}, null, busy);
        Thread thread = AgentRunner.startOnThread(runner);
        busy.working.await();
        Thread caller = Thread.currentThread();
        Thread interrupter = new Thread(() -> {
            LockSupport.parkNanos(50_000_000);
            caller.interrupt(); // in the middle of the wait, as well as before it
        });
        interrupter.start();
        caller.interrupt();
        Threads.end(runner, thread);
        boolean stillInterrupted = Thread.interrupted();
        assertFalse(thread.isAlive());
        assertTrue(busy.ended.get());
        assertTrue(stillInterrupted, "the caller's interrupt was swallowed");
        interrupter.join();
    }
}
