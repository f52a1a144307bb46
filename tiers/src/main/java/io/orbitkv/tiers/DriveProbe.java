package io.orbitkv.tiers;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.tiers.SegmentTable.Life;

/**
 * Tries a drive that is out, once it has ended all transfers: reads a page, writes one, and flushes what was written before,
 * all of it in time. After an attempt that failed it rests, twice as long each time; so it does when a drive that has just come
 * back goes out again.
 *
 * <p>The page that is written is the header of a segment, with the bytes that it has already, so that no page is set apart for
 * it. It can't come late: a drive whose probe has not ended is not used.
 */
final class DriveProbe {
    /** Pages of staging: one to read into, one to write from. */
    static final int PAGES = 2;

    private static final long REST_NANOS_MIN = 100_000_000;

    /** A drive that goes out again so soon has not been well. */
    private static final long RELAPSE_NANOS = 10_000_000_000L;

    private enum Phase {
        RESTING,
        TRANSFERS,
        FLUSHING
    }

    private final LogContext context;
    private final Flusher flusher;
    private final SegmentHeader header;
    private Phase phase = Phase.RESTING;
    private long restNanos = REST_NANOS_MIN;
    private long notBefore;
    private long backSince;
    private long began;
    private boolean wasOut;
    private boolean readSubmitted;
    private boolean writeSubmitted;
    private int segment;
    private int pending;
    private boolean bad;
    private long round;

    DriveProbe(LogContext context, Flusher flusher) {
        this.context = context;
        this.flusher = flusher;
        this.header = new SegmentHeader(context.geometry);
    }

    /** The drive has gone out. */
    void onOut(long nowNanos) {
        boolean relapse = wasOut && nowNanos - backSince < RELAPSE_NANOS;
        restNanos = relapse ? Math.min(2 * restNanos, context.options.probeNanosMax()) : REST_NANOS_MIN;
        notBefore = nowNanos + restNanos;
        wasOut = true;
        phase = Phase.RESTING;
    }

    boolean isUnderWay() {
        return phase != Phase.RESTING;
    }

    /** How long until the next attempt. */
    long nextTimerNanos(long nowNanos) {
        return phase == Phase.RESTING ? Math.max(0, notBefore - nowNanos) : Long.MAX_VALUE;
    }

    /** One step; what it did, 0 for nothing. Nothing but the probe's own transfers is in flight. */
    int step(long nowNanos) {
        return switch (phase) {
            case RESTING -> begin(nowNanos);
            case TRANSFERS -> transfer(nowNanos);
            case FLUSHING -> flush(nowNanos);
        };
    }

    private int begin(long nowNanos) {
        if (nowNanos - notBefore < 0 || !context.move(TierState.OUT, TierState.RETURNING)) {
            return 0;
        }
        began = nowNanos;
        bad = false;
        pending = 0;
        segment = written();
        readSubmitted = false;
        writeSubmitted = segment == SegmentSupply.NONE;
        phase = Phase.TRANSFERS;
        return 1 + transfer(nowNanos);
    }

    /** A segment whose header is known, or none in a log that never wrote. */
    private int written() {
        int segments = context.geometry.segments();
        for (int i = context.drive; i < segments; i += context.geometry.folders()) {
            if (context.table.useSequence(i) != 0
                    && context.table.life(i) != Life.ABSENT) { // that would get a page again
                return i;
            }
        }
        return SegmentSupply.NONE;
    }

    private int transfer(long nowNanos) {
        if (!readSubmitted) {
            int from = segment == SegmentSupply.NONE ? context.drive : segment;
            readSubmitted = context.io.read(
                    Extent.pack(from, 0, 1), context.staging, context.probeOffset(), DiskFormat.PAGE_BYTES, token());
            pending += readSubmitted ? 1 : 0;
        }
        if (!writeSubmitted) {
            long from = context.probeOffset() + DiskFormat.PAGE_BYTES;
            header.encode(context.staging, from, segment, context.table.useSequence(segment));
            writeSubmitted = context.io.write(segment, 0, context.staging, from, DiskFormat.PAGE_BYTES, token());
            pending += writeSubmitted ? 1 : 0;
        }
        if (pending > 0) {
            return 0;
        }
        if (isBad(nowNanos)) {
            return rest(nowNanos);
        }
        if (segment != SegmentSupply.NONE) {
            flusher.onProbed(segment, nowNanos);
        }
        round = flusher.requestRound();
        phase = Phase.FLUSHING;
        return 1 + flush(nowNanos);
    }

    private static long token() {
        return Token.pack(Token.PROBE, 0, 0);
    }

    void onEnd(int result) {
        pending--;
        bad |= result < 0;
    }

    private int flush(long nowNanos) {
        if (isBad(nowNanos)) {
            return context.io.ring().inFlight() == 0 ? rest(nowNanos) : 0;
        }
        int work = flusher.step(nowNanos, false);
        if (!flusher.isComplete(round)) {
            return work;
        }
        phase = Phase.RESTING;
        backSince = nowNanos;
        context.comeBack();
        return work + 1;
    }

    /** Too late is bad, whoever has seen it first. */
    private boolean isBad(long nowNanos) {
        return bad || context.state() != TierState.RETURNING || nowNanos - began > context.options.driveTimeoutNanos();
    }

    private int rest(long nowNanos) {
        context.takeOut("its probe has failed");
        phase = Phase.RESTING;
        restNanos = Math.min(2 * restNanos, context.options.probeNanosMax());
        notBefore = nowNanos + restNanos;
        return 1;
    }
}
