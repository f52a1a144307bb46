package io.orbitkv.store;

import io.orbitkv.nativeio.ThreadPriority;
import io.orbitkv.tiers.NvmeTier;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentRunner;
import org.agrona.concurrent.AgentTerminationException;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Production threading: the log and upkeep on a thread each, and one that fills the index until it is whole. */
final class Threads implements Driver {
    private static final Logger LOG = LoggerFactory.getLogger(Threads.class);

    /** What a waiter sleeps between two looks at a position. */
    private static final long WAIT_NANOS = 50_000;

    /** How long a clean stop may take before the log is abandoned as it stands, which is safe. */
    private static final long STOP_NANOS_MAX = 10_000_000_000L;

    /** How long the agent beside the others sleeps when it has just had work, and when it has not for long. */
    private static final long BESIDE_NANOS_MIN = 500_000;

    private static final long BESIDE_NANOS_MAX = 100_000_000;

    private final LogThread log;
    private final AgentRunner logRunner;
    private final UpkeepIdle upkeepIdle;
    private final AgentRunner upkeepRunner;
    private final Thread logThread;
    private final Thread upkeepThread;
    private final List<AgentRunner> besideRunners = new ArrayList<>();
    private final List<Thread> besideThreads = new ArrayList<>();
    private Thread fillThread;
    private volatile boolean isFillStopped;

    Threads(NvmeTier nvme, Upkeep upkeep) {
        log = new LogThread(nvme);
        logRunner = new AgentRunner(log, Threads::report, null, log);
        upkeepIdle = new UpkeepIdle(upkeep);
        upkeep.wakeWith(upkeepIdle::wake);
        upkeepRunner = new AgentRunner(upkeepIdle, Threads::report, null, upkeep);
        logThread = AgentRunner.startOnThread(logRunner, Threads::daemon);
        upkeepThread = AgentRunner.startOnThread(upkeepRunner, Threads::daemon);
    }

    private static Thread daemon(Runnable loop) {
        Thread thread = new Thread(loop);
        thread.setDaemon(true);
        return thread;
    }

    private static void report(Throwable failure) {
        if (failure instanceof AgentTerminationException) {
            return; // how the log's thread says that its clean stop is done
        }
        LOG.error("a thread of the store met an error", failure);
    }

    @Override
    public void pause() {
        LockSupport.parkNanos(WAIT_NANOS);
    }

    /** It polls: what it does can wait for some milliseconds, and whoever gives it work does not pay for a wake-up. */
    @Override
    public void startBeside(Agent agent) {
        startBeside(agent, Threads::daemon);
    }

    @Override
    public void startAtRest(Agent agent) {
        startBeside(agent, Threads::idleDaemon);
    }

    private static Thread idleDaemon(Runnable loop) {
        return daemon(() -> {
            ThreadPriority.idle();
            loop.run();
        });
    }

    private void startBeside(Agent agent, ThreadFactory threads) {
        BackoffIdleStrategy idle = new BackoffIdleStrategy(0, 0, BESIDE_NANOS_MIN, BESIDE_NANOS_MAX);
        AgentRunner runner = new AgentRunner(idle, Threads::report, null, agent);
        besideRunners.add(runner);
        besideThreads.add(AgentRunner.startOnThread(runner, threads));
    }

    @Override
    public void startFill(Filling filling) {
        fillThread = daemon(() -> fill(filling));
        fillThread.setName("orbitkv-fill");
        fillThread.start();
    }

    private void fill(Filling filling) {
        try {
            while (!isFillStopped && filling.step()) {
                // a piece a step
            }
        } catch (Throwable e) {
            report(e);
        } finally {
            filling.close();
        }
    }

    private void endFill() {
        isFillStopped = true;
        boolean interrupted = false;
        while (fillThread != null && fillThread.isAlive()) {
            interrupted |= Thread.interrupted();
            pause();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public boolean stop() {
        endFill();
        for (int i = 0; i < besideRunners.size(); i++) {
            end(besideRunners.get(i), besideThreads.get(i));
        }
        upkeepIdle.stop();
        end(upkeepRunner, upkeepThread);
        log.stop();
        long deadline = System.nanoTime() + STOP_NANOS_MAX;
        while (logThread.isAlive() && System.nanoTime() - deadline < 0) {
            pause();
        }
        boolean clean = !logThread.isAlive();
        if (!clean) {
            log.abandon();
        }
        end(logRunner, logThread);
        return clean;
    }

    /**
     * Ends a runner and waits for its thread, even where the caller is interrupted: a runner's own close gives up then,
     * and memory would be freed under a thread that still works.
     */
    static void end(AgentRunner runner, Thread thread) {
        boolean interrupted = Thread.interrupted();
        runner.close();
        while (thread.isAlive()) {
            interrupted |= Thread.interrupted();
            LockSupport.parkNanos(WAIT_NANOS);
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
