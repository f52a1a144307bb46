package io.orbitkv.tiers;

import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.tiers.SegmentTable.Life;
import java.util.function.IntPredicate;

/**
 * Has segments ready for lanes: free ones first, then sealed ones that the policy chooses, in one written order.
 *
 * <pre>
 * generation raised -> no pins -> no reads in flight -> header with the next use-sequence written -> flushed -> ready
 * </pre>
 *
 * <p>With {@link Durability#WRITTEN} nothing waits for the flush: no power loss is promised anything there, and after one
 * every payload is checked before it counts.
 *
 * <p>Several segments are prepared in one round, so that one fdatasync serves them. A segment that somebody keeps pinned
 * delays nobody: the next oldest is taken meanwhile.
 */
final class SegmentSupply {
    /** What {@link #take} answers when no segment is ready. */
    static final int NONE = -1;

    /** Most segments prepared ahead: more would give up blocks early for nothing. */
    static final int PREPARED_MAX = 8;

    /** One segment in so many may be prepared ahead. */
    private static final int SEGMENTS_PER_PREPARED = 64;

    /** Most segments whose readers are waited for at once. */
    private static final int RECLAIMING_MAX = 16;

    /** After so long another victim is looked for. */
    private static final long PATIENCE_NANOS = 10_000_000;

    /** How often pins are looked at while nothing else happens: whoever unpins doesn't wake the agent. */
    static final long PIN_CHECK_NANOS = 1_000_000;

    /** How often segments are looked for that can leave, while none can. */
    private static final long SURPLUS_CHECK_NANOS = 10_000_000;

    private enum Phase {
        IDLE,
        WRITING,
        FLUSHING
    }

    private final LogContext context;
    private final VictimPolicy policy;
    private final SegmentMover mover;
    private final Flusher flusher;
    private final SegmentExchange exchange;
    private final IntPredicate canLeave = segment -> true;
    private final SegmentHeader header;
    private final int preparedTarget;
    private long now;

    /** Nothing is prepared, let alone given up, before the first block wants to be written. */
    private boolean isWanted;

    private int target;

    private final int[] free;
    private int freeFirst;
    private int freeCount;

    private final int[] ready = new int[PREPARED_MAX];
    private int readyCount;

    /** Mostly up to {@link #RECLAIMING_MAX}; all segments may be among them when flushes fail. */
    private final int[] reclaiming;

    private final long[] reclaimingSince;
    private int reclaimingCount;

    // ---- the round ----
    private Phase phase = Phase.IDLE;
    private final int[] round = new int[PREPARED_MAX];
    private final boolean[] reused = new boolean[PREPARED_MAX];
    private final int[] files = new int[PREPARED_MAX];
    private int roundCount;
    private int fileCount;
    private int submitted;
    private int pending;

    SegmentSupply(LogContext context, LogState initial, SegmentMover mover, Flusher flusher) {
        this.context = context;
        this.policy = context.options.eviction().make();
        this.mover = mover;
        this.flusher = flusher;
        this.exchange = context.exchange;
        this.header = new SegmentHeader(context.geometry);
        LogGeometry geometry = context.geometry;
        int segments = geometry.segmentsPerFolder();
        this.preparedTarget = Math.min(PREPARED_MAX, Math.max(1, segments / SEGMENTS_PER_PREPARED));
        this.free = new int[segments];
        this.reclaiming = new int[Math.max(RECLAIMING_MAX, segments)];
        this.reclaimingSince = new long[reclaiming.length];
        for (int segment = context.drive; segment < geometry.segments(); segment += geometry.folders()) {
            if (!initial.isSealed(segment) && !initial.isAbsent(segment)) {
                free[freeCount++] = segment;
            }
        }
    }

    /** A segment with a durable header, or {@link #NONE}. */
    int take() {
        if (readyCount == 0) {
            return NONE;
        }
        int segment = ready[0];
        readyCount--;
        System.arraycopy(ready, 1, ready, 0, readyCount);
        context.table.move(segment, Life.OPEN);
        return segment;
    }

    /** One step; what it did, 0 for nothing. */
    int step(int lanesWaiting, long nowNanos) {
        now = nowNanos;
        return switch (phase) {
            case IDLE -> gather(lanesWaiting, nowNanos);
            case WRITING -> submitHeaders();
            case FLUSHING -> submitFlushes();
        };
    }

