package io.orbitkv.tiers;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.concurrent.locks.LockSupport;

/**
 * Up to {@link #READS_MAX} reads of blocks that are submitted and waited for together.
 *
 * <p>Made once by a thread and reused by it: clear, add, {@link NvmeTier#submit}, await, look at the results: at all of
 * them in the end, or at each as it ends. From submission until {@link #isDrained()} the batch and the destinations of
 * reads that have not ended belong to the tier, however the wait ended, since a drive may still write there.
 */
public final class ReadBatch {
    /** Most reads of a batch: many times a ring's depth, so that its end, when the ring runs dry, is a small part of it. */
    public static final int READS_MAX = 1024;

    /** How long a waiter looks without sleeping: about what a sleep and its end cost. */
    private static final long SPIN_NANOS = 10_000;

    /** A sleeping waiter is woken for about so many bytes: what its wake-up costs is then a small part of their time. */
    private static final int WAKE_BYTES = 1 << 20;

    /** Stands for a waiter that wants to sleep until the end. */
    private static final int NEVER = Integer.MAX_VALUE;

    /** Longest sleep of a waiter, so that a lost unpark costs time, not life. */
    private static final long PARK_NANOS_MAX = 100_000_000;

    private final long[] extents = new long[READS_MAX];
    private final int[] bytes = new int[READS_MAX];
    private final MemoryRegion[] regions = new MemoryRegion[READS_MAX];
    private final long[] offsets = new long[READS_MAX];
    private final ReadResult[] results = new ReadResult[READS_MAX];
    private final int[] names = new int[READS_MAX];

    /** The reads in the order in which they ended. */
    private final int[] order = new int[READS_MAX];

    private int count;

    // From submission to drain these belong to the agent's thread.
    private int started;

    /** How many have ended; written by the agent alone: their results and places in the order are visible then. */
    private volatile int ended;

    /** The waiter wants to be woken when so many have ended. */
    private volatile int wakeAt = NEVER;

    /** Set before submission by the caller; cleared last by the agent: what it wrote before is visible then. */
    private volatile boolean submitted;

    private volatile Thread waiter;
    private NvmeTier tier;
    private long submittedNanos;

    /** An empty batch. */
    public ReadBatch() {}

    /** Forgets all reads. */
    public void clear() {
        requireDrained();
        for (int i = 0; i < count; i++) {
            regions[i] = null;
        }
        count = 0;
    }

    /**
     * Adds a read of a block's pages. The caller holds a pin on the extent.
     *
     * @param extent where the block lies
     * @param storedBytes its stored bytes, at least 1; whole pages are read
     * @param region where they land; must stay open until the batch is drained
     * @param offset within the region, page-aligned, with room for whole pages
     */
    public void add(long extent, int storedBytes, MemoryRegion region, long offset) {
        add(extent, storedBytes, region, offset, count);
    }

