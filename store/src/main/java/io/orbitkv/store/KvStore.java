package io.orbitkv.store;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.Family;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.Resources;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.recovery.CleanStop;
import io.orbitkv.recovery.FillState;
import io.orbitkv.recovery.IndexFill;
import io.orbitkv.recovery.LastUsedBlocks;
import io.orbitkv.recovery.OpenedFolder;
import io.orbitkv.recovery.Opening;
import io.orbitkv.recovery.OpeningOptions;
import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.HostTier;
import io.orbitkv.tiers.NvmeCounters;
import io.orbitkv.tiers.NvmeOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.NanoClock;
import org.agrona.concurrent.SystemNanoClock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A log-structured store for KV blocks: query finds the longest stored prefix of a prompt, restore puts its blocks
 * back, save takes new ones in.
 *
 * <p>Safe from any thread. Blocks lie in host memory first and are written to the drive right behind the save, all of
 * them or those that {@link StoreOptions#admission()} lets in; what was written survives a kill of the process, what was
 * flushed survives a power loss (see {@link #sync}). A block may be forgotten at any time to make room; wrong bytes are
 * never returned.
 *
 * <p>Save, query and restore allocate no heap memory once they are warm, and hold no lock across a copy or I/O.
 */
public final class KvStore implements AutoCloseable {
    /** How long closing waits for calls that are still inside before it leaves memory mapped rather than crash them. */
    private static final long CLOSE_WAIT_NANOS = 30_000_000_000L;

    /** How long opening waits for what a smaller cap asks for; beyond, it goes on beside the store's work. */
    private static final long CAP_WAIT_NANOS = 10_000_000_000L;

    /** How long a look at the folders may take before an answer of before is given. */
    private static final long LOOK_MILLIS_MAX = 5_000;

    private static final Logger LOG = LoggerFactory.getLogger(KvStore.class);
    private static final AtomicInteger CLOSED_UNDRAINED = new AtomicInteger();

    /** How long the last commit and the snapshot may take, on drives that have answered until then. */
    private static final long FINISH_NANOS_MAX = 60_000_000_000L;

    /** How long the last commit may take where a drive has not. */
    private static final long FINISH_UNCLEAN_NANOS_MAX = 2_000_000_000L;

    private static final long DRAIN_LOOK_NANOS = 100_000_000;

    private static final long COMMIT_INTERVAL_NANOS = 100_000_000L;

    /** Where nobody wants flushes, the catalog's are not to be the drive's only ones: recovery decides without it. */
    private static final long COMMIT_SELDOM_NANOS = 10_000_000_000L;

    private static final int USED_FOUND_BYTES = 4 * MemoryRegion.PAGE_BYTES;
    private static final long MILLIS_MAX = 1L << 40;
    private static final int LINGER_NANOS = 1_000_000;
    private static final int BATCH_BYTES_MAX = 16 << 20;
    private static final int READ_QUEUE_BATCHES = 256;
    private static final int SWEEP_FRACTION = 16;

    /** Runs of at most 64 blocks that are visited under the writer lock at once. */
    private static final int VISITED_RUNS = 16;

    /** How the memfd of a shared pool is called, before what tells the store. */
    private static final String POOL_NAME = "orbitkv-pool-";

    /** Leases claim three quarters of host memory and log at most, unless the options say otherwise. */
    private static final int LEASE_FRACTION = 3;

    private static final int LEASE_FRACTION_OF = 4;

    /** Blocks on their way into host memory never take more than this part of it, whatever the options say. */
    private static final int PROMOTION_POOL_FRACTION = 4;

    private final Gate gate = new Gate();
    private final Object writerLock = new Object();
    private final Counters counters = new Counters();
    private final StoreOptions options;
    private final NanoClock clock;
    private final DataFolders folders;
    private final OpenedFolder opened;
    private final IndexFill fill;
    private final Catalog catalog;
    private final HostTier host;
    private final Generations logGenerations;
    private final PrefixIndex index;
    private final Drives nvme;
    private final LogListener listener;
    private final Families families;
    private final Leases leases;
    private final Workspaces workspaces;
    private final Allocations allocations = new Allocations();
    private final CatalogKeeper keeper;
    private final Admission admission;
    private final SavePath saves;
    private final QueryPath queries;
    private final RestorePath restores;
    private final Driver driver;
    private final long openNanos;
    private final OwnBytes ownBytes;
    private final CapKeeper cap;
    private final Scrub scrub;
    private final HostPlaces places;
    private final Residency residency;
    private final Promoter promoter;
    private final LastUsed lastUsed;
    private final String poolName;
    private final int writeQueueBlocks;

    /**
     * Begins to load, on a thread of its own, what {@link #open} needs and what takes 0.3 s of a core once a process. For
     * programs that have something else to do before they open a store, such as to read their options. Any thread, any
     * number of calls; none has to be waited for.
     */
    public static void warmUp() {
        Catalog.warmUp();
    }

    /**
     * Opens the store of a data folder, or of several, or makes one.
     *
     * @param options where it is and how large
     * @return the open store; close it to stop cleanly
     * @throws OrbitKvException with a code that says what to do: the folder can't be used, is in use, has another
     *     version or other sizes, is damaged beyond what recovery may decide, or the sizes are too small
     */
    public static KvStore open(StoreOptions options) {
        Objects.requireNonNull(options, "options");
        warmUp();
        Resources folders = new Resources();
        try {
            List<DataFolder> given = new ArrayList<>();
            for (Path path : options.folders()) {
                given.add(folders.keep(HostFolder.open(path)));
            }
            KvStore store = open(options, new DataFolders(given));
            folders.release();
            return store;
        } finally {
            folders.close();
        }
    }

    /** Opens the store of folders that are the store's from now on. */
    static KvStore open(StoreOptions options, DataFolders folders) {
        return new KvStore(
                options.copy(), folders, OpeningOptions.of(options.capBytes()), SystemNanoClock.INSTANCE, Threads::new);
    }

    /**
     * Opens a store whose agents run only when the caller steps them: for simulations, in which a run has to be a
     * function of its seed. One thread does everything; {@link #sync} and restores step by themselves.
     *
     * @param options how large; its folder is not looked at
     * @param folder the folder; the store closes it
     * @param clock the time that the store sees
     * @param seed what the id of a new store is made of
     * @return the open store
     */
    public static KvStore openStepped(StoreOptions options, DataFolder folder, NanoClock clock, long seed) {
        return openStepped(options, DataFolders.of(folder), clock, seed);
    }

    /** The same with several folders, in any order; see {@link #openStepped(StoreOptions, DataFolder, NanoClock, long)}. */
    public static KvStore openStepped(StoreOptions options, DataFolders folders, NanoClock clock, long seed) {
        OpeningOptions opening = OpeningOptions.of(options.capBytes()).simulated(seed);
        return new KvStore(options.copy(), folders, opening, clock, Stepped::new);
    }

    /** Starts the agents. */
    private interface Drivers {
        Driver start(Drives drives, Upkeep upkeep, CatalogKeeper keeper);
    }

    private KvStore(StoreOptions options, DataFolders given, OpeningOptions opening, NanoClock clock, Drivers drivers) {
        this.options = options;
        this.clock = clock;
        Sizes sizes = Sizes.of(options);
        Resources made = new Resources();
        try {
            poolName = options.sharedPool() ? POOL_NAME + given.identity() : "";
            writeQueueBlocks = sizes.writeQueueBlocks();
            host = made.keep(new HostTier(
                    options.poolBytes(),
                    sizes.hostSegmentBytes(),
                    options.openSegments(),
                    options.pageKind(),
                    options.policy(),
                    poolName,
                    options.usablePoolBytes() == 0 ? options.poolBytes() : options.usablePoolBytes()));
            IndexMaker maker = made.keep(new IndexMaker(options, host.generations()));
            long started = System.nanoTime();
            opened = Opening.open(given, sized(opening, options, sizes, given), maker, clock, options.probe());
            fill = opened.fill();
            folders = opened.folders();
            catalog = made.keep(opened.catalog());
            made.keep(fill);
            index = maker.index();
            logGenerations = maker.generations();
            SegmentBook segments = new SegmentBook(
                    opened.geometry().segments(), catalog.atOpening().segments());
            families = new Families(
                    this,
                    catalog,
                    index,
                    writerLock,
                    opened.geometry(),
                    sizes.hostSegmentBytes(),
                    options.probe(),
                    fill,
                    opened.namespaces());
            listener = new LogListener(writerLock, index, host, segments, families::numberOf);
            nvme = made.keep(new Drives(
                    folders,
                    opened.geometry(),
                    opened.logState(),
                    logGenerations,
                    host,
                    listener,
                    clock,
                    options.probe(),
                    logOptions(options, sizes)));
            leases = made.keep(new Leases(
                    clock,
                    options.leasesMax(),
                    leaseBytes(opened.geometry().totalBytes()),
                    options.leaseMillis() * 1_000_000));
            // A family may have larger blocks than the options foresaw, up to a segment.
            int stagingBytes = Math.max(sizes.stagingBytes(), opened.geometry().segmentBytes());
            workspaces = made.keep(
                    new Workspaces(options.queryBlocksMax(), stagingBytes, nvme.count(), folders.get(0)::newReader));
            lastUsed = new LastUsed(index, host, families::numberOf);
            HostMover mover = new HostMover(writerLock, index, host, counters, families::numberOf);
            admission = made.keep(new Admission(
                    options, Sizes.logBlocks(options, opened.geometry().totalBytes())));
            saves = new SavePath(writerLock, index, host, nvme, mover, counters, admission, opened.nextPosition() - 1);
            admission.offersTo(new SecondOffers(writerLock, index, host, saves, families::numberOf));
            Quarantine quarantine = new Quarantine(writerLock, index, nvme);
            places = new HostPlaces(index, host, nvme, counters, admission);
            promoter = new Promoter(writerLock, index, host, mover, counters);
            followPool();
            RestoreEstimate estimate = new RestoreEstimate(nvme);
            queries = new QueryPath(index, nvme, leases, counters, admission, estimate, options.queryBlocksMax());
            restores = new RestorePath(
                    index,
                    host,
                    nvme,
                    counters,
                    admission,
                    quarantine,
                    estimate,
                    clock,
                    promoter,
                    options.verifyHost(),
                    options.restoreTimeoutMillis() * 1_000_000);
            residency = new Residency(writerLock, index, nvme, fill, families);
            Upkeep upkeep =
                    new Upkeep(writerLock, index, nvme, restores, workspaces, new Reclaimed(), residency, clock);
            keeper = new CatalogKeeper(
                    catalog,
                    segments,
                    quarantine,
                    saves,
                    clock,
                    options.durability().flushesBeforeReuse() ? COMMIT_INTERVAL_NANOS : COMMIT_SELDOM_NANOS);
            cap = new CapKeeper(opened, nvme, segments, keeper, clock, options.probe());
            ownBytes = new OwnBytes(cap, clock);
            HostScrub hostScrub = new HostScrub(writerLock, host, quarantine, families::numberOf);
            DriveScrub driveScrub =
                    new DriveScrub(writerLock, nvme, opened.geometry(), folders, quarantine, families::numberOf, fill);
            scrub = made.keep(new Scrub(hostScrub, driveScrub, options, clock));
            driver = drivers.start(nvme, upkeep, keeper);
            AutoCloseable agents = this::stopAgents; // before what they work on
            made.keep(agents);
            ownBytes.askWith(driver.startBeside(ownBytes));
            driver.startAtRest(scrub);
            if (admission.isSelective()) {
                driver.startBeside(admission);
            }
            driver.startFill(new Filling(writerLock, nvme, fill));
            awaitCap(System.nanoTime() + CAP_WAIT_NANOS);
            openNanos = System.nanoTime() - started;
            made.release();
        } finally {
            made.close();
        }
    }

    /** What is bounded by a part of the pool is bounded by that part of what may be used of it. */
    private void followPool() {
        synchronized (writerLock) {
            double usable = (double) host.usableBytes() / ((long) host.segments() * host.segmentBytes());
            saves.letWait(usable == 1 ? Integer.MAX_VALUE : (int) Math.max(1, writeQueueBlocks * usable));
            promoter.allow(Math.min(
                    options.promotionBytesMax(), (long) (options.poolBytes() * usable) / PROMOTION_POOL_FRACTION));
        }
    }

    /** Of an opening that fails. */
    private void stopAgents() {
        driver.stop();
        driver.finish(() -> {}, FINISH_UNCLEAN_NANOS_MAX);
    }

    /** Until what is there is no more than the cap; an opening with a smaller cap gives up segments first. */
    private void awaitCap(long deadline) {
        while (!cap.hasShrunk() && System.nanoTime() - deadline < 0) {
            driver.pause();
        }
    }

    /** A store that is there already keeps its segments, unless the caller insists on a size. */
    private static OpeningOptions sized(OpeningOptions opening, StoreOptions options, Sizes sizes, DataFolders given) {
        boolean holdsStore = Opening.holdsStore(given);
        if (options.capBytes() == 0 && !holdsStore) {
            throw new OrbitKvException(
                    ErrorCode.CAP_TOO_SMALL,
                    "the folder " + given.path() + " holds no store, and a new one needs a cap; give capBytes");
        }
        boolean follow = options.segmentBytes() == 0 && holdsStore;
        return opening.withSegmentBytes(follow ? 0 : sizes.logSegmentBytes())
                .withFlushesBeforeReuse(options.durability().flushesBeforeReuse())
                .withLockWaitNanos(options.lockWaitMillis() * 1_000_000);
    }

    private static NvmeOptions logOptions(StoreOptions options, Sizes sizes) {
        int depth = Math.max(8, options.ringDepth());
        return new NvmeOptions(
                options.openSegments(),
                sizes.writeQueueBlocks(),
                BATCH_BYTES_MAX,
                LINGER_NANOS,
                options.durability(),
                options.flushIntervalMillis() * 1_000_000,
                depth,
                depth / 2,
                READ_QUEUE_BATCHES,
                options.policy(),
                options.driveTimeoutMillis() * 1_000_000,
                options.driveProbeMillisMax() * 1_000_000);
    }

    private long leaseBytes(long logBytes) {
        return options.leaseBytesMax() != 0
                ? options.leaseBytesMax()
                : (options.poolBytes() + logBytes) / LEASE_FRACTION_OF * LEASE_FRACTION;
    }

    /** What makes extents stale: segments given up, and namespaces cleared. */
    private final class Reclaimed implements Upkeep.Reclaims {
        @Override
        public long count() {
            return host.evictedSegments() + listener.reclaimedSegments() + counters.clears.sum();
        }

        @Override
        public long sweepAfter() {
            return Math.max(1, (host.segments() + opened.geometry().segments()) / SWEEP_FRACTION);
        }
    }

    /**
     * Opens a family of blocks; the same family gives the same handle.
     *
     * @param family what makes the blocks' bytes compatible
     * @return its handle, valid until the store is closed
     * @throws OrbitKvException {@link ErrorCode#BLOCK_TOO_LARGE} where a block does not fit into a segment,
     *     {@link ErrorCode#CATALOG_FULL} where the catalog has no room for another family
     */
    public FamilyHandle openFamily(Family family) {
        Objects.requireNonNull(family, "family");
        gate.enter();
        try {
            return families.open(family);
        } finally {
            gate.leave();
        }
    }

    /**
     * Takes blocks in. The caller's memory is free again when the call returns.
     *
     * <p>Blocks that are stored already are skipped: the first publisher of a key wins. Nothing waits: where the drive
     * is behind or no segment is free, the blocks from there on are dropped and counted.
     *
     * @param shard which shard they belong to
     * @param parent holds the key of the block before the first, 32 bytes; null where the first is a prompt's first
     * @param parentOffset where that key starts
     * @param keys the blocks' keys, 32 bytes each, back to back, in order of their place in the prompt
     * @param keysOffset where the first key starts
     * @param count how many blocks
     * @param source where the blocks lie, {@link ShardHandle#blockBytes()} bytes each
     * @param into receives what became of them; overwritten
     * @return {@code into}
     * @throws OrbitKvException {@link ErrorCode#BAD_BUFFER} where keys or source are too small
     */
    public SaveResult save(
            ShardHandle shard,
            DirectBuffer parent,
            int parentOffset,
            DirectBuffer keys,
            int keysOffset,
            int count,
            Blocks source,
            SaveResult into) {
        requireOurs(Objects.requireNonNull(shard, "shard").family());
        requireKeys("keys", keys, keysOffset, count);
        if (parent != null) {
            requireKeys("parent", parent, parentOffset, 1);
        }
        Objects.requireNonNull(source, "source").requireRoom(count, shard.blockBytes());
        Objects.requireNonNull(into, "into").reset();
        gate.enter();
        try {
            Workspace work = workspaces.take();
            try {
                work.begin(shard, parent, parentOffset, keys, keysOffset, source);
                saves.save(work, count, into);
            } finally {
                giveBack(work);
            }
        } finally {
            gate.leave();
        }
        return into;
    }

    /**
     * Finds the longest stored run of consecutive blocks from the first key on, over all shards of a family. No I/O.
     *
     * @param family which family
     * @param keys keys of consecutive blocks, 32 bytes each, back to back; they may start at any block of a prompt. Each is
     *     a hash over the one before it: of keys that are no such chain a lease may hold more than a restore delivers
     * @param keysOffset where the first key starts
     * @param count how many keys; those beyond {@link StoreOptions#queryBlocksMax()} are not looked at
     * @return a lease over the blocks that every shard has; with 0 blocks for a miss. Close it
     * @throws OrbitKvException {@link ErrorCode#BAD_BUFFER} where {@code keys} is too small
     */
    public Lease query(FamilyHandle family, DirectBuffer keys, int keysOffset, int count) {
        long began = clock.nanoTime();
        requireOurs(Objects.requireNonNull(family, "family"));
        requireKeys("keys", keys, keysOffset, count);
        gate.enter();
        try {
            Workspace work = workspaces.take();
            try {
                work.queryBeganNanos = began;
                return queries.query(family, keys, keysOffset, count, work);
            } finally {
                workspaces.giveBack(work);
            }
        } finally {
            gate.leave();
        }
    }

    /**
     * Puts leased blocks of one shard into the caller's memory, in order.
     *
     * <p>It stops before the first block that was evicted or whose bytes are not what was saved; that is a normal
     * outcome, the engine computes the rest. What lies behind the returned number of blocks in the destination is
     * unspecified. Where the drive has not answered in time ({@link StoreStats#readTimeouts()}), it may still write
     * there, if that is memory of {@link #allocate}: until it has, restores into that place restore nothing, and the
     * caller must not put anything else there.
     *
     * @param lease what {@link #query} answered; one that has expired restores nothing
     * @param shard which shard of the lease's family
     * @param from the first block wanted, from 0
     * @param count how many, {@code from + count} at most {@link Lease#blocks()}
     * @param destination where block {@code from} and those after it land, {@link ShardHandle#blockBytes()} bytes each;
     *     from the drive straight into it where it is page-aligned memory of {@link #allocate}
     * @return how many blocks are there
     * @throws OrbitKvException {@link ErrorCode#CLOSED} for a closed lease, {@link ErrorCode#BAD_ARGUMENT} for blocks
     *     outside of it, {@link ErrorCode#BAD_BUFFER} where the destination is too small
     */
    public int restore(Lease lease, ShardHandle shard, int from, int count, Blocks destination) {
        long began = clock.nanoTime();
        requireOurs(Objects.requireNonNull(shard, "shard").family());
        requireLeased(Objects.requireNonNull(lease, "lease"), shard, from, count);
        Objects.requireNonNull(destination, "destination").requireRoom(count, shard.blockBytes());
        gate.enter();
        try {
            if (workspaces.mayBeWritten(destination, count, shard.blockBytes()) || !lease.enter()) {
                counters.missedBlocks.add(count);
                return 0;
            }
            try {
                return restoreEntered(lease, shard, from, count, destination, began);
            } finally {
                lease.leave();
            }
        } finally {
            gate.leave();
        }
    }

    private int restoreEntered(Lease lease, ShardHandle shard, int from, int count, Blocks destination, long began) {
        if (!lease.isLive()) {
            counters.missedBlocks.add(count);
            return 0;
        }
        Workspace work = workspaces.take();
        try {
            work.begin(shard, null, 0, lease.keys(), from * PrefixIndex.KEY_BYTES, destination);
            work.hostOnly = workspaces.isDriveLate();
            work.turnBeganNanos = began;
            work.pace = lease.pace();
            int restored = restores.restore(work, lease.keyMemory(), from, count);
            lease.restored(work.restoredHost, restored - work.restoredHost);
            return restored;
        } finally {
            giveBack(work);
        }
    }

    private void giveBack(Workspace work) {
        if (work.readsAbandoned) {
            workspaces.retire(work);
        } else {
            workspaces.giveBack(work);
        }
    }

    /**
     * Waits until blocks are safe. Blocks that admission kept in host memory have no position: nobody waits for them,
     * and they do not survive the process ({@link SaveResult#admitted()}).
     *
     * @param position up to which block: {@link SaveResult#position()}, or {@link #acceptedPosition()} for all
     * @param level how safe
     * @param timeoutMillis longest wait; 0 only looks
     * @return how it ended
     * @throws OrbitKvException {@link ErrorCode#BAD_ARGUMENT} for a position that no save has answered
     */
    public SyncOutcome sync(long position, Level level, long timeoutMillis) {
        Objects.requireNonNull(level, "level");
        if (timeoutMillis < 0) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "a timeout can't be negative, got " + timeoutMillis + " ms; 0 only looks");
        }
        if (position < 0 || position > saves.acceptedPosition()) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "position " + position + " was never answered by a save; the last one is "
                            + saves.acceptedPosition());
        }
        gate.enter();
        try {
            // Half of all numbers is 146 years; with more the comparison of times would wrap.
            long timeoutNanos = Math.min(TimeUnit.MILLISECONDS.toNanos(timeoutMillis), Long.MAX_VALUE / 2);
            long deadline = System.nanoTime() + timeoutNanos;
            boolean reached = await(position, Level.WRITTEN, deadline)
                    && (level == Level.WRITTEN || await(position, Level.DURABLE, deadline));
            if (reached) {
                return nvme.hasLost(position) ? SyncOutcome.FAILED : SyncOutcome.REACHED;
            }
            return nvme.isHeldUp(position, level == Level.DURABLE) ? SyncOutcome.FAILED : SyncOutcome.TIMED_OUT;
        } finally {
            gate.leave();
        }
    }

    private boolean await(long position, Level level, long deadline) {
        boolean asked = false;
        while (true) {
            long reached = level == Level.WRITTEN ? nvme.writtenPosition() : nvme.durablePosition();
            if (reached >= position) {
                return true;
            }
            if (nvme.isHeldUp(position, level == Level.DURABLE) || System.nanoTime() - deadline > 0) {
                return false;
            }
            if (!asked) {
                asked = true;
                if (level == Level.WRITTEN) {
                    nvme.requestWrite();
                } else {
                    nvme.requestFlush();
                }
            }
            driver.pause();
        }
    }

    /**
     * Forgets every block of a family for good, in every tier, at any crash from the moment this returns. Blocks that
     * are being saved meanwhile are forgotten too, or saved after it.
     *
     * @param family which family; its handle stays valid
     */
    public void clear(FamilyHandle family) {
        requireOurs(Objects.requireNonNull(family, "family"));
        gate.enter();
        try {
            families.clear(family, residency);
            counters.clears.increment();
        } finally {
            gate.leave();
        }
    }

    /**
     * Memory that reads of the drive land in directly. Freed when the store is closed.
     *
     * @param bytes how many; rounded up to whole pages
     * @return zeroed memory, page-aligned, on huge pages where the machine has them
     */
    public MemoryRegion allocate(long bytes) {
        gate.enter();
        try {
            return allocations.allocate(bytes, options.pageKind());
        } finally {
            gate.leave();
        }
    }

    /**
     * Says where a block lies, for diagnostics.
     *
     * @param shard which shard
     * @param key holds the block's key
     * @param keyOffset where it starts
     * @return where it was a moment ago
     */
    public Location locate(ShardHandle shard, DirectBuffer key, int keyOffset) {
        requireOurs(Objects.requireNonNull(shard, "shard").family());
        requireKeys("key", key, keyOffset, 1);
        gate.enter();
        try {
            Workspace work = workspaces.take();
            try {
                if (index.match(shard.binding().indexNumber(), key, keyOffset, 1, work.single) == 0) {
                    return Location.NOWHERE;
                }
                boolean inHost = work.single.extent(Tier.HOST, 0) != Extent.NONE;
                long extent = work.single.extent(Tier.NVME, 0);
                if (extent == Extent.NONE) {
                    return new Location(inHost, false, -1, 0, 0);
                }
                int segment = Extent.segment(extent);
                return new Location(inHost, true, segment, Extent.page(extent), nvme.useSequence(segment));
            } finally {
                workspaces.giveBack(work);
            }
        } finally {
            gate.leave();
        }
    }

    /**
     * What another process needs to read blocks where they lie.
     *
     * @throws OrbitKvException {@link ErrorCode#BAD_ARGUMENT} where the options don't share the pool
     */
    public Arena arena() {
        if (!options.sharedPool()) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "the pool is this process's own; open the store with sharedPool(true)");
        }
        return new Arena(host.memory(), host.generations().memory(), poolName, host.segmentBytes(), host.segments());
    }

    /**
     * Lets the store use more of its pool than {@link StoreOptions#usablePoolBytes} did. Until then it works as if the pool were
     * smaller. Takes no memory by itself, waits for nothing but the writer lock, and holds that for microseconds a GiB.
     *
     * @param bytes how much of the pool, from its start; less than before changes nothing
     */
    public void usePool(long bytes) {
        StoreOptions.inRange("bytes of the pool", bytes, 0, Long.MAX_VALUE / 2);
        gate.enter();
        try {
            synchronized (writerLock) {
                host.use(bytes);
                followPool();
            }
        } finally {
            gate.leave();
        }
    }

    /**
     * Brings the blocks back into host memory that it held at the last clean stop, those used last first, on the caller's
     * thread, which may be any. Nothing is evicted for them: it ends where host memory is full. A store whose last stop was
     * not clean, or did not remember ({@link StoreOptions#remembersUsed}), has none to bring back. They count as restored.
     *
     * @param goesOn asked before each few MiB; false ends it
     * @return how many blocks there are in host memory that were named, at the moment each was looked at
     */
    public int promoteLastUsed(BooleanSupplier goesOn) {
        LastUsed.Run run;
        gate.enter();
        try {
            run = new LastUsed.Run(LastUsedBlocks.read(folders.get(0)));
            LastUsedBlocks.remove(folders.get(0));
        } finally {
            gate.leave();
        }
        try (run) {
            int back = 0;
            for (int at = 0; run.next(at) && goesOn.getAsBoolean() && promote(run); ) {
                back += run.restored;
                at += Math.min(run.count, run.restored + 1); // one that is gone is left out
            }
            return back;
        }
    }

    /** Whether there was room for the run. */
    private boolean promote(LastUsed.Run run) {
        gate.enter();
        try {
            ShardHandle shard = families.shard(run.used.id64(run.first), run.used.epoch(run.first));
            if (shard == null) {
                return true; // cleared since
            }
            run.makeRoom(shard.blockBytes());
            synchronized (writerLock) {
                if (!lastUsed.hasRoom(run, shard.paddedBytes())) {
                    return false;
                }
            }
            Workspace work = workspaces.take();
            try {
                work.begin(shard, null, 0, run.keys, 0, run.into);
                work.hostOnly = workspaces.isDriveLate();
                work.turnBeganNanos = clock.nanoTime();
                work.pace = 1;
                run.restored = restores.restore(work, run.keyMemory, 0, run.count);
                return true;
            } finally {
                giveBack(work);
            }
        } finally {
            gate.leave();
        }
    }

    /** Bytes of the pool that may be used. Any thread, also behind {@link #close}. */
    public long usablePoolBytes() {
        return host.usableBytes();
    }

    /**
     * Says where leased blocks of one shard lie in the arena, each after its full key was compared. Nothing holds them
     * there: whoever copies one looks at the generation of its segment afterwards, and has nothing if it has moved.
     *
     * @param lease what {@link #query} answered; of one that has expired nothing is found
     * @param shard which shard of the lease's family
     * @param from the first block, from 0
     * @param count how many, {@code from + count} at most {@link Lease#blocks()}
     * @param into takes the places; of blocks that are not in host memory none
     * @throws OrbitKvException as {@link #restore}
     */
    public void placesInHost(Lease lease, ShardHandle shard, int from, int count, BlockPlaces into) {
        requireOurs(Objects.requireNonNull(shard, "shard").family());
        requireLeased(Objects.requireNonNull(lease, "lease"), shard, from, count);
        into.reset(count);
        gate.enter();
        try {
            if (!lease.enter()) {
                return;
            }
            Workspace work = workspaces.take();
            try {
                places.find(shard, lease.keys(), from * PrefixIndex.KEY_BYTES, count, work, into);
            } finally {
                lease.leave();
                workspaces.giveBack(work);
            }
        } finally {
            gate.leave();
        }
    }

    /**
     * Whether a block is stored, in whichever tier. No I/O.
     *
     * @param shard which shard
     * @param key holds the block's key
     * @param keyOffset where it starts
     * @return whether it was a moment ago
     */
    public boolean isStored(ShardHandle shard, DirectBuffer key, int keyOffset) {
        requireOurs(Objects.requireNonNull(shard, "shard").family());
        requireKeys("key", key, keyOffset, 1);
        gate.enter();
        try {
            return index.contains(shard.binding().indexNumber(), key, keyOffset);
        } finally {
            gate.leave();
        }
    }

    /** A door for tests of scrub: flips a bit of a block where it lies in host memory; false: it isn't there. */
    boolean flipInHost(ShardHandle shard, DirectBuffer key, int keyOffset) {
        Workspace work = workspaces.take();
        try {
            if (index.match(shard.binding().indexNumber(), key, keyOffset, 1, work.single) == 0
                    || !host.pin(work.single.extent(Tier.HOST, 0))) {
                return false;
            }
            long at = host.payloadOffset(work.single.extent(Tier.HOST, 0)) + shard.blockBytes() / 2;
            host.memory().putByte(at, (byte) (host.memory().getByte(at) ^ 1));
            host.unpin(work.single.extent(Tier.HOST, 0));
            return true;
        } finally {
            workspaces.giveBack(work);
        }
    }

    /**
     * Has somebody told of every block that comes and goes from now on, in order. One listener at a time: another takes its
     * place. Costs savers some nanoseconds a block, and a sweep of the index behind each loss of blocks, at most a twentieth of a
     * processor.
     *
     * @param listener whom; null: nobody any more
     */
    public void listen(BlockEvents listener) {
        gate.enter();
        try {
            residency.listen(listener);
        } finally {
            gate.leave();
        }
    }

    /**
     * Visits blocks that can be restored now, a piece at a time; for a listener that begins a picture. What changes meanwhile is
     * told to it: both together are all blocks. Blocks of an earlier life come into the index while it is being filled, and are
     * not told one by one: {@link BlockEvents#begunAnew} is, once it is whole.
     *
     * @param cursor 0 to begin with, then what the call before answered
     * @param visitor called with the writer lock held, some 1,000 times at most
     * @return where to go on; 0 at the end
     */
    public long visitBlocks(long cursor, BlockEvents.Visitor visitor) {
        Objects.requireNonNull(visitor, "visitor");
        gate.enter();
        try {
            return residency.visit(cursor, VISITED_RUNS, visitor);
        } finally {
            gate.leave();
        }
    }

    /** Which life a segment of the log is in: larger than the one of a {@link Location} once it was reused. */
    public long useSequence(int segment) {
        gate.enter();
        try {
            int segments = opened.geometry().segments();
            if (segment < 0 || segment >= segments) {
                throw new OrbitKvException(
                        ErrorCode.BAD_ARGUMENT,
                        "the log has segments 0 to " + (segments - 1) + ", asked for " + segment);
            }
            return nvme.useSequence(segment);
        } finally {
            gate.leave();
        }
    }

    /** Bytes of a segment of the log. */
    public int logSegmentBytes() {
        return opened.geometry().segmentBytes();
    }

    /** What opening found, as far as it is known: the index is filled while the store serves. Any thread. */
    public OpenReport openReport() {
        return new OpenReport(
                opened.kind(),
                opened.epoch(),
                fill.accounting(),
                openNanos,
                opened.lostFolders(),
                fill.state(),
                fill.share(),
                fill.times());
    }

    /**
     * Waits until the index is whole. Until then a block of an earlier life may be missed that is found a moment later;
     * what is found is right, and nothing of an engine has to wait.
     *
     * @param timeoutMillis longest wait; 0 only looks
     * @return whether it is whole
     * @throws OrbitKvException why the index could not be filled to its end; what is indexed is served all the same
     */
    public boolean awaitWhole(long timeoutMillis) {
        gate.enter();
        try {
            long deadline = System.nanoTime() + Math.min(timeoutMillis, MILLIS_MAX) * 1_000_000;
            while (fill.state() == FillState.FILLING && System.nanoTime() - deadline < 0) {
                driver.pause();
            }
            if (fill.state() == FillState.FAILED) {
                throw fill.failure();
            }
            return fill.state() == FillState.WHOLE;
        } finally {
            gate.leave();
        }
    }

    /** Position of the last block that was sent to the drive. */
    public long acceptedPosition() {
        return saves.acceptedPosition();
    }

    /** Up to where blocks survive a kill of the process. */
    public long writtenPosition() {
        return nvme.writtenPosition();
    }

    /** Up to where blocks survive a power loss. */
    public long durablePosition() {
        return nvme.durablePosition();
    }

    /** Lets a stepped store's agents do a step of work; does nothing of use otherwise. */
    public void step() {
        gate.enter();
        try {
            driver.pause();
        } finally {
            gate.leave();
        }
    }

    /**
     * Changes the cap of the running store: at once in the catalog, so that it holds whatever happens next, then on the
     * drives. Blocks are given up for a smaller cap, the segments that eviction prefers first. A larger one gives the store
     * pages as far as its files have places, which is what the largest cap of its openings asked for; for more, the next
     * opening makes places. The next opening keeps the cap unless it asks for another. A drive that is out of service is
     * not waited for: its share follows when it is back. One that hangs in the catalog keeps this call until it answers; a look at
     * the folders at the end takes 5 s more at most.
     *
     * @param bytes the new cap, as {@link StoreOptions#capBytes(long)}; at least what holds 8 segments
     * @param timeoutMillis longest wait, 0 to 600,000; what is not done by then goes on
     * @return how far it has come: {@link CapState#isWithin()} says whether the folders are within the cap by now
     * @throws OrbitKvException {@link ErrorCode#CAP_TOO_SMALL}, naming the smallest cap that works; nothing was changed
     */
    public CapState capBytes(long bytes, long timeoutMillis) {
        StoreOptions.inRange("cap bytes", bytes, 1, Long.MAX_VALUE / 2);
        StoreOptions.inRange("timeout in ms", timeoutMillis, 0, 600_000);
        gate.enter();
        try {
            cap.change(bytes);
            long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
            while (!cap.isSettled() && System.nanoTime() - deadline < 0) {
                driver.pause();
            }
            return ownBytes.fresh(LOOK_MILLIS_MAX);
        } finally {
            gate.leave();
        }
    }

    /** What the store has done and holds. */
    public StoreStats stats() {
        gate.enter();
        try {
            CapState taken = ownBytes.now();
            return new StoreStats(
                    counters.savedBlocks.sum(),
                    counters.savedBytes.sum(),
                    counters.presentBlocks.sum(),
                    counters.droppedBlocks.sum(),
                    counters.indexFull.sum(),
                    counters.queries.sum(),
                    counters.queriedBlocks.sum(),
                    counters.hitHostBlocks.sum(),
                    counters.hitNvmeBlocks.sum(),
                    counters.leasesRefused.sum(),
                    counters.restoredHostBlocks.sum(),
                    counters.restoredHostBytes.sum(),
                    counters.restoredNvmeBlocks.sum(),
                    counters.restoredNvmeBytes.sum(),
                    counters.missedBlocks.sum(),
                    counters.overtaken.sum(),
                    counters.keyCollisions.sum(),
                    counters.corruptBlocks.sum(),
                    counters.readErrors.sum(),
                    counters.readTimeouts.sum(),
                    counters.clears.sum(),
                    saves.acceptedPosition(),
                    nvme.writtenPosition(),
                    nvme.durablePosition(),
                    nvme.counted(NvmeCounters::blocksWritten),
                    nvme.counted(NvmeCounters::payloadBytes),
                    written(nvme),
                    nvme.counted(NvmeCounters::readBytes),
                    nvme.queueDepth(),
                    listener.reclaimedSegments(),
                    host.evictedSegments(),
                    nvme.secondChances(),
                    host.secondChances(),
                    nvme.counted(NvmeCounters::reappendedBlocks),
                    nvme.counted(NvmeCounters::reappendedBytes),
                    counters.reappendedHostBlocks.sum(),
                    counters.reappendedHostBytes.sum(),
                    nvme.counted(NvmeCounters::usedBlocksDropped),
                    host.usedBlocksDropped(),
                    counters.promotedBlocks.sum(),
                    counters.promotedBytes.sum(),
                    counters.promotionsSkipped.sum(),
                    index.blocks(),
                    index.blocksMax(),
                    index.bytes(),
                    leases.held(),
                    leases.bytes(),
                    counters.savedWithoutDrive.sum(),
                    nvme.counted(NvmeCounters::blocksDropped),
                    nvme.counted(NvmeCounters::segmentsFailed),
                    nvme.counted(NvmeCounters::outages),
                    nvme.countOut(),
                    taken.ownBytes(),
                    taken.capBytes(),
                    taken.foreignBytes(),
                    taken.condition(),
                    admission.stats(counters),
                    fill.state(),
                    fill.share(),
                    scrub.stats());
        } finally {
            gate.leave();
        }
    }

    private static long written(Drives nvme) {
        return nvme.counted(log -> log.payloadBytes() + log.reappendedBytes() + log.headerBytes() + log.footerBytes());
    }

    /**
     * What each drive does, in the order of the folders' numbers.
     *
     * @return a list as long as there are data folders
     */
    public List<DriveStatus> drives() {
        gate.enter();
        try {
            List<DriveStatus> all = new ArrayList<>();
            for (int drive = 0; drive < nvme.count(); drive++) {
                all.add(new DriveStatus(
                        folders.get(drive).path(),
                        nvme.drive(drive).state(),
                        nvme.drive(drive).oldestTransferNanos() / 1_000_000));
            }
            return all;
        } finally {
            gate.leave();
        }
    }

    private void requireOurs(FamilyHandle family) {
        if (family.store() != this) {
            throw new OrbitKvException(
                    ErrorCode.BAD_FAMILY, "the family belongs to another store; open it in this one");
        }
    }

    private static void requireKeys(String name, DirectBuffer keys, int offset, int count) {
        Objects.requireNonNull(keys, name);
        if (count < 0 || offset < 0 || offset > keys.capacity() - (long) count * PrefixIndex.KEY_BYTES) {
            throw new OrbitKvException(
                    ErrorCode.BAD_BUFFER,
                    name + ": " + count + " keys of " + PrefixIndex.KEY_BYTES + " bytes from byte " + offset
                            + " do not fit into a buffer of " + keys.capacity() + " bytes");
        }
    }

    private static void requireLeased(Lease lease, ShardHandle shard, int from, int count) {
        if (lease.isClosed() && lease.blocks() > 0) {
            throw new OrbitKvException(ErrorCode.CLOSED, "the lease is closed; query again");
        }
        if (lease.blocks() > 0 && lease.family() != shard.family()) {
            throw new OrbitKvException(ErrorCode.BAD_FAMILY, "the lease is over another family than the shard's");
        }
        if (from < 0 || count < 0 || from > lease.blocks() - count) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "blocks " + from + " to " + ((long) from + count) + " are not within the lease's "
                            + lease.blocks());
        }
    }

    /**
     * Stops cleanly: calls inside finish, open segments are sealed and flushed, the index is written out, the folder is
     * given back. Safe to call twice. Where a drive doesn't let it stop within 10 s, the next opening recovers as after a
     * kill. Where a drive hangs, memory that it may still read or write stays mapped and the folder locked until it has let
     * go ({@link #closedUndrained()}); this call does not wait for that.
     */
    @Override
    public void close() {
        if (!gate.close()) {
            return;
        }
        boolean empty = gate.awaitEmpty(CLOSE_WAIT_NANOS);
        try {
            stop();
        } finally {
            if (empty && isDrained()) {
                free(); // whatever came of the stop: memory, descriptors and the lock never outlive a closed store
            } else if (empty) {
                freeWhenDrained();
            }
        }
    }

    private void stop() {
        boolean clean = driver.stop();
        boolean done = driver.finish(() -> finish(clean), clean ? FINISH_NANOS_MAX : FINISH_UNCLEAN_NANOS_MAX);
        if (!done) {
            LOG.warn("the catalog of {} did not answer: the next opening recovers as after a kill", folders.path());
        }
    }

    private void finish(boolean clean) {
        keeper.commit();
        // Where the index is not whole there is nothing to be written out: the next opening scans the log, as after a
        // kill.
        if (clean && fill.state() == FillState.WHOLE) {
            boolean snapshot = CleanStop.write(
                    opened,
                    families.now(),
                    saves.acceptedPosition() + 1,
                    nvme.nextUseSequence(),
                    cap.snapshotBytesMax(),
                    options.probe());
            if (snapshot && options.remembersUsed()) {
                rememberUsed();
            }
        }
    }

    private void rememberUsed() {
        try {
            synchronized (writerLock) {
                // What the snapshot has left, less what the file system may need to find the file.
                lastUsed.write(folders.get(0), cap.snapshotBytesMax() - USED_FOUND_BYTES);
            }
        } catch (OrbitKvException e) {
            LOG.warn(
                    "{}: what was used last is not written down, the next start begins with empty host memory: {}",
                    folders.path(),
                    e.getMessage());
        }
    }

    private boolean isDrained() {
        return driver.isDrained() && (driver.isStepped() || workspaces.areDrained());
    }

    /** A thread waits for the drive: only the end of its transfers says that nobody writes into our memory any more. */
    private void freeWhenDrained() {
        CLOSED_UNDRAINED.incrementAndGet();
        LOG.warn(
                "a drive of {} hangs: {} bytes of memory stay mapped, and the folder locked, until it has ended its transfers",
                folders.path(),
                options.poolBytes());
        Thread drain = new Thread(
                () -> {
                    while (!isDrained()) {
                        LockSupport.parkNanos(DRAIN_LOOK_NANOS);
                    }
                    free();
                    CLOSED_UNDRAINED.decrementAndGet();
                },
                "orbitkv-drain");
        drain.setDaemon(true);
        drain.start();
    }

    /** Stores of this process that were closed while a drive hung, and whose memory is still mapped therefore. */
    public static int closedUndrained() {
        return CLOSED_UNDRAINED.get();
    }

    private void free() {
        Resources all = new Resources();
        all.keep(folders);
        all.keep(host);
        all.keep(logGenerations);
        all.keep(index);
        all.keep(catalog);
        all.keep(allocations);
        all.keep(workspaces);
        all.keep(leases);
        all.keep(nvme);
        all.keep(admission);
        all.keep(scrub);
        all.close();
    }
}
