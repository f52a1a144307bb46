package io.orbitkv.store;

import io.orbitkv.nativeio.ThreadPriority;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread of an agent beside the logs, which may hang with a drive: whoever ends it asks, and looks whether it has. It polls:
 * what it does can wait for some milliseconds, and whoever gives it work does not pay for a wake-up.
 */
final class BesideThread {
    private static final Logger LOG = LoggerFactory.getLogger(BesideThread.class);

    /** How long it sleeps when it has just had work, and when it has not for long. */
    private static final long SLEEP_NANOS_MIN = 5_000_000;

    private static final long SLEEP_NANOS_MAX = 500_000_000;

    /** The same where it gives way: each wake-up is a part of what an idle store costs. */
    private static final long REST_NANOS_MAX = 1_000_000_000;

    private final Agent agent;
    private final boolean givesWay;
    private final Thread thread;
    private volatile boolean stopping;

    /**
     * Starts it.
     *
     * @param givesWay whether everybody else goes first
     */
    BesideThread(Agent agent, boolean givesWay) {
        this.agent = agent;
        this.givesWay = givesWay;
        this.thread = new Thread(this::run, agent.roleName());
        thread.setDaemon(true);
        thread.start();
    }

    private void run() {
        if (givesWay) {
            ThreadPriority.idle();
        }
        long sleepMax = givesWay ? REST_NANOS_MAX : SLEEP_NANOS_MAX;
        BackoffIdleStrategy idle = new BackoffIdleStrategy(0, 0, SLEEP_NANOS_MIN, sleepMax);
        call(agent::onStart);
        while (!stopping) {
            int work = work();
            if (!stopping) {
                idle.idle(work);
            }
        }
        call(agent::onClose);
    }

    private int work() {
        try {
            return agent.doWork();
        } catch (Exception e) {
            LOG.error("{} met an error", agent.roleName(), e);
            return 0;
        }
    }

    private void call(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException e) {
            LOG.error("{} met an error", agent.roleName(), e);
        }
    }

    void wake() {
        LockSupport.unpark(thread);
    }

    /** Asks it to end; it may hang meanwhile. */
    void stop() {
        stopping = true;
        wake();
    }

    boolean isAlive() {
        return thread.isAlive();
    }
}