    /** The same, with a number of the caller's by which it knows the read; see {@link #name}. */
    public void add(long extent, int storedBytes, MemoryRegion region, long offset, int name) {
        requireDrained();
        if (count == READS_MAX || storedBytes < 1) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "read " + count + " of " + storedBytes + " bytes does not fit into a batch of " + READS_MAX);
        }
        requireRoom(region, offset, NvmeTier.pagesBytes(storedBytes));
        extents[count] = extent;
        bytes[count] = storedBytes;
        regions[count] = region;
        offsets[count] = offset;
        results[count] = ReadResult.PENDING;
        names[count] = name;
        count++;
    }

    private static void requireRoom(MemoryRegion region, long offset, long length) {
        if (offset < 0 || offset % MemoryRegion.PAGE_BYTES != 0 || offset > region.bytes() - length) {
            throw new OrbitKvException(
                    ErrorCode.BAD_BUFFER,
                    "a read of " + length + " bytes to " + offset + " of " + region
                            + " needs a page-aligned place with room for whole pages");
        }
    }

    /** How many reads. */
    public int count() {
        return count;
    }

    /** The caller's number of read i. */
    public int name(int i) {
        return names[i];
    }

    /** The extent of read i. */
    public long extent(int i) {
        return extents[i];
    }

    /** Where read i lands within its region. */
    public long offset(int i) {
        return offsets[i];
    }

    /** The region that read i lands in. */
    public MemoryRegion region(int i) {
        return regions[i];
    }

    /** The stored bytes of read i. */
    public int bytes(int i) {
        return bytes[i];
    }

    /** How read i ended; {@link ReadResult#PENDING} until the batch is drained. */
    public ReadResult result(int i) {
        return submitted ? ReadResult.PENDING : results[i];
    }

    /** Whether nobody reads into the destinations any more. */
    public boolean isDrained() {
        return !submitted;
    }

    /** Whether reads are under way on a drive that serves. */
    public boolean isAwaitedOfServingDrive() {
        return submitted && tier.isServing();
    }

    /**
     * Waits until all reads have ended, or the drive is out of service. On the agent's own thread it makes the agent work meanwhile.
     *
     * @param timeoutNanos longest wait
     * @return false when the time was over, or the drive is out: then the batch can't be used before {@link #isDrained()}
     */
    public boolean await(long timeoutNanos) {
        if (!submitted) {
            return true;
        }
        NvmeTier mine = tier;
        long start = mine.nanoTime();
        if (mine.isAgentThread()) {
            return mine.workUntilDrained(this, start, timeoutNanos);
        }
        waiter = Thread.currentThread();
        try {
            for (long spent = 0; submitted; spent = mine.nanoTime() - start) {
                if (spent >= timeoutNanos || !mine.isServing()) {
                    return false;
                }
                if (spent < SPIN_NANOS) {
                    Thread.onSpinWait();
                } else {
                    LockSupport.parkNanos(this, Math.min(PARK_NANOS_MAX, timeoutNanos - spent));
                }
            }
            return true;
        } finally {
            waiter = null;
        }
    }

    /**
     * Waits until more reads have ended than the caller has seen. What has ended can be looked at, and its destination
     * used, while others are under way. On the agent's own thread it makes the agent work until all have ended.
     *
     * @param seen how many of the ended reads the caller has seen, fewer than {@link #count()}
     * @param timeoutNanos longest time since submission that reads may take
     * @return how many have ended; {@code seen} when the time was over, or the drive went out of service
     */
    public int awaitMore(int seen, long timeoutNanos) {
        if (ended > seen || !submitted) {
            return ended;
        }
        NvmeTier mine = tier;
        if (mine.isAgentThread()) {
            mine.workUntilDrained(this, submittedNanos, timeoutNanos);
            return ended;
        }
        long start = mine.nanoTime();
        waiter = Thread.currentThread();
        try {
            for (long now = start; ended == seen; now = mine.nanoTime()) {
                long left = timeoutNanos - (now - submittedNanos);
                if (left <= 0 || !mine.isServing()) {
                    return ended;
                }
                if (now - start < SPIN_NANOS) {
                    Thread.onSpinWait();
                    continue;
                }
                wakeAt = seen + Math.max(1, WAKE_BYTES / bytes[0]); // partner: end() counts, then looks at this
                if (ended == seen) {
                    LockSupport.parkNanos(this, Math.min(PARK_NANOS_MAX, left));
                }
                wakeAt = NEVER;
            }
            return ended;
        } finally {
            waiter = null;
        }
    }

    /** Which read ended as the k-th, k below what {@link #awaitMore} answered. */
    public int endedRead(int k) {
        return order[k];
    }

    /** How the read ended that was the k-th to end, k below what {@link #awaitMore} answered. */
    public ReadResult endedResult(int k) {
        return results[order[k]];
    }

    private void requireDrained() {
        if (submitted) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "a read batch that is not drained was used; wait for isDrained()");
        }
    }

    // ---- for the tier ----

    void submitTo(NvmeTier owner) {
        requireDrained();
        tier = owner;
        submittedNanos = owner.nanoTime();
        started = 0;
        ended = 0;
        for (int i = 0; i < count; i++) {
            results[i] = ReadResult.PENDING;
        }
        submitted = true;
    }

    /** Takes a submission back that the queue refused. */
    void refuse() {
        submitted = false;
    }

    int nextToStart() {
        return started;
    }

    boolean isStarted() {
        return started == count;
    }

    void start() {
        started++;
    }

    /** One read has ended; whether it was the last, after which the batch must not be touched but by {@link #drain}. */
    boolean end(int i, ReadResult result) {
        int before = ended;
        boolean isLast = before + 1 == count;
        results[i] = result;
        order[before] = i;
        ended = before + 1; // partner: awaitMore()
        if (!isLast && before + 1 >= wakeAt) {
            wakeWaiter();
        }
        return isLast;
    }

    void drain() {
        submitted = false;
        wakeWaiter();
    }

    private void wakeWaiter() {
        Thread sleeper = waiter; // partner: the waiter names itself, then looks at what has happened
        if (sleeper != null) {
            LockSupport.unpark(sleeper);
        }
    }

    boolean isPending(int i) {
        return results[i] == ReadResult.PENDING;
    }

    int pages(int i) {
        return Extent.pages(bytes[i]);
    }
}
