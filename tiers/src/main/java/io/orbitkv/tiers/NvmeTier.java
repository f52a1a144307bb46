package io.orbitkv.tiers;

import io.orbitkv.nativeio.CompletionHandler;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.TimedReader;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.tiers.SegmentTable.Life;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.NanoClock;

/**
 * The log of one drive: blocks, appended in batches to a few open segments, sealed, and given up in the order that an
 * {@link EvictionPolicy} decides.
 *
 * <p>It is an agent without a thread of its own: one thread calls {@link #onStart}, {@link #doWork} and {@link #await} in
 * turn, {@link #stop} until it answers true for a clean end, and {@link #onClose}. Then anybody calls {@link #close}.
 * Every loop of a step is bounded, and nothing is allocated once it runs.
 *
 * <p>A drive that answers with an error, or not in time ({@link #watch}), is out of service: nothing new goes there, what waited
 * for it is given back, and once its transfers have ended it is probed until it is well. Blocks that it has written stay
 * indexed; a flush that failed costs the segments that it was for.
 *
 * <p>Others call: {@link #offer} under the store's writer lock; everything that says so from any thread.
 */
public final class NvmeTier implements Agent, AutoCloseable {
    /** Longest sleep of an idle agent. */
    public static final long AWAIT_NANOS_MAX = 1_000_000_000;

    /** How often a caller that reads by itself looks whether the drive still serves. */
    private static final long READ_LOOK_NANOS = 50_000_000;

    /** Most completions of one step. */
    private static final int POLL_MAX = 256;

    /** Fewer segments can't be written and given up in turn. */
    private static final int SEGMENTS_MIN = 2;

    private final LogContext context;
    private final NanoClock clock;
    private final Positions positions;
    private final SegmentSupply supply;
    private final Flusher flusher;
    private final ReadService reads;
    private final LogLane[] lanes;
    private final SegmentMover mover;
    private final LogLane moverLane;
    private final DriveProbe driveProbe;
    private final CompletionHandler onCompletion = this::onCompletion;

    private volatile Thread agentThread;

    /** The outage that goes on is known to the probe. */
    private boolean outNoted;

    private boolean working;

    /** The last step did something, so that another may have more to do though nothing is in flight. */
    private boolean wasBusy;

    private boolean closed;

    /**
     * Opens the files of a log on one drive; the ring is made by the agent's thread.
     *
     * @param folders holds the segment files, all of them created and their contents judged
     * @param geometry how the log is cut
     * @param initial what the opening found
     * @param generations of the log's segments; stay the caller's, open until this is closed
     * @param host where offered blocks lie
     * @param listener hears what happened, on the agent's thread
     * @param clock the time
     * @param probe is told of windows that tests aim crashes at
     * @param options bounds
     */
    public NvmeTier(
            DataFolders folders,
            LogGeometry geometry,
            LogState initial,
            Generations generations,
            HostBlocks host,
            NvmeListener listener,
            NanoClock clock,
            WindowProbe probe,
            NvmeOptions options) {
        this(folders, 0, geometry, initial, new LogShared(initial), generations, host, listener, clock, probe, options);
    }

    /** Opens the files of one drive of a log that is spread over several; see {@link Drives}. */
    NvmeTier(
            DataFolders folders,
            int drive,
            LogGeometry geometry,
            LogState initial,
            LogShared shared,
            Generations generations,
            HostBlocks host,
            NvmeListener listener,
            NanoClock clock,
            WindowProbe probe,
            NvmeOptions options) {
        if (geometry.segmentsPerFolder() < SEGMENTS_MIN || initial.segments() != geometry.segments()) {
            throw new OrbitKvException(
                    ErrorCode.CAP_TOO_SMALL,
                    "a log of " + geometry + " (found: " + initial.segments() + ") needs at least " + SEGMENTS_MIN
                            + " segments a folder; raise the cap or take smaller segments");
        }
        this.clock = clock;
        this.context = new LogContext(
                drive,
                geometry,
                initial,
                shared,
                generations,
                host,
                listener,
                probe,
                options,
                folders.get(drive),
                clock);
        this.positions = new Positions(initial, shared);
        this.mover = new SegmentMover(context);
        this.flusher = new Flusher(context, positions, initial, clock.nanoTime());
        this.supply = new SegmentSupply(context, initial, mover, flusher);
        this.reads = new ReadService(context);
        this.lanes = new LogLane[context.lanes];
        for (int lane = 0; lane < lanes.length; lane++) {
            lanes[lane] = new LogLane(context, supply, flusher, lane);
        }
        this.moverLane = new LogLane(context, supply, flusher, lanes.length, mover);
        mover.appendTo(moverLane.queue(), flusher);
        this.driveProbe = new DriveProbe(context, flusher);
    }