    /** How long until pins must be looked at again. */
    long nextTimerNanos() {
        boolean misses = reclaimingCount > 0 && (readyCount < target || exchange.hasSurplus());
        boolean waits = exchange.hasSurplus();
        return phase != Phase.IDLE
                ? Long.MAX_VALUE
                : misses ? PIN_CHECK_NANOS : waits ? SURPLUS_CHECK_NANOS : Long.MAX_VALUE;
    }

    /** No round is under way. */
    boolean isIdle() {
        return phase == Phase.IDLE;
    }

    private int gather(int lanesWaiting, long nowNanos) {
        int evicted = context.takeEvictionRequest() ? evictOne(nowNanos) : 0;
        evicted += exchangeSegments(lanesWaiting, nowNanos);
        isWanted |= lanesWaiting > 0;
        if (!isWanted) {
            return evicted;
        }
        boolean writesNothing = exchange.isStarved() && mover.busy() == 0;
        target = writesNothing ? 0 : Math.min(PREPARED_MAX, Math.max(preparedTarget, lanesWaiting));
        roundCount = 0;
        collectMoved(nowNanos);
        collectQuiet();
        if (readyCount <= target / 2 || lanesWaiting > readyCount) {
            collectFree();
            chooseVictims(lanesWaiting, nowNanos);
        }
        if (roundCount == 0) {
            return evicted;
        }
        beginRound();
        return 1 + submitHeaders();
    }

    /** Takes in what has come back, and lets go of what a folder has too much of, as far as that is possible now. */
    private int exchangeSegments(int lanesWaiting, long nowNanos) {
        int work = 0;
        for (int segment = exchange.takeArrived(); segment != NONE; segment = exchange.takeArrived()) {
            addFree(segment);
            work++;
        }
        if (!exchange.hasSurplus()) {
            return work;
        }
        if (mover.busy() > 0 && lanesWaiting > 0) {
            // Used blocks that are being moved come to an end first: their victims are held, and need segments to be
            // freed.
            if (readyCount + reclaimingCount + freeCount == 0
                    && context.table.candidates().isEmpty()) {
                context.requestSeal();
            }
            return work;
        }
        work += leaveQuiet() + leaveFree() + (mover.busy() == 0 ? leaveReady() : 0);
        return work + giveUpSurplus(nowNanos);
    }

    private void leave(int segment) {
        context.table.move(segment, Life.ABSENT);
        exchange.leave(segment);
    }

    private int leaveQuiet() {
        int kept = 0;
        for (int i = 0; i < reclaimingCount; i++) {
            int segment = reclaiming[i];
            if (exchange.mayLeave() && context.table.isQuiet(segment)) {
                leave(segment);
                context.probe.leave(CrashWindow.SEGMENT_REUSE);
            } else {
                reclaiming[kept] = segment;
                reclaimingSince[kept++] = reclaimingSince[i];
            }
        }
        int left = reclaimingCount - kept;
        reclaimingCount = kept;
        return left;
    }

    private int leaveFree() {
        int left = 0;
        for (int looked = freeCount; looked > 0; looked--) {
            int segment = free[freeFirst];
            freeFirst = freeFirst + 1 == free.length ? 0 : freeFirst + 1;
            freeCount--;
            if (exchange.mayLeave()) {
                leave(segment);
                left++;
            } else {
                pushFree(segment);
            }
        }
        return left;
    }

    /** Not while used blocks are being moved: they may need these to come to an end. */
    private int leaveReady() {
        int kept = 0;
        for (int i = 0; i < readyCount; i++) {
            if (exchange.mayLeave()) {
                leave(ready[i]);
            } else {
                ready[kept++] = ready[i];
            }
        }
        int left = readyCount - kept;
        readyCount = kept;
        return left;
    }

    /** Victims leave with their used blocks: the cap doesn't wait. */
    private int giveUpSurplus(long nowNanos) {
        int work = 0;
        // While nothing can leave, free segments may wait for it that would be counted as surplus a second time.
        while (reclaimingCount < RECLAIMING_MAX && !exchange.isFull()) {
            // beside those that wait for their readers already
            int victim = exchange.surplus() > reclaimingCount ? chooseVictim() : NONE;
            if (victim == NONE) {
                if (reclaimingCount == 0 && exchange.hasSurplus()) {
                    context.requestSeal();
                }
                break;
            }
            mover.drop(policy.appendsAgain() ? context.table.use().usedBlocks(victim) : 0);
            giveUp(victim);
            awaitReaders(victim, nowNanos);
            work++;
        }
        return work;
    }

