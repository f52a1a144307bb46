package io.orbitkv.tiers;

import io.orbitkv.tiers.SegmentTable.Life;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.IntConsumer;

/**
 * Makes durable what was written: rounds of one fdatasync for each file that was written since the round before.
 *
 * <p>A round covers the position that was written when it began, and the segments that were sealed by then. A flush that
 * fails is not tried again for what it was to cover: what was written to that file since the round before the failing one is
 * lost, as far as anybody can know, and the segments that hold it are given up.
 */
final class Flusher {
    private final LogContext context;
    private final Positions positions;

    // ---- written since the last round began ----
    private final boolean[] isDirty;
    private final int[] dirty;
    private int dirtyCount;
    private long dirtySince;

    /** Per segment the round after which it was written last, -1 where it was not in this life of the store. */
    private final long[] writtenAfter;

    /** The last round that ended well: what was written after an earlier one is durable. */
    private long durableRound;

    /** Files whose flush has failed, until their segments are given up. */
    private final boolean[] isFailed;

    /** The same, of flushes on other threads, until the agent hears of it. */
    private final AtomicIntegerArray failedBeside;

    private volatile boolean anyFailedBeside;

    // ---- sealed and not yet durable, a ring over all segments ----
    private final int[] sealed;
    private final boolean[] isQueued;
    private final long[] sealedInRound;
    private int sealedFirst;
    private int sealedCount;

    // ---- the round ----
    private boolean active;
    private long roundNumber;
    private long roundRequested;
    private long roundPosition;
    private int roundSealed;
    private final int[] files;
    private int fileCount;
    private int submitted;
    private int pending;

    Flusher(LogContext context, Positions positions, LogState initial, long nowNanos) {
        this.context = context;
        this.positions = positions;
        int segments = context.geometry.segments();
        this.isDirty = new boolean[context.io.fileCount()];
        this.dirty = new int[context.io.fileCount()];
        this.files = new int[context.io.fileCount()];
        this.sealed = new int[segments];
        this.isQueued = new boolean[segments];
        this.sealedInRound = new long[segments];
        this.writtenAfter = new long[segments];
        this.isFailed = new boolean[files.length];
        this.failedBeside = new AtomicIntegerArray(files.length);
        Arrays.fill(writtenAfter, -1);
        for (int segment = context.drive; segment < segments; segment += context.geometry.folders()) {
            if (initial.isSealed(segment)) {
                onSealed(segment);
                if (initial.durablePosition() < initial.lastPosition()) {
                    onWritten(segment, nowNanos);
                }
            }
        }
    }

    /** A write to a segment has ended well. */
    void onWritten(int segment, long nowNanos) {
        writtenAfter[segment] = roundNumber;
        dirty(context.io.file(segment), nowNanos);
    }

    private void dirty(int file, long nowNanos) {
        if (!isDirty[file]) {
            isDirty[file] = true;
            if (dirtyCount == 0) {
                dirtySince = nowNanos;
            }
            dirty[dirtyCount++] = file;
        }
    }

    /** The footer of a segment was written. */
    void onSealed(int segment) {
        sealedInRound[segment] = roundNumber;
        if (!isQueued[segment]) {
            isQueued[segment] = true;
            pushSealed(segment);
        }
    }

    private void pushSealed(int segment) {
        int last = sealedFirst + sealedCount++;
        sealed[last < sealed.length ? last : last - sealed.length] = segment;
    }

    private int popSealed() {
        int segment = sealed[sealedFirst];
        sealedFirst = sealedFirst + 1 == sealed.length ? 0 : sealedFirst + 1;
        sealedCount--;
        return segment;
    }

    /**
     * One step; what it did, 0 for nothing.
     *
     * @param last whether nothing more will be written, so that what is there is flushed at once
     */
    int step(long nowNanos, boolean last) {
        if (active) {
            return submit();
        }
        if (!isDue(nowNanos, last)) {
            return 0;
        }
        begin();
        int work = 1 + submit();
        if (fileCount == 0) {
            end();
        }
        return work;
    }

    /** Asks for a round that covers all that is written by now, and says its number. */
    long requestRound() {
        roundRequested = roundNumber + 1;
        return roundRequested;
    }

    /** Whether a round, or a later one, has ended well. */
    boolean isComplete(long round) {
        return durableRound >= round;
    }

    private boolean isDue(long nowNanos, boolean last) {
        if (dirtyCount == 0) {
            return roundRequested > roundNumber
                    || positions.durable() < positions.written()
                    || (last && sealedCount > 0);
        }
        return last
                || roundRequested > roundNumber
                || positions.isFlushDue()
                || switch (context.options.durability()) {
                    case WRITTEN -> false;
                    case INTERVAL -> nowNanos - dirtySince >= context.options.flushIntervalNanos();
                    case ALWAYS -> true;
                };
    }

    /** Nothing left to make durable. */
    boolean isClean() {
        return !active && dirtyCount == 0 && sealedCount == 0;
    }