    // ---- saving: under the store's writer lock ----

    /** Blocks that can still be offered, 0 unless the drive {@link #isTaking}. The caller holds the store's writer lock. */
    public int queueFree() {
        return isTaking() ? context.options.queueBlocks() - queueDepth() : 0;
    }

    /** Whether the drive serves, and the cap leaves it segments enough to write to. Any thread. */
    public boolean isTaking() {
        return isServing() && !isStarved();
    }

    /**
     * Hands over a block; the log takes over the caller's pin on its host extent and gives it back when the block is
     * written, or dropped because the drive is out. The caller holds the store's writer lock and saw {@link #queueFree()}
     * above 0.
     *
     * @param hostExtent where it lies
     * @param position its birth, larger than every one offered before
     * @param lane any number, not negative: blocks of one lane are written together
     */
    public void offer(long hostExtent, long position, int lane) {
        LaneQueue queue = lanes[lane % lanes.length].queue();
        queue.offer(hostExtent, position);
        positions.offer(position);
        if (isWorthWaking(queue.unsettledAfterOffer())) {
            wakeup();
        }
    }

    /**
     * An agent that sleeps beside a lane that isn't empty has set itself a timer, so only a lane's first blocks wake it, and
     * numbers that may fill a batch: a wakeup is a system call under the caller's lock.
     */
    private static boolean isWorthWaking(int unsettled) {
        return unsettled <= 1 || Integer.bitCount(unsettled) == 1 || unsettled == BatchHeader.LISTINGS_MAX;
    }

    // ---- reading: any thread ----

    /** The generations of the log's segments. */
    public Generations generations() {
        return context.table.generations();
    }

    /** A number for one use of any blocks, for {@link #markUsed}. Any thread. */
    public long nextUse() {
        return context.table.use().nextUse();
    }

    /** Notes that a block was used; a stale extent is ignored. Any thread. */
    public void markUsed(long extent, long number) {
        if (generations().isLive(extent)) {
            context.table.use().mark(extent, number);
        }
    }

    /** Segments that stayed so far because at least half of their blocks were used. Any thread. */
    public long secondChances() {
        return context.table.use().secondChances();
    }

    /** Keeps the bytes of an extent's segment in place; false: the extent is stale, nothing is pinned. Any thread. */
    public boolean pin(long extent) {
        return context.table.pin(extent);
    }

    /** Gives a pin back. Any thread. */
    public void unpin(long extent) {
        context.table.unpin(extent);
    }

    /**
     * Hands reads to the agent. Any thread, which holds a pin on each extent until it is done with the batch.
     *
     * @return false: too many batches are queued, or the drive is not serving; the batch is the caller's still
     */
    public boolean submit(ReadBatch batch) {
        if (!isServing() || !reads.submit(batch, this)) {
            return false;
        }
        context.io.readAt(clock.nanoTime());
        wakeup();
        return true;
    }

