package io.orbitkv.tiers;

import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.Resources;
import io.orbitkv.nativeio.WindowProbe;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.ToLongFunction;
import org.agrona.concurrent.NanoClock;

/**
 * The logs of a store's drives, mostly one: a ring, an agent and a health state each. Blocks are offered to the drives that
 * serve, so that equally many bytes go to each; what reads and positions ask for is asked of the drive that has it.
 *
 * <p>A lane of the store keeps to one drive for about a segment's bytes, so that a segment holds few requests. Who calls what
 * is as {@link NvmeTier} says; agents are run by the caller, each on a thread of its own.
 */
public final class Drives implements AutoCloseable {
    /** How often drives are looked at while something is under way. */
    private static final long WATCH_NANOS = 200_000_000;

    /** The same while no drive has anything under way. */
    private static final long QUIET_WATCH_NANOS = 2 * WATCH_NANOS;

    /** Whoever looks this late was held up himself, and so may the agents have been: that look tells nothing. */
    private static final long WATCH_LATE_NANOS = 3 * WATCH_NANOS;

    private final NvmeTier[] logs;
    private final LogShared shared;
    private final int segmentBytes;
    private final HostBlocks host;
    private final AtomicLong writtenMax = new AtomicLong();
    private final AtomicLong durableMax = new AtomicLong();
    private long lastLookNanos;
    private boolean looked;

    // ---- where lanes write; guarded by the store's writer lock ----
    private final int[] driveOf;
    private final int[] laneOf;
    private final long[] bytesLeft;
    private final long[] bytesOffered;
    private final BlockListing listing = new BlockListing();
    private int evictNext;

    /**
     * Opens the log's files; rings are made by the agents' threads.
     *
     * @param folders hold the segment files, all of them created and their contents judged; in the order of their numbers
     * @param geometry how the log is cut
     * @param initial what the opening found
     * @param generations of the log's segments; stay the caller's, open until this is closed
     * @param host where offered blocks lie
     * @param listener hears what happened, on the agents' threads: several at a time where there are several drives
     * @param clock the time
     * @param probe is told of windows that tests aim crashes at
     * @param options bounds of all drives together, but for the ring's
     */
    public Drives(
            DataFolders folders,
            LogGeometry geometry,
            LogState initial,
            Generations generations,
            HostBlocks host,
            NvmeListener listener,
            NanoClock clock,
            WindowProbe probe,
            NvmeOptions options) {
        int count = folders.count();
        this.host = host;
        this.segmentBytes = geometry.segmentBytes();
        this.shared = new LogShared(initial);
        this.logs = new NvmeTier[count];
        this.driveOf = new int[options.openSegments()];
        this.laneOf = new int[options.openSegments()];
        this.bytesLeft = new long[options.openSegments()];
        this.bytesOffered = new long[count];
        writtenMax.set(initial.lastPosition());
        durableMax.set(initial.durablePosition());
        NvmeOptions each = options.withOpenSegments((options.openSegments() + count - 1) / count)
                .withQueueBlocks((options.queueBlocks() + count - 1) / count);
        Resources made = new Resources();
        try {
            for (int drive = 0; drive < count; drive++) {
                logs[drive] = made.keep(new NvmeTier(
                        folders, drive, geometry, initial, shared, generations, host, listener, clock, probe, each));
            }
            made.release();
        } finally {
            made.close();
        }
    }

    /** How many drives. */
    public int count() {
        return logs.length;
    }

    /** The log of one drive, from 0. */
    public NvmeTier drive(int number) {
        return logs[number];
    }

    /** The log of the drive that a segment lies on. */
    public NvmeTier driveOfSegment(int segment) {
        return logs[segment % logs.length];
    }

    /** The drive that an extent lies on. */
    public int driveOf(long extent) {
        return logs.length == 1 ? 0 : Extent.segment(extent) % logs.length;
    }

    private NvmeTier of(long extent) {
        return logs[driveOf(extent)];
    }

    /**
     * Looks for drives that don't answer, and takes them out of service. Called as often as {@link #nextWatchNanos} says by one thread, which
     * has no drive to wait for.
     */
    public void watch(long nowNanos) {
        boolean late = !looked || nowNanos - lastLookNanos > WATCH_LATE_NANOS;
        looked = true;
        lastLookNanos = nowNanos;
        for (int drive = 0; drive < logs.length && !late; drive++) {
            logs[drive].watch(nowNanos);
        }
    }