    /** Victims whose used blocks lie elsewhere now. */
    private void collectMoved(long nowNanos) {
        while (reclaimingCount < RECLAIMING_MAX) {
            int victim = mover.takeDone();
            if (victim == NONE) {
                return;
            }
            giveUp(victim);
            awaitReaders(victim, nowNanos);
        }
    }

    private void awaitReaders(int victim, long nowNanos) {
        reclaiming[reclaimingCount] = victim;
        reclaimingSince[reclaimingCount++] = nowNanos;
    }

    /** Victims that nobody reads any more join the round; those that are too many for it are free. */
    private void collectQuiet() {
        int kept = 0;
        for (int i = 0; i < reclaimingCount; i++) {
            int segment = reclaiming[i];
            if (!context.table.isQuiet(segment)) {
                reclaiming[kept] = segment;
                reclaimingSince[kept++] = reclaimingSince[i];
            } else if (readyCount + roundCount < target) {
                join(segment, true);
            } else {
                addFree(segment);
                context.probe.leave(CrashWindow.SEGMENT_REUSE);
            }
        }
        reclaimingCount = kept;
    }

    /** Its old header stays until it is used again: until then a crash brings back its blocks, which harms nothing. */
    private void addFree(int segment) {
        putFree(segment);
        context.probe.leave(CrashWindow.SEGMENT_REUSE);
    }

    private void putFree(int segment) {
        context.table.move(segment, Life.FREE);
        pushFree(segment);
    }

    private void pushFree(int segment) {
        int end = freeFirst + freeCount;
        free[end < free.length ? end : end - free.length] = segment;
        freeCount++;
    }

    private void collectFree() {
        while (freeCount > 0 && readyCount + roundCount < target) {
            int segment = free[freeFirst];
            freeFirst = freeFirst + 1 == free.length ? 0 : freeFirst + 1;
            freeCount--;
            join(segment, false);
        }
    }

    /**
     * Victims with used blocks go to the mover. While lanes wait nobody waits for it: the next victims are taken too, and
     * where it has no room the used blocks of one go with it, so that the log gets on whatever readers use.
     */
    private void chooseVictims(int lanesWaiting, long nowNanos) {
        int hopeful = lanesWaiting > 0 ? 0 : mover.busy();
        for (int i = 0; i < reclaimingCount; i++) {
            hopeful += nowNanos - reclaimingSince[i] < PATIENCE_NANOS ? 1 : 0;
        }
        while (readyCount + roundCount + hopeful < target && reclaimingCount < RECLAIMING_MAX) {
            int victim = chooseVictim();
            if (victim == NONE) {
                return;
            }
            int used = policy.appendsAgain() ? context.table.use().usedBlocks(victim) : 0;
            if (used > 0 && mover.hasRoom()) {
                mover.begin(victim);
                hopeful += lanesWaiting > 0 ? 0 : 1;
                continue;
            }
            if (used > 0 && (lanesWaiting == 0 || readyCount + roundCount + hopeful > 0)) {
                return;
            }
            mover.drop(used);
            giveUp(victim);
            if (context.table.isQuiet(victim)) {
                join(victim, true);
            } else {
                awaitReaders(victim, nowNanos);
                hopeful++;
            }
        }
    }

    private int chooseVictim() {
        return policy.choose(context.table.candidates(), context.table.use(), canLeave);
    }

    /** From here on every extent of the segment is stale. */
    private void giveUp(int segment) {
        SegmentTable table = context.table;
        context.probe.enter(CrashWindow.SEGMENT_REUSE);
        long ended = table.useSequence(segment);
        table.move(segment, Life.RECLAIMING);
        table.generations().raise(segment);
        table.useSequence(segment, 0);
        NvmeCounters.add(context.counters.segmentsReused, 1);
        context.listener.onSegment(segment, ended, SegmentState.FREE, 0, 0, 0);
    }

    /** Gives a segment up before its pages are needed: the next round takes it. None is sealed: one is to be. */
    private int evictOne(long nowNanos) {
        if (reclaimingCount >= RECLAIMING_MAX) {
            return 0;
        }
        int victim = chooseVictim();
        if (victim == NONE) {
            context.requestSeal();
            return 1;
        }
        mover.drop(policy.appendsAgain() ? context.table.use().usedBlocks(victim) : 0);
        giveUp(victim);
        awaitReaders(victim, nowNanos);
        return 1;
    }