    /**
     * Reads a block's pages on the caller's thread. Any thread, which holds a pin. A read that takes as long as a transfer may
     * takes the drive out of service.
     *
     * @param reader nothing is under way in it
     * @param extent where the block lies
     * @param bytes its stored bytes; whole pages are read
     * @param into where they land
     * @param offset within the region, page-aligned, with room for whole pages
     * @param timeoutNanos longest wait
     * @return {@link ReadResult#DONE} or {@link ReadResult#FAILED}; {@link ReadResult#PENDING}: the time was over, or the drive
     *     is out, and the read will land some day ({@link TimedReader#isDrained()})
     */
    public ReadResult readNow(
            TimedReader reader, long extent, int bytes, MemoryRegion into, long offset, long timeoutNanos) {
        long length = pagesBytes(bytes);
        long start = clock.nanoTime();
        context.io.readAt(start);
        int result = context.io.readNow(reader, extent, into, offset, length, READ_LOOK_NANOS);
        while (result == TimedReader.PENDING) {
            long now = clock.nanoTime();
            long spent = now - start;
            if (isLate(spent, now)) {
                takeOutLate();
            }
            if (spent >= timeoutNanos || !isServing()) {
                return ReadResult.PENDING;
            }
            result = reader.await(Math.min(READ_LOOK_NANOS, timeoutNanos - spent));
        }
        if (result < 0) {
            reads.noteFailure(Extent.pages(bytes), extent, result);
            return ReadResult.FAILED;
        }
        context.counters.reads.getAndAdd(1);
        context.counters.readBytes.getAndAdd(length);
        return ReadResult.DONE;
    }

    static long pagesBytes(int storedBytes) {
        return (long) Extent.pages(storedBytes) * MemoryRegion.PAGE_BYTES;
    }

    // ---- positions and numbers: any thread ----

    /** Every block offered up to here is in the log, or was dropped. Any thread. */
    public long writtenPosition() {
        return positions.written();
    }

    /** Every block offered up to here survives a power loss. Any thread. */
    public long durablePosition() {
        return positions.durable();
    }

    /** Writes what is queued now, without linger. Any thread. */
    public void requestWrite() {
        positions.requestWrite();
        wakeup();
    }

    /** Writes what is queued now, without linger, then flushes. Any thread. */
    public void requestFlush() {
        positions.requestFlush();
        wakeup();
    }

    /** The use-sequence of a segment, 0 while it is free. Any thread. */
    public long useSequence(int segment) {
        return context.table.useSequence(segment);
    }

    /** Whether a segment looked sealed a moment ago: a hint, for its generation has the last word. Any thread. */
    public boolean isSealed(int segment) {
        return context.table.isSealed(segment);
    }

    /** What the log still does. Any thread. */
    public TierState state() {
        return context.state();
    }

    /** Whether reads and blocks are taken. Any thread. */
    public boolean isServing() {
        return context.state() == TierState.SERVING;
    }

    /**
     * Takes the drive out of service if a transfer has been under way for too long. Any thread but the agent's, which may hang
     * with its drive; it does no I/O and never waits.
     *
     * @return whether this call took it out
     */
    public boolean watch(long nowNanos) {
        return isLate(context.io.ageNanos(nowNanos), nowNanos) && takeOutLate();
    }

    private boolean isLate(long ageNanos, long nowNanos) {
        return context.io.isLate(ageNanos, context.options.driveTimeoutNanos(), nowNanos);
    }

    /** It did not answer in time: out, and its agent, if it does not hang itself, hears of it. Any thread. */
    private boolean takeOutLate() {
        boolean taken = context.takeOut(late());
        if (taken) {
            wakeup();
        }
        return taken;
    }

    private String late() {
        return "did not answer within " + context.options.driveTimeoutNanos() / 1_000_000 + " ms";
    }

    /** The last position that was offered to this drive. Any thread. */
    long lastOfferedPosition() {
        return positions.lastOffered();
    }

    /** The oldest transfer's time under way, 0 when there is none. Any thread. */
    public long oldestTransferNanos() {
        return context.io.ageNanos(clock.nanoTime());
    }

    /** Why the log has failed, or null. Any thread. */
    public OrbitKvException failure() {
        return context.failure();
    }