    /** How long until {@link #step} has something to do by itself. */
    long nextTimerNanos(long nowNanos) {
        return !active && dirtyCount > 0 && context.options.durability() == Durability.INTERVAL
                ? Math.max(0, dirtySince + context.options.flushIntervalNanos() - nowNanos)
                : Long.MAX_VALUE;
    }

    private void begin() {
        active = true;
        roundNumber++;
        roundPosition = positions.written();
        roundSealed = sealedCount;
        fileCount = dirtyCount;
        for (int i = 0; i < dirtyCount; i++) {
            files[i] = dirty[i];
            isDirty[dirty[i]] = false;
        }
        dirtyCount = 0;
        submitted = 0;
        pending = 0;
    }

    private int submit() {
        int work = 0;
        while (submitted < fileCount && context.io.flush(files[submitted], Token.pack(Token.FLUSH, 0, submitted))) {
            submitted++;
            pending++;
            work++;
        }
        return work;
    }

    void onFlush(int i, int result) {
        pending--;
        if (result < 0) {
            fail(files[i]);
            context.failDrive("flushing segment file", files[i], result);
        }
        noticeFailedBeside(); // the kernel tells of a loss once, and may have told that one
        if (context.hasFailed() || (context.isOut() && context.state() != TierState.RETURNING)) {
            return;
        }
        NvmeCounters.add(context.counters.flushes, 1);
        if (pending == 0 && submitted == fileCount) {
            end();
        }
    }

    private void end() {
        active = false;
        durableRound = roundNumber;
        boolean moved = roundPosition > positions.durable();
        positions.flushed(roundPosition);
        for (int i = 0; i < roundSealed; i++) {
            int segment = popSealed();
            if (context.table.life(segment) == Life.SEALED && sealedInRound[segment] >= roundNumber) {
                pushSealed(segment); // sealed anew while the round ran
                continue;
            }
            isQueued[segment] = false;
            if (context.table.life(segment) == Life.SEALED) {
                becomeDurable(segment);
            }
        }
        if (moved) {
            context.listener.onPositions(positions.written(), positions.durable());
        }
    }

    /** The header of a segment was written again, with what it had held: its file is to be flushed, and nothing can be lost. */
    void onProbed(int segment, long nowNanos) {
        dirty(context.io.file(segment), nowNanos);
    }

    /** A flush of a file has failed, of whoever asked for it. */
    void fail(int file) {
        isFailed[file] = true;
    }

    /** The same. Any thread; the agent has to be woken. */
    void failBeside(int file) {
        failedBeside.set(file, 1);
        anyFailedBeside = true;
    }

    /** Takes the drive out where a flush on another thread has failed: what that was to cover may be this log's. */
    void noticeFailedBeside() {
        if (!anyFailedBeside) {
            return;
        }
        anyFailedBeside = false; // partner: failBeside() sets it last
        for (int file = 0; file < failedBeside.length(); file++) {
            if (failedBeside.getAndSet(file, 0) != 0) {
                fail(file);
            }
        }
        context.leave("a flush on behalf of the cap has failed");
    }

    /**
     * The drive is out, and nothing is in flight: the round is undone, so that its files are flushed again when the drive
     * returns, but for those whose flush has failed.
     *
     * @param failed takes each segment that holds what such a flush was to make durable
     */
    void giveUpRound(long nowNanos, IntConsumer failed) {
        for (int i = 0; active && i < fileCount; i++) {
            dirty(files[i], nowNanos);
        }
        active = false;
        boolean any = false;
        for (int segment = context.drive; segment < writtenAfter.length; segment += context.geometry.folders()) {
            if (isFailed[context.io.file(segment)] && writtenAfter[segment] >= durableRound) {
                writtenAfter[segment] = -1;
                any = true;
                failed.accept(segment);
            }
        }
        if (any) {
            context.shared.lost.add(positions.durable() + 1, positions.written());
        }
        forgetFailedFiles();
    }

    /** What is left in them is durable, or given up. */
    private void forgetFailedFiles() {
        int kept = 0;
        for (int i = 0; i < dirtyCount; i++) {
            int file = dirty[i];
            if (isFailed[file]) {
                isDirty[file] = false;
            } else {
                dirty[kept++] = file;
            }
        }
        dirtyCount = kept;
        Arrays.fill(isFailed, false);
    }

    private void becomeDurable(int segment) {
        SegmentTable table = context.table;
        table.move(segment, Life.DURABLE);
        int pages = table.payloadPages(segment);
        // Of a segment from an earlier life of the store only recovery knows the contents. Where segments are put to
        // use
        // again without a flush, a durable row would vouch for pages that were overwritten since.
        if (pages > 0 && context.options.durability().flushesBeforeReuse()) {
            context.listener.onSegment(
                    segment,
                    table.useSequence(segment),
                    SegmentState.DURABLE,
                    table.blocks(segment),
                    pages,
                    context.geometry.segmentPages() - pages);
        }
    }
}
