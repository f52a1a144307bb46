package io.orbitkv.nativeio;

/**
 * The current generation of every segment of a tier: a reader that was overtaken finds out here.
 *
 * <pre>
 * 4 bytes a segment, in order of their numbers: the generation, 1 to {@link Extent#GENERATION_MAX}
 * </pre>
 *
 * <p>Raised only by the tier that owns the segments; read by anybody, in this process or, where the memory is shared,
 * in another.
 */
public final class Generations implements AutoCloseable {
    private final MemoryRegion memory;
    private final int segments;

    /**
     * All segments at generation 1.
     *
     * @param segments how many, 1 to {@link Extent#SEGMENTS_MAX}
     */
    public Generations(int segments) {
        this(segments, false);
    }

    /**
     * The same, in memory that other processes may map and nobody but this one may write.
     *
     * @param segments how many
     * @param shared whether it is a sealed memfd
     */
    public Generations(int segments, boolean shared) {
        this.segments = segments;
        long bytes = (long) segments * Integer.BYTES;
        this.memory = shared
                ? MemoryRegion.sealed("orbitkv-generations", bytes, PageKind.SMALL, MemoryPurpose.SEGMENT_TABLE)
                : MemoryRegion.anonymous(bytes, PageKind.SMALL, MemoryPurpose.SEGMENT_TABLE);
        for (int segment = 0; segment < segments; segment++) {
            memory.putInt((long) segment * Integer.BYTES, 1);
        }
    }

    /** Where they stand. */
    public MemoryRegion memory() {
        return memory;
    }

    /** How many segments. */
    public int segments() {
        return segments;
    }

    /** The generation of a segment now. */
    public int current(int segment) {
        return memory.getIntAcquire((long) segment * Integer.BYTES);
    }

    /** Whether an extent names the present life of its segment; {@link Extent#NONE} never does. */
    public boolean isLive(long extent) {
        return extent != Extent.NONE && current(Extent.segment(extent)) == Extent.generation(extent);
    }

    /**
     * Starts the next life of a segment: every extent of the one before is stale from here on. Ordered before the
     * caller's following look at the segment's pins (partner: a reader pins, then asks {@link #isLive}).
     */
    public int raise(int segment) {
        int now = current(segment);
        int next = now == Extent.GENERATION_MAX ? 1 : now + 1;
        memory.putIntVolatile((long) segment * Integer.BYTES, next);
        return next;
    }

    @Override
    public void close() {
        memory.close();
    }
}
