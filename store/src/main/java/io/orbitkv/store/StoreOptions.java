package io.orbitkv.store;

import io.orbitkv.index.DirectoryKind;
import io.orbitkv.index.History;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.tiers.AdmissionPolicy;
import io.orbitkv.tiers.Durability;
import io.orbitkv.tiers.EvictionPolicy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * How a store is opened. Every setter checks its value, names its unit and returns this object; the store takes a copy.
 */
public final class StoreOptions implements Cloneable {
    private static final long MIB = 1L << 20;

    private static final long SCRUB_RATE_MAX = 1L << 40;

    private final List<Path> folders;
    private long poolBytes = 1L << 30;
    private long capBytes = 8L << 30;
    private long segmentBytes;
    private int blockBytesLargest = 64 << 10;
    private int openSegments = 4;
    private Durability durability = Durability.INTERVAL;
    private long flushIntervalMillis = 100;
    private long indexBlocksMax;
    private long leaseMillis = 30_000;
    private long leaseBytesMax;
    private int leasesMax = 1024;
    private int queryBlocksMax = 16_384;
    private int writeQueueBlocks;
    private int ringDepth = 64;
    private long restoreTimeoutMillis = 10_000;
    private long driveTimeoutMillis = 1_500;
    private long driveProbeMillisMax = 4_000;
    private long lockWaitMillis = 2_000;
    private PageKind pageKind = PageKind.TRANSPARENT_HUGE;
    private boolean verifyHost;
    private boolean sharedPool;
    private long usablePoolBytes;
    private boolean remembersUsed;
    private AdmissionPolicy admission = AdmissionPolicy.ALL;
    private double admissionPrice = 0.1;
    private long historyBytes = 64 * MIB;
    private DirectoryKind directory;
    private EvictionPolicy policy = EvictionPolicy.SECOND_CHANCE;
    private long promotionBytesMax = 64 * MIB;
    private long scrubHostBytesPerSecond = MIB;
    private long scrubDriveBytesPerSecond = 2 * MIB;
    private WindowProbe probe = WindowProbe.NONE;

    private StoreOptions(List<Path> folders) {
        this.folders = folders;
    }

    /**
     * Defaults for a store: pool of 1 GiB, cap of 8 GiB, flush every 100 ms.
     *
     * @param first the data folder; created where it is missing
     * @param more further ones, on other drives mostly: the log is spread evenly over all of them, and where one is lost,
     *     its blocks only are. A store keeps the number of folders that it was made with; their order does not matter
     * @return the options
     */
    public static StoreOptions in(Path first, Path... more) {
        List<Path> folders = new ArrayList<>();
        folders.add(Objects.requireNonNull(first, "folder"));
        for (Path folder : more) {
            folders.add(Objects.requireNonNull(folder, "folder"));
        }
        return new StoreOptions(List.copyOf(folders));
    }

    /** The same as {@link #in(Path, Path...)} for a list that is not empty. */
    public static StoreOptions inFolders(List<Path> folders) {
        if (folders.isEmpty()) {
            throw new OrbitKvException(ErrorCode.BAD_ARGUMENT, "a store needs at least one data folder; name one");
        }
        return in(folders.get(0), folders.subList(1, folders.size()).toArray(new Path[0]));
    }

    /** The data folders, as they were given. */
    public List<Path> folders() {
        return folders;
    }

    /** The first data folder. */
    public Path folder() {
        return folders.get(0);
    }

    /** Bytes of host memory that hold blocks. */
    public StoreOptions poolBytes(long bytes) {
        poolBytes = inRange("pool bytes", bytes, MIB, Long.MAX_VALUE / 2);
        return this;
    }

    /** See {@link #poolBytes(long)}. */
    public long poolBytes() {
        return poolBytes;
    }

    /**
     * Bytes that the data folder may ever take on the drive, all of the store's own files together, and all folders
     * together where there are several, which share them equally; 0: those that the store there was made with.
     */
    public StoreOptions capBytes(long bytes) {
        capBytes = inRange("cap bytes", bytes, 0, Long.MAX_VALUE / 2);
        return this;
    }

    /** See {@link #capBytes(long)}. */
    public long capBytes() {
        return capBytes;
    }