    private void join(int segment, boolean wasSealed) {
        context.table.move(segment, Life.PREPARING);
        round[roundCount] = segment;
        reused[roundCount++] = wasSealed;
    }

    private void beginRound() {
        fileCount = 0;
        for (int i = 0; i < roundCount; i++) {
            int segment = round[i];
            long use = context.shared.nextUse.getAndIncrement();
            context.table.useSequence(segment, use);
            header.encode(context.staging, context.prepareOffset(i), segment, use);
            addFile(context.io.file(segment));
        }
        phase = Phase.WRITING;
        submitted = 0;
        pending = 0;
    }

    private void addFile(int file) {
        for (int i = 0; i < fileCount; i++) {
            if (files[i] == file) {
                return;
            }
        }
        files[fileCount++] = file;
    }

    private int submitHeaders() {
        int work = 0;
        while (submitted < roundCount
                && context.io.write(
                        round[submitted],
                        0,
                        context.staging,
                        context.prepareOffset(submitted),
                        DiskFormat.PAGE_BYTES,
                        Token.pack(Token.SEGMENT_HEADER, 0, submitted))) {
            submitted++;
            pending++;
            work++;
        }
        return work;
    }

    private int submitFlushes() {
        int work = 0;
        while (submitted < fileCount
                && context.io.flush(files[submitted], Token.pack(Token.PREPARE_FLUSH, 0, submitted))) {
            submitted++;
            pending++;
            work++;
        }
        return work;
    }

    void onHeader(int i, int result) {
        pending--;
        if (result < 0) {
            context.failDrive("writing the header of segment", round[i], result);
        }
        if (context.isHalted()) {
            return;
        }
        NvmeCounters.add(context.counters.headerBytes, DiskFormat.PAGE_BYTES);
        boolean isFlushed = context.options.durability().flushesBeforeReuse();
        if (!isFlushed) {
            flusher.onWritten(round[i], now); // the next flush that somebody asks for takes it along
        }
        if (pending == 0 && submitted == roundCount) {
            if (!isFlushed) {
                endRound();
                return;
            }
            phase = Phase.FLUSHING;
            submitted = 0;
            submitFlushes();
        }
    }

    void onFlush(int i, int result) {
        pending--;
        if (result < 0) {
            flusher.fail(files[i]);
            context.failDrive("flushing segment file", files[i], result);
        }
        flusher.noticeFailedBeside();
        if (context.isHalted()) {
            return;
        }
        NvmeCounters.add(context.counters.flushes, 1);
        if (pending == 0 && submitted == fileCount) {
            endRound();
        }
    }

    /** The drive is out, and nothing is in flight: what was being prepared is free, and gets another header. */
    void giveUpRound() {
        for (int i = 0; phase != Phase.IDLE && i < roundCount; i++) {
            if (reused[i]) {
                context.probe.leave(CrashWindow.SEGMENT_REUSE);
            }
            putFree(round[i]);
        }
        phase = Phase.IDLE;
    }

    /** The flush of a segment has failed: its blocks are given up, and it is used again once nobody reads it. */
    void giveUpFailed(int segment, long nowNanos) {
        giveUp(segment);
        awaitReaders(segment, nowNanos);
    }

    /** The same of a segment that is ready, and whose header was to be flushed with what is written there: it gets another. */
    void giveUpPrepared(int segment) {
        int kept = 0;
        for (int i = 0; i < readyCount; i++) {
            if (ready[i] == segment) {
                putFree(segment);
            } else {
                ready[kept++] = ready[i];
            }
        }
        readyCount = kept;
    }

    /** A segment that was opened and holds nothing. */
    void giveBack(int segment) {
        context.listener.onSegment(segment, context.table.useSequence(segment), SegmentState.FREE, 0, 0, 0);
        putFree(segment);
    }

    private void endRound() {
        for (int i = 0; i < roundCount; i++) {
            context.table.move(round[i], Life.READY);
            ready[readyCount++] = round[i];
            if (reused[i]) {
                context.probe.leave(CrashWindow.SEGMENT_REUSE);
            }
        }
        phase = Phase.IDLE;
    }
}