    /** How long until the next look: nothing that is under way now is late by then. Any thread. */
    public long nextWatchNanos() {
        for (NvmeTier log : logs) {
            if (log.oldestTransferNanos() > 0) {
                return WATCH_NANOS;
            }
        }
        return QUIET_WATCH_NANOS;
    }

    // ---- saving: under the store's writer lock ----

    /** Whether any drive serves. Any thread. */
    public boolean isAnyServing() {
        for (NvmeTier log : logs) {
            if (log.isServing()) {
                return true;
            }
        }
        return false;
    }

    /** Whether any drive takes blocks: serves, and is not starved. Any thread. */
    public boolean isAnyTaking() {
        for (NvmeTier log : logs) {
            if (log.isTaking()) {
                return true;
            }
        }
        return false;
    }

    /** Whether the cap leaves no drive that serves segments enough: blocks stay in host memory. Any thread. */
    public boolean isStarved() {
        return isAnyServing() && !isAnyTaking();
    }

    /** Whether a drive is out of service. Any thread. */
    public boolean isAnyOut() {
        for (NvmeTier log : logs) {
            if (!log.isServing()) {
                return true;
            }
        }
        return false;
    }

    /** How many drives are out of service. Any thread. */
    public int countOut() {
        int out = 0;
        for (NvmeTier log : logs) {
            out += log.isServing() ? 0 : 1;
        }
        return out;
    }

    /** Blocks that can still be offered. */
    public int queueFree() {
        int free = 0;
        for (NvmeTier log : logs) {
            free += log.queueFree();
        }
        return free;
    }

    /**
     * Hands over a block; see {@link NvmeTier#offer}.
     *
     * @return false: no drive takes it, and the pin stays the caller's
     */
    public boolean offer(long hostExtent, long position, int lane) {
        int of = lane % driveOf.length;
        if (logs.length == 1) {
            if (logs[0].queueFree() <= 0) {
                return false;
            }
            logs[0].offer(hostExtent, position, of);
            return true;
        }
        if ((bytesLeft[of] <= 0 || logs[driveOf[of]].queueFree() <= 0) && !choose(of)) {
            return false;
        }
        long bytes = host.listing(hostExtent, listing).storedBytes();
        bytesLeft[of] -= bytes;
        bytesOffered[driveOf[of]] += bytes;
        logs[driveOf[of]].offer(hostExtent, position, laneOf[of]);
        return true;
    }

    /** Gives a lane the drive that got the fewest bytes, and of its lanes the one that the fewest others use. */
    private boolean choose(int lane) {
        int best = -1;
        for (int drive = 0; drive < logs.length; drive++) {
            boolean takes = logs[drive].queueFree() > 0;
            if (takes && (best < 0 || bytesOffered[drive] < bytesOffered[best])) {
                best = drive;
            }
        }
        if (best < 0) {
            return false;
        }
        evenOut(best);
        driveOf[lane] = best;
        laneOf[lane] = leastUsed(best, lane);
        bytesLeft[lane] = segmentBytes;
        return true;
    }

    /** A drive that was out does not draw every write when it is back: what it missed is forgotten. */
    private void evenOut(int drive) {
        long most = 0;
        for (long bytes : bytesOffered) {
            most = Math.max(most, bytes);
        }
        long least = most - (long) driveOf.length * segmentBytes;
        bytesOffered[drive] = Math.max(bytesOffered[drive], least);
    }

    private int leastUsed(int drive, int lane) {
        int best = 0;
        int bestUsers = Integer.MAX_VALUE;
        for (int candidate = 0; candidate < logs[drive].openSegmentsMax(); candidate++) {
            int users = 0;
            for (int other = 0; other < driveOf.length; other++) {
                boolean uses = other != lane && bytesLeft[other] > 0;
                users += uses && driveOf[other] == drive && laneOf[other] == candidate ? 1 : 0;
            }
            if (users < bestUsers) {
                best = candidate;
                bestUsers = users;
            }
        }
        return best;
    }

    // ---- reading: any thread ----

    /** A number for one use of any blocks, for {@link #markUsed}. */
    public long nextUse() {
        return logs[0].nextUse();
    }