    /** Nanoseconds for which a read is expected to wait behind a flush that is under way; 0 where none is. Any thread. */
    double flushNanosLeft() {
        return context.io.flushNanosLeft(clock.nanoTime());
    }

    /** What the log has done. Any thread. */
    public NvmeCounters counters() {
        return context.counters;
    }

    /** Blocks that were offered and aren't settled. Any thread. */
    public int queueDepth() {
        int depth = 0;
        for (LogLane lane : lanes) {
            depth += lane.queue().unsettled();
        }
        return depth;
    }

    /** Read batches that wait for the agent. Any thread. */
    public int readQueueDepth() {
        return reads.queued();
    }

    /** Segments that hold nothing, or are being made ready for new blocks. Any thread. */
    public int segmentsFree() {
        SegmentTable table = context.table;
        return table.count(Life.FREE)
                + table.count(Life.RECLAIMING)
                + table.count(Life.PREPARING)
                + table.count(Life.READY);
    }

    /** Segments that are being written. Any thread. */
    public int segmentsOpen() {
        return context.table.count(Life.OPEN);
    }

    /** Segments that are sealed, durable or not. Any thread. */
    public int segmentsSealed() {
        return context.table.count(Life.SEALED) + context.table.count(Life.DURABLE);
    }

    /** Segments that are written at once. */
    public int openSegmentsMax() {
        return lanes.length;
    }

    // ---- the agent ----

    @Override
    public String roleName() {
        return "orbitkv-log-" + context.drive;
    }

    /** Makes the ring. */
    @Override
    public void onStart() {
        if (!context.io.isOpen()) {
            agentThread = Thread.currentThread();
            context.io.openRing(context.host, context.staging);
        }
    }

    @Override
    public int doWork() {
        return work(false);
    }

    private int work(boolean stopping) {
        onStart();
        if (working) {
            throw new OrbitKvException(ErrorCode.BUG, "the log's agent was entered from one of its own callbacks");
        }
        working = true;
        try {
            flusher.noticeFailedBeside();
            if (context.state() == TierState.OUT && !context.isOut()) {
                context.leave(late());
            }
            int done = context.hasFailed() ? workFailed() : context.isOut() ? workOut(stopping) : workServing(stopping);
            wasBusy = done > 0;
            return done;
        } catch (RuntimeException e) {
            context.fail(
                    e instanceof OrbitKvException known
                            ? known
                            : new OrbitKvException(ErrorCode.BUG, "the log's agent met " + e, e));
            wasBusy = true;
            return 1;
        } finally {
            working = false;
        }
    }

    /** Restores before write-back: reads enter the ring first. */
    private int workServing(boolean stopping) {
        int done = reads.start();
        done += context.io.ring().poll(onCompletion, POLL_MAX);
        long now = clock.nanoTime();
        context.io.stepAt(now);
        long writeRequest = positions.writeRequest();
        done += mover.step();
        done += moverLane.step(now, writeRequest, stopping); // first, so that saves don't take each segment before it
        int waiting = moverLane.isWaiting() ? 1 : 0;
        for (LogLane lane : lanes) {
            done += lane.step(now, writeRequest, stopping);
            done += stopping && lane.isWaiting() && context.exchange.isStarved() ? lane.abandon() : 0;
            waiting += lane.isWaiting() || (!stopping && lane.isNearlyFull()) ? 1 : 0;
        }
        if (!stopping || waiting > 0 || !supply.isIdle()) {
            done += supply.step(waiting, now);
        }
        done += settle() ? 1 : 0;
        return done + flusher.step(now, stopping && lanesAreDone());
    }

