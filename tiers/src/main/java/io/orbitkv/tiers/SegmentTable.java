package io.orbitkv.tiers;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The segments of the log: what each is doing, its use-sequence, generation, pins and reads in flight.
 *
 * <pre>
 * FREE ----------------------> PREPARING -> READY -> OPEN -> SEALED -> DURABLE
 *   SEALED or DURABLE -> RECLAIMING -^
 * </pre>
 *
 * <p>Changed by the agent alone, apart from pins; read by anybody.
 */
final class SegmentTable implements AutoCloseable {
    /** What a segment is doing. */
    enum Life {
        /** Holds nothing. */
        FREE,
        /** Its blocks are given up; readers and reads in flight are waited for. */
        RECLAIMING,
        /** Its new header is on the way to the drive. */
        PREPARING,
        /** Its new header is durable: it can be written. */
        READY,
        /** A lane writes it. */
        OPEN,
        /** Has its footer. */
        SEALED,
        /** Has its footer, and all is flushed. */
        DURABLE
    }

    private final Life[] lives;
    private final AtomicIntegerArray counts = new AtomicIntegerArray(Life.values().length);
    private final AtomicLongArray useSequences;
    private final int[] readsInFlight;
    private final int[] blocks;
    private final int[] payloadPages;
    private final MemoryRegion pins;
    private final Generations generations;

    SegmentTable(LogState initial, Generations generations) {
        int segments = initial.segments();
        this.lives = new Life[segments];
        Arrays.fill(lives, Life.FREE);
        counts.set(Life.FREE.ordinal(), segments);
        this.useSequences = new AtomicLongArray(segments);
        this.readsInFlight = new int[segments];
        this.blocks = new int[segments];
        this.payloadPages = new int[segments];
        for (int segment = 0; segment < segments; segment++) {
            if (initial.isSealed(segment)) {
                move(segment, Life.SEALED);
                useSequences.setRelease(segment, initial.useSequence(segment));
            } else {
                useSequences.setRelease(segment, initial.emptyUse(segment));
            }
        }
        this.pins =
                MemoryRegion.anonymous((long) segments * Integer.BYTES, PageKind.SMALL, MemoryPurpose.SEGMENT_TABLE);
        this.generations = generations;
    }

    int segments() {
        return lives.length;
    }

    Life life(int segment) {
        return lives[segment];
    }

    void move(int segment, Life to) {
        Life from = lives[segment];
        lives[segment] = to;
        counts.setRelease(from.ordinal(), counts.getPlain(from.ordinal()) - 1);
        counts.setRelease(to.ordinal(), counts.getPlain(to.ordinal()) + 1);
    }

    boolean isSealed(int segment) {
        return lives[segment] == Life.SEALED || lives[segment] == Life.DURABLE;
    }

    int count(Life life) {
        return counts.getAcquire(life.ordinal());
    }

    long useSequence(int segment) {
        return useSequences.getAcquire(segment);
    }

    void useSequence(int segment, long value) {
        useSequences.setRelease(segment, value);
    }

    /** Keeps what a sealed segment holds. */
    void contents(int segment, int blockCount, int pages) {
        blocks[segment] = blockCount;
        payloadPages[segment] = pages;
    }

    int blocks(int segment) {
        return blocks[segment];
    }

    int payloadPages(int segment) {
        return payloadPages[segment];
    }

    Generations generations() {
        return generations;
    }

    /** Any thread: pins the segment first and looks at the generation then (partner: raise, then look at pins). */
    boolean pin(long extent) {
        pins.getAndAddInt(pinOffset(extent), 1);
        if (generations.isLive(extent)) {
            return true;
        }
        unpin(extent);
        return false;
    }

    /** Any thread. */
    void unpin(long extent) {
        int before = pins.getAndAddInt(pinOffset(extent), -1);
        assert before > 0 : "unpinned more often than pinned: " + Extent.text(extent);
    }

    /**
     * Agent: whether the bytes of an extent are there still. They outlive the extent while its segment waits for readers: a
     * block that was pinned in time is read, though its generation has ended since.
     */
    boolean holds(long extent) {
        int segment = Extent.segment(extent);
        int now = generations.current(segment);
        int of = Extent.generation(extent);
        return now == of || (lives[segment] == Life.RECLAIMING && now == (of == Extent.GENERATION_MAX ? 1 : of + 1));
    }

    private static long pinOffset(long extent) {
        return (long) Extent.segment(extent) * Integer.BYTES;
    }

    void readStarts(int segment) {
        readsInFlight[segment]++;
    }

    void readEnds(int segment) {
        readsInFlight[segment]--;
    }

    /** Whether nobody reads a segment whose generation was raised. */
    boolean isQuiet(int segment) {
        return readsInFlight[segment] == 0 && pins.getIntVolatile((long) segment * Integer.BYTES) == 0;
    }

    @Override
    public void close() {
        pins.close();
    }
}