    /** Bytes of a segment of either tier: a power of two from 64 KiB to 64 MiB; 0 (default) follows the tier's size. */
    public StoreOptions segmentBytes(long bytes) {
        if (bytes != 0) {
            inRange("segment bytes", bytes, 64 << 10, 64 * MIB);
            if (Long.bitCount(bytes) != 1) {
                throw new OrbitKvException(
                        ErrorCode.BAD_ARGUMENT, "segment bytes must be a power of two, got " + bytes);
            }
        }
        segmentBytes = bytes;
        return this;
    }

    /** See {@link #segmentBytes(long)}. */
    public long segmentBytes() {
        return segmentBytes;
    }

    /** The largest block, in bytes, that families of this store will have: segments are made to hold a few of them. */
    public StoreOptions blockBytesLargest(int bytes) {
        blockBytesLargest = (int) inRange("largest block bytes", bytes, 1, 64 * MIB);
        return this;
    }

    /** See {@link #blockBytesLargest(int)}. */
    public int blockBytesLargest() {
        return blockBytesLargest;
    }

    /** Segments of each tier that take blocks at the same time, so that requests do not mix; 1 to 16. */
    public StoreOptions openSegments(int segments) {
        openSegments = (int) inRange("open segments", segments, 1, 16);
        return this;
    }

    /** See {@link #openSegments(int)}. */
    public int openSegments() {
        return openSegments;
    }

    /** When the store flushes by itself. */
    public StoreOptions durability(Durability when) {
        durability = Objects.requireNonNull(when, "durability");
        return this;
    }

    /** See {@link #durability(Durability)}. */
    public Durability durability() {
        return durability;
    }

    /** Longest time between flushes at {@link Durability#INTERVAL}, in milliseconds; 1 to 60,000. */
    public StoreOptions flushIntervalMillis(long millis) {
        flushIntervalMillis = inRange("flush interval in ms", millis, 1, 60_000);
        return this;
    }

    /** See {@link #flushIntervalMillis(long)}. */
    public long flushIntervalMillis() {
        return flushIntervalMillis;
    }

    /** Most blocks in the index; 0 (default) follows the sizes of the tiers and the largest block. */
    public StoreOptions indexBlocksMax(long blocks) {
        indexBlocksMax = blocks == 0 ? 0 : inRange("index blocks", blocks, 64, 1L << 36);
        return this;
    }

    /** See {@link #indexBlocksMax(long)}. */
    public long indexBlocksMax() {
        return indexBlocksMax;
    }

    /** How long a lease lasts unless it is closed, in milliseconds. */
    public StoreOptions leaseMillis(long millis) {
        leaseMillis = inRange("lease in ms", millis, 1, 86_400_000);
        return this;
    }

    /** See {@link #leaseMillis(long)}. */
    public long leaseMillis() {
        return leaseMillis;
    }

    /** Most leases at once; a query beyond is a miss. */
    public StoreOptions leasesMax(int leases) {
        leasesMax = (int) inRange("leases", leases, 1, 1 << 20);
        return this;
    }

    /** See {@link #leasesMax(int)}. */
    public int leasesMax() {
        return leasesMax;
    }

    /**
     * Bytes of blocks, of all shards, that held leases may claim together; what a query finds beyond is a miss. 0 (default): three
     * quarters of host memory and log.
     */
    public StoreOptions leaseBytesMax(long bytes) {
        leaseBytesMax = bytes == 0 ? 0 : inRange("lease bytes", bytes, 1, Long.MAX_VALUE / 2);
        return this;
    }

    /** See {@link #leaseBytesMax(long)}. */
    public long leaseBytesMax() {
        return leaseBytesMax;
    }

    /** Most blocks of one query; keys beyond are not looked at. */
    public StoreOptions queryBlocksMax(int blocks) {
        queryBlocksMax = (int) inRange("query blocks", blocks, 1, 1 << 20);
        return this;
    }

    /** See {@link #queryBlocksMax(int)}. */
    public int queryBlocksMax() {
        return queryBlocksMax;
    }

    /** Most blocks that wait to be written to the drive; 0 (default) follows the pool. */
    public StoreOptions writeQueueBlocks(int blocks) {
        writeQueueBlocks = blocks == 0 ? 0 : (int) inRange("write queue blocks", blocks, 1, 1 << 24);
        return this;
    }