    /**
     * What waits is given back at once, what is in flight when its transfers have ended. Then, and only then, the drive is
     * probed: nothing that it may still do can meet anything that is new.
     */
    private int workOut(boolean stopping) {
        long now = clock.nanoTime();
        if (!outNoted) {
            outNoted = true;
            driveProbe.onOut(now);
            NvmeCounters.add(context.counters.outages, 1);
        }
        int done = reads.drop();
        done += context.io.ring().poll(onCompletion, POLL_MAX);
        for (LogLane lane : lanes) {
            done += lane.giveUp();
        }
        done += moverLane.giveUp();
        if (driveProbe.isUnderWay()) {
            done += driveProbe.step(now);
        } else if (context.io.ring().inFlight() == 0) {
            giveUpRounds(now);
            done += stopping ? 0 : driveProbe.step(now);
        }
        if (!context.isOut()) {
            outNoted = false;
        }
        return done + (settle() ? 1 : 0);
    }

    /** Nothing is in flight. */
    private void giveUpRounds(long now) {
        mover.giveUpAll();
        supply.giveUpRound();
        flusher.giveUpRound(now, segment -> giveUpFailed(segment, now));
    }

    private void giveUpFailed(int segment, long now) {
        supply.giveUpPrepared(segment);
        if (context.table.life(segment) == Life.OPEN || context.table.isSealed(segment)) {
            for (LogLane lane : lanes) {
                lane.onGivenUp(segment);
            }
            moverLane.onGivenUp(segment);
            supply.giveUpFailed(segment, now);
            NvmeCounters.add(context.counters.segmentsFailed, 1);
        }
    }

    private boolean settle() {
        boolean moved = positions.settle(lanes);
        if (moved) {
            context.listener.onPositions(positions.written(), positions.durable());
        }
        return moved;
    }

    /** Nothing new starts; what the drive still holds is waited for, then given back. */
    private int workFailed() {
        int done = context.io.ring().poll(onCompletion, POLL_MAX);
        done += reads.abandon();
        for (LogLane lane : lanes) {
            done += lane.abandon();
        }
        done += moverLane.abandon();
        return done;
    }

    private void onCompletion(long slot, int result) {
        long token = context.io.ended(slot);
        switch (Token.purpose(token)) {
            case Token.PAYLOAD -> lane(token).onPayload(result);
            case Token.BATCH_HEADER -> lane(token).onHeader(result);
            case Token.FOOTER -> lane(token).onFooter(result);
            case Token.MOVE_FOOTER -> mover.onFooter(Token.major(token), result);
            case Token.MOVE_PAYLOAD -> mover.onPayload(Token.major(token), Token.minor(token), result);
            case Token.SEGMENT_HEADER -> supply.onHeader(Token.minor(token), result);
            case Token.PREPARE_FLUSH -> supply.onFlush(Token.minor(token), result);
            case Token.FLUSH -> flusher.onFlush(Token.minor(token), result);
            case Token.PROBE -> driveProbe.onEnd(result);
            case Token.READ -> reads.onRead(Token.major(token), Token.minor(token), result);
            default -> throw new OrbitKvException(ErrorCode.BUG, "a transfer of unknown purpose ended: " + token);
        }
    }

    private LogLane lane(long token) {
        int number = Token.major(token);
        return number == lanes.length ? moverLane : lanes[number];
    }

    /** Hands submissions to the drive and sleeps until there is work, at most so long. Agent's thread. */
    public void await(long maxNanos) {
        long now = clock.nanoTime();
        long sleep = wasBusy ? 0 : Math.min(maxNanos, AWAIT_NANOS_MAX);
        if (context.isOut()) {
            sleep = Math.min(sleep, context.io.ring().inFlight() > 0 ? maxNanos : driveProbe.nextTimerNanos(now));
        } else if (!context.hasFailed()) {
            sleep = Math.min(sleep, flusher.nextTimerNanos(now));
            sleep = Math.min(sleep, supply.nextTimerNanos());
            sleep = Math.min(sleep, moverLane.nextTimerNanos(now));
            for (LogLane lane : lanes) {
                sleep = Math.min(sleep, lane.nextTimerNanos(now));
            }
        }
        context.io.ring().await(Math.max(0, sleep));
    }

    /** Asks for the oldest segment to be given up, to make room in the index. Any thread. */
    public void requestEviction() {
        context.requestEviction();
        wakeup();
    }

