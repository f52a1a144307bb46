package io.orbitkv.store;

import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.NvmeTier;
import io.orbitkv.tiers.TierState;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentRunner;
import org.agrona.concurrent.AgentTerminationException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Production threading: the log of each drive, upkeep and the catalog's keeper on a thread each, and those that fill the index. */
final class Threads implements Driver {
    private static final Logger LOG = LoggerFactory.getLogger(Threads.class);

    /** What a waiter sleeps between two looks at a position. */
    private static final long WAIT_NANOS = 50_000;

    /** How long a clean stop may take before the log is abandoned as it stands, which is safe. */
    private static final long STOP_NANOS_MAX = 10_000_000_000L;

    /** The same for the threads beside it: one that gives way to everybody may have to wait long on a busy machine. */
    private static final long BESIDE_NANOS_MAX = 60_000_000_000L;

    /** A drive that is out and has kept a transfer for so long is not waited for when the store stops. */
    private static final long HANGS_NANOS = 1_000_000_000L;

    /** How long an abandoned log may take to end its thread, where its drive answers. */
    private static final long ABANDON_NANOS_MAX = 500_000_000L;

    private final Drives drives;
    private final LogThread[] logs;
    private final AgentRunner[] logRunners;
    private final Thread[] logThreads;
    private final UpkeepIdle upkeepIdle;
    private final AgentRunner upkeepRunner;
    private final Thread upkeepThread;
    private final KeeperThread keeper;
    private final List<BesideThread> beside = new ArrayList<>();
    private Thread fillThread;
    private volatile boolean isFillStopped;

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
        upkeepIdle = new UpkeepIdle(drives);
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

    @Override
    public Runnable startBeside(Agent agent) {
        return start(new BesideThread(agent, false));
    }

    @Override
    public void startAtRest(Agent agent) {
        start(new BesideThread(agent, true));
    }

    private Runnable start(BesideThread thread) {
        beside.add(thread);
        return thread::wake;
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

    private boolean isFilling() {
        return fillThread != null && fillThread.isAlive();
    }

    @Override
    public boolean stop() {
        boolean interrupted = Thread.interrupted();
        try {
            return stopAll();
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private boolean stopAll() {
        isFillStopped = true;
        beside.forEach(BesideThread::stop);
        long deadline = System.nanoTime() + BESIDE_NANOS_MAX;
        boolean clean = awaitEnd(this::isFilling, deadline);
        for (BesideThread thread : beside) {
            clean &= awaitEnd(thread::isAlive, deadline);
        }
        for (LogThread log : logs) {
            log.stop();
        }
        deadline = System.nanoTime() + STOP_NANOS_MAX;
        for (int i = 0; i < logs.length; i++) {
            clean &= stop(i, deadline);
        }
        upkeepIdle.stop(); // it has watched the drives until here
        end(upkeepRunner, upkeepThread);
        return clean;
    }

    /** Whether a thread has ended in time; while a drive is out it gets little time, for it may hang there. */
    private boolean awaitEnd(BooleanSupplier isAlive, long deadline) {
        long start = System.nanoTime();
        while (isAlive.getAsBoolean()) {
            long now = System.nanoTime();
            if (now - deadline > 0 || (drives.isAnyOut() && now - start > HANGS_NANOS)) {
                return false;
            }
            pause();
        }
        return true;
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
    public boolean isStepped() {
        return false;
    }

    @Override
    public boolean isDrained() {
        for (Thread thread : logThreads) {
            if (thread.isAlive()) {
                return false;
            }
        }
        for (BesideThread thread : beside) {
            if (thread.isAlive()) {
                return false;
            }
        }
        return !isFilling() && !keeper.isAlive();
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
