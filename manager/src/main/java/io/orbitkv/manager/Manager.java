package io.orbitkv.manager;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Machine;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.Resources;
import io.orbitkv.nativeio.UnixSocket;
import io.orbitkv.recovery.FillState;
import io.orbitkv.store.Arena;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.store.StoreStats;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A store that several processes share: sessions over a Unix socket, blocks through shared memory.
 *
 * <p>Safe from any thread. {@link #close} is the clean stop.
 */
public final class Manager implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Manager.class);
    private static final long SWEEP_MILLIS = 500;

    /** Requests that are being worked on have so long to end when the manager stops. */
    private static final long DRAIN_MILLIS = 3_000;

    /** What was taken in has so long to be written: 2 GiB need 4 s on a drive of 500 MB/s. The store adds its own bound. */
    private static final long WRITE_MILLIS = 6_000;

    private static final long LOOK_NANOS = 2_000_000;
    private static final long MOMENT_NANOS = 50_000_000;
    private static final Path PROCESSES = Path.of("/proc");
    private static final long RESERVE_BYTES_MAX = 1L << 30;
    private static final int RESERVE_FRACTION = 32;

    /** Stands for any amount, so that sums stay in range. */
    private static final long HEADROOM_BYTES_MAX = 1L << 60;

    private final ManagerOptions options;
    private final long epoch = newEpoch();
    private final KvStore store;
    private final Arena arena;
    private final LeaseTable leases;
    private final EventLog events;
    private final ManagerCounters counters = new ManagerCounters();
    private final RateLimits limits = new RateLimits();
    private final Prefetcher prefetcher;
    private final PoolGrowth growth;
    private final Acceptor acceptor;
    private final HttpDoor http;
    private final Set<Session> sessions = new HashSet<>();
    private final List<Thread> threads = new ArrayList<>();
    private final ScheduledExecutorService upkeep = Executors.newSingleThreadScheduledExecutor(run -> {
        Thread thread = new Thread(run, "manager-upkeep");
        thread.setDaemon(true);
        return thread;
    });
    private volatile boolean stopping;
    private boolean closed;
    private volatile Drained drained;
    private volatile Figures.Moment moment;
    private volatile long momentNanos;

    private Manager(ManagerOptions options) {
        this.options = options;
        Resources made = new Resources();
        try {
            UnixSocket socket = made.keep(bind(options.socket()));
            made.keep(() -> delete(options.socket()));
            store = made.keep(KvStore.open(pooled(options.store())));
            arena = store.arena();
            events = new EventLog(store::listen);
            growth = new PoolGrowth(new StorePool(), formerPools(arena), Manager::headroomBytes);
            made.keep(this::interruptThreads);
            start("pool-growth", growth); // beside the rest of the start: clients find a pool that has grown
            leases = new LeaseTable(options.instanceLeaseBytesMax(), options.leasesMax());
            prefetcher = new Prefetcher(store, limits);
            http = options.http() == null ? null : made.keep(new HttpDoor(this, options.http()));
            acceptor = new Acceptor(this, socket);
            made.release();
        } finally {
            made.close();
        }
        start("prefetcher", prefetcher);
        start("acceptor", acceptor);
        start("last-used", this::bringBackLastUsed);
        upkeep.scheduleWithFixedDelay(leases::sweep, SWEEP_MILLIS, SWEEP_MILLIS, TimeUnit.MILLISECONDS);
        upkeep.scheduleWithFixedDelay(this::forgetListeners, SWEEP_MILLIS, SWEEP_MILLIS, TimeUnit.MILLISECONDS);
    }

    /**
     * Opens the store and serves.
     *
     * @param options where and how large
     * @return the manager that serves; close it to stop cleanly
     * @throws OrbitKvException {@link ErrorCode#SOCKET} where another manager serves on the socket, or it can't be made;
     *     and whatever {@link KvStore#open} says
     */
    public static Manager start(ManagerOptions options) {
        return new Manager(options);
    }

    private static long newEpoch() {
        long random;
        do {
            random = new SecureRandom().nextLong();
        } while (random == 0);
        return random;
    }

    /** A socket that a dead manager left behind is in nobody's use. */
    private static UnixSocket bind(Path path) {
        UnixSocket other = UnixSocket.connect(path.toString());
        if (other != null) {
            other.close();
            throw new OrbitKvException(
                    ErrorCode.SOCKET, "a manager serves on " + path + " already; stop it, or choose another socket");
        }
        if (Files.exists(path) && Files.isRegularFile(path)) {
            throw new OrbitKvException(
                    ErrorCode.SOCKET, path + " is a file and no socket; choose another path for the socket");
        }
        delete(path);
        return UnixSocket.listen(path.toString(), 64);
    }

    private static void delete(Path path) {
        try {
            Files.deleteIfExists(path);
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.SOCKET, "cannot remove the old socket " + path + ": " + e.getMessage(), e);
        }
    }

    /** Reserved huge pages are taken when the pool is mapped; any others as it fills, so that it can begin small. */
    private static StoreOptions pooled(StoreOptions store) {
        return store.remembersUsed(true)
                .usablePoolBytes(store.pageKind() == PageKind.HUGETLB ? 0 : PoolGrowth.bytesMin(store.poolBytes()));
    }

    /** Behind the start: once the index knows the blocks, and as much of the pool may be used as there is memory for. */
    private void bringBackLastUsed() {
        while (!stopping
                && (store.openReport().fill() == FillState.FILLING
                        || growth.standing().condition() == PoolCondition.GROWING)) {
            LockSupport.parkNanos(MOMENT_NANOS);
        }
        try {
            long began = System.nanoTime();
            int blocks = stopping ? 0 : store.promoteLastUsed(() -> !stopping);
            if (blocks > 0) {
                LOG.info(
                        "{} blocks are back in host memory after {} ms",
                        blocks,
                        (System.nanoTime() - began) / 1_000_000);
            }
        } catch (OrbitKvException e) {
            if (!stopping) {
                limits.warn(
                        LOG,
                        "blocks that were used last stay on the drives until they are asked for: " + e.getMessage());
            }
        }
    }

    private void forgetListeners() {
        if (!stopping) {
            events.forget(System.nanoTime());
        }
    }

    private static FormerPools formerPools(Arena arena) {
        return new FormerPools(PROCESSES, arena.poolName(), FormerPools.inode(descriptor(arena)));
    }

    private static Path descriptor(Arena arena) {
        return PROCESSES.resolve("self/fd/" + arena.pool().fd());
    }

    /** Memory that the pool may take, less what is left to others: a thirty-second of the machine's, a GiB at most. */
    private static long headroomBytes() {
        long left = Math.min(RESERVE_BYTES_MAX, Math.max(0, Machine.memoryBytes()) / RESERVE_FRACTION);
        return Math.min(Machine.headroomBytes(), HEADROOM_BYTES_MAX) - left;
    }

    /** The store's pool. */
    private final class StorePool implements GrowingPool {
        @Override
        public long bytes() {
            return (long) arena.segments() * arena.segmentBytes();
        }

        @Override
        public long usableBytes() {
            return store.usablePoolBytes();
        }

        @Override
        public long takenBytes() {
            return Machine.takenBytes(descriptor(arena));
        }

        @Override
        public void use(long bytes) {
            try {
                store.usePool(bytes);
            } catch (OrbitKvException e) {
                if (e.code() != ErrorCode.CLOSED) { // it closes before this thread has heard of it
                    throw e;
                }
            }
        }
    }

    private void start(String name, Runnable run) {
        Thread thread = new Thread(run, name);
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    /** Makes a connection a session; false where there are too many. */
    boolean begin(UnixSocket socket, long id) {
        synchronized (sessions) {
            if (stopping || sessions.size() >= options.sessionsMax()) {
                return false;
            }
            Session session = new Session(this, socket, id);
            sessions.add(session);
            Thread thread = new Thread(session, "session-" + id);
            thread.setDaemon(true);
            try {
                thread.start();
            } catch (OutOfMemoryError e) { // of threads: the others are served on
                session.end();
                throw new OrbitKvException(ErrorCode.OUT_OF_MEMORY, "there is no thread for another session", e);
            }
            return true;
        }
    }

    void ended(Session session) {
        synchronized (sessions) {
            sessions.remove(session);
            sessions.notifyAll();
        }
    }

    ManagerOptions options() {
        return options;
    }

    /** Names this life of the manager: every handle carries it. */
    public long epoch() {
        return epoch;
    }

    KvStore store() {
        return store;
    }

    Arena arena() {
        return arena;
    }

    LeaseTable leases() {
        return leases;
    }

    EventLog events() {
        return events;
    }

    ManagerCounters counters() {
        return counters;
    }

    RateLimits limits() {
        return limits;
    }

    Prefetcher prefetcher() {
        return prefetcher;
    }

    /** How much of the pool may be used, and why not all. */
    PoolGrowth.Standing pool() {
        return growth.standing();
    }

    boolean isStopping() {
        return stopping;
    }

    /** Connections that there are. */
    public int sessions() {
        synchronized (sessions) {
            return sessions.size();
        }
    }

    int working() {
        synchronized (sessions) {
            return (int) sessions.stream().filter(Session::isWorking).count();
        }
    }

    /** The port that HTTP answers on; -1 where it doesn't. */
    public int httpPort() {
        return http == null ? -1 : http.port();
    }

    /** Why nobody should be sent here yet, for people; empty where nothing speaks against it. */
    public String whyNotReady() {
        if (stopping) {
            return "the manager is stopping";
        }
        FillState fill = store.openReport().fill();
        return fill == FillState.FAILED ? "the index could not be filled to its end" : "";
    }

    /** Numbers at one moment: what is asked for within it sees the same. */
    Figures.Moment moment() {
        Figures.Moment now = moment;
        if (now == null || System.nanoTime() - momentNanos > MOMENT_NANOS) {
            now = new Figures.Moment(this, store.stats());
            moment = now;
            momentNanos = System.nanoTime();
        }
        return now;
    }

    /** Every number of {@code /v1/stats}, as JSON. */
    public String statsJson() {
        return Figures.json(moment());
    }

    /**
     * Stops cleanly: nothing more is taken in, requests that are worked on end, connections close, what was taken in is
     * written, which HTTP shows to its end, the store is closed as {@link KvStore#close} says. Safe to call twice.
     */
    @Override
    public void close() {
        synchronized (sessions) {
            if (closed) {
                return;
            }
            closed = true;
            stopping = true;
        }
        acceptor.shutdown();
        awaitIdle();
        Resources all = new Resources();
        all.keep(limits);
        all.keep(store);
        if (http != null) {
            all.keep(http);
        }
        all.keep(this::drain);
        all.keep(() -> delete(options.socket()));
        all.keep(this::endSessions);
        all.keep(upkeep::shutdownNow);
        all.close();
    }

    /** What was left to do when it closed; null before. */
    public Drained drained() {
        return drained;
    }

    /** Waits until what was taken in is written; a drive that is out or slow is not waited for beyond its time. */
    private void drain() {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WRITE_MILLIS);
        StoreStats now = store.stats();
        while (isWriting(now) && System.nanoTime() - deadline < 0) {
            LockSupport.parkNanos(LOOK_NANOS);
            now = store.stats();
        }
        drained = new Drained(
                working(),
                prefetcher.waiting(),
                now.nvmeQueuedBlocks(),
                now.nvmeDroppedBlocks(),
                now.acceptedPosition(),
                now.writtenPosition());
    }

    private static boolean isWriting(StoreStats now) {
        return now.drivesOut() == 0 && (now.nvmeQueuedBlocks() > 0 || now.writtenPosition() < now.acceptedPosition());
    }

    private void awaitIdle() {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(DRAIN_MILLIS);
        while (working() > 0 && System.nanoTime() - deadline < 0) {
            LockSupport.parkNanos(1_000_000);
        }
    }

    private void interruptThreads() {
        threads.forEach(Thread::interrupt);
    }

    private void endSessions() {
        interruptThreads();
        synchronized (sessions) {
            sessions.forEach(Session::shutdown);
            long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(DRAIN_MILLIS);
            long left;
            while (!sessions.isEmpty() && (left = deadline - System.nanoTime()) > 0) {
                try {
                    TimeUnit.NANOSECONDS.timedWait(sessions, left);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    break;
                }
            }
            if (!sessions.isEmpty()) {
                LOG.warn("{} sessions did not end in time", sessions.size());
            }
        }
    }
}