    /** See {@link #writeQueueBlocks(int)}. */
    public int writeQueueBlocks() {
        return writeQueueBlocks;
    }

    /** Most transfers in flight on the drive; 4 to 4096. */
    public StoreOptions ringDepth(int transfers) {
        ringDepth = (int) inRange("ring depth", transfers, 4, 4096);
        return this;
    }

    /** See {@link #ringDepth(int)}. */
    public int ringDepth() {
        return ringDepth;
    }

    /** After how many milliseconds a restore gives up on a drive and reports a miss. */
    public StoreOptions restoreTimeoutMillis(long millis) {
        restoreTimeoutMillis = inRange("restore timeout in ms", millis, 1, 600_000);
        return this;
    }

    /** See {@link #restoreTimeoutMillis(long)}. */
    public long restoreTimeoutMillis() {
        return restoreTimeoutMillis;
    }

    /**
     * After how many milliseconds without an answer a drive is taken out of service, until it is well again. Looked at five
     * times a second; 50 to 600,000. While other transfers of the drive still end, one may take four times as long; and the time
     * is a second longer for each 64 MiB that is under way, or that a flush under way covers (512 MiB at most).
     */
    public StoreOptions driveTimeoutMillis(long millis) {
        driveTimeoutMillis = inRange("drive timeout in ms", millis, 50, 600_000);
        return this;
    }

    /** See {@link #driveTimeoutMillis(long)}. */
    public long driveTimeoutMillis() {
        return driveTimeoutMillis;
    }

    /** Most milliseconds between two attempts to bring a drive back that is out of service; 100 to 600,000. */
    public StoreOptions driveProbeMillisMax(long millis) {
        driveProbeMillisMax = inRange("drive probe in ms", millis, 100, 600_000);
        return this;
    }

    /** See {@link #driveProbeMillisMax(long)}. */
    public long driveProbeMillisMax() {
        return driveProbeMillisMax;
    }

    /** How long opening waits for the transfers of a killed predecessor to end, in milliseconds. */
    public StoreOptions lockWaitMillis(long millis) {
        lockWaitMillis = inRange("lock wait in ms", millis, 0, 600_000);
        return this;
    }

    /** See {@link #lockWaitMillis(long)}. */
    public long lockWaitMillis() {
        return lockWaitMillis;
    }

    /** The pages to ask for behind the pool. */
    public StoreOptions pageKind(PageKind kind) {
        pageKind = Objects.requireNonNull(kind, "page kind");
        return this;
    }

    /** See {@link #pageKind(PageKind)}. */
    public PageKind pageKind() {
        return pageKind;
    }

    /** Whether host restores verify the checksum as well as the full key. */
    public StoreOptions verifyHost(boolean verify) {
        verifyHost = verify;
        return this;
    }

    /** See {@link #verifyHost(boolean)}. */
    public boolean verifyHost() {
        return verifyHost;
    }

    /** Whether other processes may map the pool for reading; see {@link KvStore#arena()}. */
    public StoreOptions sharedPool(boolean shared) {
        sharedPool = shared;
        return this;
    }

    /** See {@link #sharedPool(boolean)}. */
    public boolean sharedPool() {
        return sharedPool;
    }

    /**
     * Bytes of the pool that may be used at first, {@link KvStore#usePool} lets more be; 0 (default): all of them. Never fewer
     * than two segments for each open one.
     */
    public StoreOptions usablePoolBytes(long bytes) {
        usablePoolBytes = inRange("usable pool bytes", bytes, 0, Long.MAX_VALUE / 2);
        return this;
    }

    /** See {@link #usablePoolBytes(long)}. */
    public long usablePoolBytes() {
        return usablePoolBytes;
    }

    /** Whether a clean stop writes down which blocks host memory held, for {@link KvStore#promoteLastUsed}. */
    public StoreOptions remembersUsed(boolean remembers) {
        remembersUsed = remembers;
        return this;
    }

    /** See {@link #remembersUsed(boolean)}. */
    public boolean remembersUsed() {
        return remembersUsed;
    }