    /** See {@link NvmeTier#markUsed}. */
    public void markUsed(long extent, long number) {
        of(extent).markUsed(extent, number);
    }

    /** Whether the drive that an extent lies on serves. */
    public boolean serves(long extent) {
        return of(extent).isServing();
    }

    /** See {@link NvmeTier#pin}; false also while the drive is out of service. */
    public boolean pin(long extent) {
        return extent != Extent.NONE && serves(extent) && of(extent).pin(extent);
    }

    /** See {@link NvmeTier#unpin}. */
    public void unpin(long extent) {
        of(extent).unpin(extent);
    }

    /** Nanoseconds for which reads of some drive are expected to wait behind a flush that is under way; 0 where none is. */
    public double flushNanosLeft() {
        double left = 0;
        for (NvmeTier log : logs) {
            left = Math.max(left, log.flushNanosLeft());
        }
        return left;
    }

    // ---- positions and numbers: any thread ----

    /** Every block offered up to here is in the log, or was given up ({@link #hasLost}). */
    public long writtenPosition() {
        return merged(NvmeTier::writtenPosition, writtenMax);
    }

    /** Every block offered up to here survives a power loss, or was given up ({@link #hasLost}). */
    public long durablePosition() {
        return merged(NvmeTier::durablePosition, durableMax);
    }

    /** The last offer is looked at before the drives: of those up to it each drive knows its own. */
    private long merged(ToLongFunction<NvmeTier> reached, AtomicLong most) {
        long upTo = shared.offered.get();
        for (NvmeTier log : logs) {
            long last = log.lastOfferedPosition();
            long of = reached.applyAsLong(log);
            upTo = of < last ? Math.min(upTo, of) : upTo;
        }
        long before = most.get();
        while (before < upTo && !most.compareAndSet(before, upTo)) {
            before = most.get();
        }
        return Math.max(before, upTo);
    }

    /** Whether a drive that is out of service, or has failed, keeps a position from being written or durable. */
    public boolean isHeldUp(long position, boolean durable) {
        for (NvmeTier log : logs) {
            long reached = durable ? log.durablePosition() : log.writtenPosition();
            if (!log.isServing() && reached < Math.min(position, log.lastOfferedPosition())) {
                return true;
            }
        }
        return false;
    }

    /**
     * Whether who waits for a position has to hear that blocks up to it were not written, since a drive went out of service:
     * always for positions of the last outage, once for later ones.
     */
    public boolean hasLost(long position) {
        return shared.lost.tell(position);
    }

    /** See {@link NvmeTier#requestWrite}. */
    public void requestWrite() {
        for (NvmeTier log : logs) {
            log.requestWrite();
        }
    }

    /** See {@link NvmeTier#requestFlush}. */
    public void requestFlush() {
        for (NvmeTier log : logs) {
            log.requestFlush();
        }
    }

    /** Asks a drive that serves to give its oldest segment up; the drives take turns. */
    public void requestEviction() {
        for (int i = 0; i < logs.length; i++) {
            NvmeTier log = logs[evictNext];
            evictNext = (evictNext + 1) % logs.length;
            if (log.isServing()) {
                log.requestEviction();
                return;
            }
        }
    }

    /** The use-sequence of a segment, 0 while it is free. */
    public long useSequence(int segment) {
        return driveOfSegment(segment).useSequence(segment);
    }

    /** The use-sequence that the next segment gets; exact once the agents have stopped. */
    public long nextUseSequence() {
        return shared.nextUse.get();
    }

    /** Segments that stayed so far because at least half of their blocks were used. */
    public long secondChances() {
        return sum(NvmeTier::secondChances);
    }

    /** Blocks that were offered and aren't settled. */
    public int queueDepth() {
        return (int) sum(NvmeTier::queueDepth);
    }

    /** A number of what the drives have done, together. */
    public long counted(ToLongFunction<NvmeCounters> which) {
        return sum(log -> which.applyAsLong(log.counters()));
    }

    private long sum(ToLongFunction<NvmeTier> which) {
        long sum = 0;
        for (NvmeTier log : logs) {
            sum += which.applyAsLong(log);
        }
        return sum;
    }

    /** Closes the files. The agents have stopped and nobody calls anything any more. Safe to call twice. */
    @Override
    public void close() {
        Resources all = new Resources();
        for (NvmeTier log : logs) {
            all.keep(log);
        }
        all.close();
    }
}