    // ---- the cap: one thread at a time ----

    /** Says how many segments the drive may have; the log gives up what is too much. One thread at a time. */
    public void segmentsTarget(int segments) {
        context.exchange.target(segments);
        wakeup();
    }

    /** A segment that the log has let go of, whose pages nobody uses any more; -1 for none. One thread at a time. */
    public int takeLeftSegment() {
        return context.exchange.takeLeft();
    }

    /** Gives the log a segment that has pages again, and nothing on them; false: later. One thread at a time. */
    public boolean giveSegment(int segment) {
        boolean given = context.exchange.arrive(segment);
        wakeup();
        return given;
    }

    /** Whether the cap leaves so few segments that nothing is written: blocks stay in host memory. Any thread. */
    public boolean isStarved() {
        return context.exchange.isStarved();
    }

    /** Gives a segment's pages back to the file system. Any thread, of a segment that is not the log's. */
    public void punch(int segment) {
        context.io.punch(segment);
    }

    /** Gives a segment pages that read as zeros; durable with a flush of its file. Any thread, as {@link #punch}. */
    public void allocate(int segment) {
        context.io.allocate(segment);
    }

    /**
     * Flushes a segment file on the caller's thread. Any thread. Where that fails the drive goes out of service, as with a flush
     * of the log's own: the kernel reports the loss of what was written to a file once, and some of that may be the log's.
     */
    public void flushFile(int file) {
        try {
            context.io.flushNow(file);
        } catch (OrbitKvException e) {
            flusher.failBeside(file);
            wakeup();
            throw e;
        }
    }

    /** The use-sequence that the next segment gets; exact once the agent has stopped. */
    public long nextUseSequence() {
        return context.shared.nextUse.get();
    }

    /** Ends the present or next {@link #await}. Any thread. */
    public void wakeup() {
        context.io.wakeup();
    }

    /** Makes a runner of this agent sleep in {@link #await} when there is nothing to do. */
    public IdleStrategy idleStrategy() {
        return new AwaitIdle(this);
    }

    boolean isAgentThread() {
        return agentThread == Thread.currentThread();
    }

    long nanoTime() {
        return clock.nanoTime();
    }

    /** For a caller that is the agent: whether the batch drained in time. */
    boolean workUntilDrained(ReadBatch batch, long start, long timeoutNanos) {
        while (!batch.isDrained()) {
            long left = timeoutNanos - (clock.nanoTime() - start);
            if (left <= 0 || !isServing()) {
                return false;
            }
            if (doWork() == 0) {
                await(left);
            }
        }
        return true;
    }

    /**
     * One step of a clean stop, instead of {@link #doWork}: writes what is queued, seals open segments, flushes, answers
     * reads. Nothing may be offered any more. Sleep in {@link #await} between steps, as long as it likes. Agent's thread.
     *
     * @return true when nothing is left to do: everything is durable, or the drive is out, or the log has failed, and nothing is in flight
     */
    public boolean stop() {
        if (state() == TierState.STOPPED) {
            return true;
        }
        work(true);
        boolean quiet = context.io.ring().inFlight() == 0;
        if (context.isHalted()) {
            return quiet && queueDepth() == 0 && reads.isIdle() && !driveProbe.isUnderWay();
        }
        if (quiet && lanesAreDone() && flusher.isClean() && reads.isIdle()) {
            context.stopped();
            return true;
        }
        return false;
    }

    private boolean lanesAreDone() {
        for (LogLane lane : lanes) {
            if (!lane.isDone()) {
                return false;
            }
        }
        return mover.isIdle() && moverLane.isDone() && positions.written() >= positions.offered();
    }

    /** Waits for the drive, frees the ring, and ends reads that nobody started. Agent's thread. */
    @Override
    public void onClose() {
        context.io.closeRing();
        reads.close();
        context.stopped();
    }

    /** Closes the files. The agent has stopped and nobody calls anything any more. Safe to call twice. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            onClose();
            mover.close();
            context.close();
        }
    }
}