    /** Which of the saved blocks are written to the drive; {@link AdmissionPolicy#ALL} by default. */
    public StoreOptions admission(AdmissionPolicy policy) {
        admission = Objects.requireNonNull(policy, "admission");
        return this;
    }

    /** See {@link #admission(AdmissionPolicy)}. */
    public AdmissionPolicy admission() {
        return admission;
    }

    /**
     * What writing a block costs at {@link AdmissionPolicy#DUEL}, in blocks whose computation a hit saves: 0 to 10, by
     * default 0.1. The higher, the fewer writes.
     */
    public StoreOptions admissionPrice(double blocks) {
        if (!(blocks >= 0 && blocks <= 10)) { // so that NaN is refused, too
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "admission price must be from 0 to 10 blocks, got " + blocks);
        }
        admissionPrice = blocks;
        return this;
    }

    /** See {@link #admissionPrice(double)}. */
    public double admissionPrice() {
        return admissionPrice;
    }

    /** Most bytes of the history of seen keys, of which {@link AdmissionPolicy#ALL} keeps none; at least 1 MiB. */
    public StoreOptions historyBytes(long bytes) {
        historyBytes = inRange("history bytes", bytes, History.BYTES_MIN, Long.MAX_VALUE / 2);
        return this;
    }

    /** See {@link #historyBytes(long)}. */
    public long historyBytes() {
        return historyBytes;
    }

    /** How the index finds the run of a key; by default what {@link DirectoryKind#configured()} says. */
    public StoreOptions directory(DirectoryKind kind) {
        directory = Objects.requireNonNull(kind, "directory");
        return this;
    }

    /** See {@link #directory(DirectoryKind)}. */
    public DirectoryKind directory() {
        return directory == null ? DirectoryKind.configured() : directory;
    }

    /** What leaves host memory and the drive when room is needed. */
    public StoreOptions policy(EvictionPolicy eviction) {
        policy = Objects.requireNonNull(eviction, "policy");
        return this;
    }

    /** See {@link #policy(EvictionPolicy)}. */
    public EvictionPolicy policy() {
        return policy;
    }

    /**
     * Most bytes on their way from the drive into host memory at once, of blocks that restores have read; at most a quarter
     * of the pool is used. Blocks beyond stay on the drive only; 0 promotes nothing.
     */
    public StoreOptions promotionBytesMax(long bytes) {
        promotionBytesMax = inRange("promotion bytes", bytes, 0, Long.MAX_VALUE / 2);
        return this;
    }

    /** See {@link #promotionBytesMax(long)}. */
    public long promotionBytesMax() {
        return promotionBytesMax;
    }

    /** Bytes of host memory that scrub reads again each second, at most; 1 MiB by default, 0: none; at most 1 TiB. */
    public StoreOptions scrubHostBytesPerSecond(long bytes) {
        scrubHostBytesPerSecond = inRange("host scrub bytes per second", bytes, 0, SCRUB_RATE_MAX);
        return this;
    }

    /** See {@link #scrubHostBytesPerSecond(long)}. */
    public long scrubHostBytesPerSecond() {
        return scrubHostBytesPerSecond;
    }

    /** Bytes of the drives that scrub reads again each second, at most, all of them together; 2 MiB by default, 0: none. */
    public StoreOptions scrubDriveBytesPerSecond(long bytes) {
        scrubDriveBytesPerSecond = inRange("drive scrub bytes per second", bytes, 0, SCRUB_RATE_MAX);
        return this;
    }

    /** See {@link #scrubDriveBytesPerSecond(long)}. */
    public long scrubDriveBytesPerSecond() {
        return scrubDriveBytesPerSecond;
    }

    /** Who is told of crash windows; for tests. */
    public StoreOptions probe(WindowProbe windows) {
        probe = Objects.requireNonNull(windows, "probe");
        return this;
    }

    /** See {@link #probe(WindowProbe)}. */
    public WindowProbe probe() {
        return probe;
    }

    StoreOptions copy() {
        try {
            return (StoreOptions) clone();
        } catch (CloneNotSupportedException e) {
            throw new AssertionError(e); // the class is cloneable
        }
    }

    static long inRange(String name, long value, long smallest, long largest) {
        if (value < smallest || value > largest) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, name + " must be from " + smallest + " to " + largest + ", got " + value);
        }
        return value;
    }
}
