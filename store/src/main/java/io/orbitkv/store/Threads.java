package io.orbitkv.store;

import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.NvmeTier;
import io.orbitkv.tiers.TierState;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentRunner;
import org.agrona.concurrent.AgentTerminationException;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Production threading: the log of each drive, upkeep and the catalog's keeper on a thread each. */
final class Threads implements Driver {
    private static final Logger LOG = LoggerFactory.getLogger(Threads.class);

    /** What a waiter sleeps between two looks at a position. */
    private static final long WAIT_NANOS = 50_000;

    /** How long a clean stop may take before the log is abandoned as it stands, which is safe. */
    private static final long STOP_NANOS_MAX = 10_000_000_000L;

    /** A drive that is out and has kept a transfer for so long is not waited for when the store stops. */
    private static final long HANGS_NANOS = 1_000_000_000L;

    /** How long an abandoned log may take to end its thread, where its drive answers. */
    private static final long ABANDON_NANOS_MAX = 500_000_000L;

    /** How long the agent beside the others sleeps when it has just had work, and when it has not for long. */
    private static final long BESIDE_NANOS_MIN = 500_000;

    private static final long BESIDE_NANOS_MAX = 100_000_000;

    private final Drives drives;
    private final LogThread[] logs;
    private final AgentRunner[] logRunners;
    private final Thread[] logThreads;
    private final UpkeepIdle upkeepIdle = new UpkeepIdle();
    private final AgentRunner upkeepRunner;
    private final Thread upkeepThread;
    private final KeeperThread keeper;
    private AgentRunner besideRunner;
    private Thread besideThread;

    Threads(Drives drives, Upkeep upkeep, CatalogKeeper catalogKeeper) {
        this.drives = drives;
        logs = new LogThread[drives.count()];
        logRunners = new AgentRunner[logs.length];
        logThreads = new Thread[logs.length];
        for (int i = 0; i < logs.length; i++) {
            logs[i] = new LogThread(drives.drive(i));
            logRunners[i] = new AgentRunner(logs[i], Threads::report, null, logs[i]);
            logThreads[i] = AgentRunner.startOnThread(logRunners[i], Threads::daemon);
        }
        upkeepRunner = new AgentRunner(upkeepIdle, Threads::report, null, upkeep);
        upkeepThread = AgentRunner.startOnThread(upkeepRunner, Threads::daemon);
        keeper = new KeeperThread(catalogKeeper);
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
        BackoffIdleStrategy idle = new BackoffIdleStrategy(0, 0, BESIDE_NANOS_MIN, BESIDE_NANOS_MAX);
        besideRunner = new AgentRunner(idle, Threads::report, null, agent);
        besideThread = AgentRunner.startOnThread(besideRunner, Threads::daemon);
    }

    @Override
    public boolean stop() {
        if (besideRunner != null) {
            end(besideRunner, besideThread);
        }
        for (LogThread log : logs) {
            log.stop();
        }
        long deadline = System.nanoTime() + STOP_NANOS_MAX;
        boolean clean = true;
        for (int i = 0; i < logs.length; i++) {
            clean &= stop(i, deadline);
        }
        upkeepIdle.stop(); // it has watched the drives until here
        end(upkeepRunner, upkeepThread);
        return clean;
    }

    /** Whether the drive's log came to a clean end. A drive that hangs keeps its thread until it has let go. */
    private boolean stop(int i, long deadline) {
        NvmeTier log = drives.drive(i);
        while (logThreads[i].isAlive() && System.nanoTime() - deadline < 0 && !hangs(log)) {
            pause();
        }
        if (!logThreads[i].isAlive()) {
            end(logRunners[i], logThreads[i]);
            return log.state() == TierState.STOPPED;
        }
        logs[i].abandon();
        long grace = System.nanoTime() + ABANDON_NANOS_MAX;
        while (logThreads[i].isAlive() && System.nanoTime() - grace < 0) {
            pause();
        }
        return false;
    }

    /** It is out, and still holds a transfer. */
    private static boolean hangs(NvmeTier log) {
        return log.state() == TierState.OUT && log.oldestTransferNanos() > HANGS_NANOS;
    }

    @Override
    public boolean finish(Runnable work, long timeoutNanos) {
        return keeper.finish(work, timeoutNanos);
    }

    @Override
    public boolean isDrained() {
        for (Thread thread : logThreads) {
            if (thread.isAlive()) {
                return false;
            }
        }
        return !keeper.isAlive();
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
