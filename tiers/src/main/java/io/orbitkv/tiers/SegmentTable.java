package io.orbitkv.tiers;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import java.util.Arrays;
import java.util.Comparator;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;

/**
 * The segments of a drive's log: what each is doing, its use-sequence, generation, pins and reads in flight.
 *
 * <pre>
 * FREE ----------------------> PREPARING -> READY -> OPEN -> SEALED -> DURABLE
 *   SEALED or DURABLE -> RECLAIMING -^
 *   FREE, RECLAIMING or READY -> ABSENT -> FREE
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
        DURABLE,
        /** Has no pages, or is about to lose them: it is not the log's. */
        ABSENT
    }

    private final Life[] lives;
    private final AtomicIntegerArray counts = new AtomicIntegerArray(Life.values().length);
    private final AtomicLongArray useSequences;
    private final int[] readsInFlight;
    private final int[] blocks;
    private final int[] payloadPages;
    private final SegmentPins pins;

    /** Sealed segments that may be given up, in the order of their seals and second chances. */
    private final SegmentQueue candidates;

    private final SegmentUse use;
    private final Generations generations;

    /** The segments of one drive; those of others have their numbers, and stay as they are. */
    SegmentTable(LogState initial, Generations generations, LogGeometry geometry, int drive) {
        int segments = initial.segments();
        this.generations = generations;
        this.lives = new Life[segments];
        Arrays.fill(lives, Life.FREE);
        counts.set(Life.FREE.ordinal(), geometry.segmentsPerFolder());
        this.useSequences = new AtomicLongArray(segments);
        this.candidates = new SegmentQueue(segments);
        this.use = new SegmentUse(segments, geometry.segmentPages());
        this.readsInFlight = new int[segments];
        this.blocks = new int[segments];
        this.payloadPages = new int[segments];
        for (int segment = 0; segment < segments; segment++) {
            boolean holdsBlocks = initial.isSealed(segment);
            useSequences.setRelease(segment, holdsBlocks ? initial.useSequence(segment) : initial.emptyUse(segment));
        }
        IntStream.range(0, segments)
                .filter(segment -> geometry.folderOfSegment(segment) == drive && initial.isAbsent(segment))
                .forEach(segment -> move(segment, Life.ABSENT));
        IntStream.range(0, segments)
                .filter(segment -> geometry.folderOfSegment(segment) == drive && initial.isSealed(segment))
                .boxed()
                .sorted(Comparator.comparingLong(initial::useSequence))
                .forEach(segment -> move(segment, Life.SEALED));
        this.pins = new SegmentPins(segments);
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
        switch (to) {
            case SEALED -> {
                use.seal(segment, blocks[segment]);
                candidates.addLast(segment);
            }
            case RECLAIMING -> hold(segment);
            case PREPARING -> use.clear(segment);
            default -> {}
        }
        counts.setRelease(from.ordinal(), counts.getPlain(from.ordinal()) - 1);
        counts.setRelease(to.ordinal(), counts.getPlain(to.ordinal()) + 1);
    }

    boolean isSealed(int segment) {
        return lives[segment] == Life.SEALED || lives[segment] == Life.DURABLE;
    }

    /** Sealed segments that may be given up, the oldest first. */
    SegmentQueue candidates() {
        return candidates;
    }

    /** A sealed segment is no candidate any more, or for a while. */
    void hold(int segment) {
        if (candidates.contains(segment)) {
            candidates.remove(segment);
        }
    }

    /** A sealed segment is a candidate again, the youngest. */
    void release(int segment) {
        candidates.addLast(segment);
    }

    /** What was used of each segment. */
    SegmentUse use() {
        return use;
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
        return pins.pin(extent, generations);
    }

    /** Any thread. */
    void unpin(long extent) {
        pins.remove(Extent.segment(extent));
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

    void readStarts(int segment) {
        readsInFlight[segment]++;
    }

    void readEnds(int segment) {
        readsInFlight[segment]--;
    }

    /** Whether nobody reads a segment whose generation was raised. */
    boolean isQuiet(int segment) {
        return readsInFlight[segment] == 0 && pins.isFree(segment);
    }

    @Override
    public void close() {
        use.close();
        pins.close();
    }
}
