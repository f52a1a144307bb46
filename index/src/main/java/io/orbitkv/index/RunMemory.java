package io.orbitkv.index;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The memory that runs lie in: bounded, and reserved as a whole up front, so that it never grows; pages that were never
 * touched cost nothing.
 *
 * <pre>
 * memory   chunks of 256 KiB = 4096 units of 64 bytes; a chunk holds runs of one class while it holds any
 * class    0    1    2    3
 * blocks   1    4   16   64     capacity of a run
 * units    2    4   11   41     see {@link Runs} for what is in them
 *
 * life of a chunk (8 bytes, read by anybody):
 *  63                3 2     1  0
 * +-------------------+-------+---+
 * | counter           | class | 1 |  lowest bit: the chunk is unassigned or changing its class
 * +-------------------+-------+---+
 * </pre>
 *
 * <p>A chunk whose runs are all free goes back and can serve another class, so that a change in the length of prompts
 * strands nothing but the free runs of chunks that are in part used. A reader compares the life before and after it
 * read a run: memory that changed its class in between is noticed.
 *
 * <p>Bound: the memory holds {@link #BYTES_PER_BLOCK_MAX} bytes for every block, which is above the worst ratio of a
 * run that has just grown (17 blocks in 41 units: 155 bytes a block), and one chunk a class on top.
 *
 * <p>Single writer; lives and run contents are read by any thread.
 */
final class RunMemory implements AutoCloseable {
    static final int CLASSES = 4;
    static final int UNIT_BYTES = 64;
    static final int CHUNK_UNITS = 4096;
    static final int CHUNK_SHIFT = 12;
    static final long CHUNK_BYTES = (long) CHUNK_UNITS * UNIT_BYTES;
    static final long BYTES_PER_BLOCK_MAX = 160;

    /** Behind the last run, so that a reader may touch a line more than a short run has. */
    static final long TOUCH_SLACK_BYTES = MemoryRegion.PAGE_BYTES;

    private static final int[] UNITS = {2, 4, 11, 41};
    private static final int NO_CHUNK = -1;
    private static final int NO_RUN = -1;
    private static final int UNASSIGNED = -1;

    private final MemoryRegion memory;
    private final MemoryRegion lives;
    private final int chunks;

    // The writer's own notes about each chunk.
    private final byte[] classOf;
    private final int[] used;
    private final int[] freeHead;
    private final int[] next;
    private final int[] previous;

    /** Per class, chunks that have a free run. */
    private final int[] open = new int[CLASSES];

    private int freeChunks = NO_CHUNK;
    private int chunksTouched;

    /** Written by the one writer only. */
    private final AtomicInteger chunksAssigned = new AtomicInteger();

    RunMemory(long blocksMax) {
        long bytes = blocksMax * BYTES_PER_BLOCK_MAX;
        this.chunks = Math.toIntExact((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES + CLASSES);
        this.memory = MemoryRegion.anonymous(
                chunks * CHUNK_BYTES + TOUCH_SLACK_BYTES, PageKind.TRANSPARENT_HUGE, MemoryPurpose.INDEX);
        this.lives = MemoryRegion.anonymous((long) chunks * Long.BYTES, PageKind.SMALL, MemoryPurpose.INDEX);
        this.classOf = new byte[chunks];
        this.used = new int[chunks];
        this.freeHead = new int[chunks];
        this.next = new int[chunks];
        this.previous = new int[chunks];
        Arrays.fill(classOf, (byte) UNASSIGNED);
        Arrays.fill(open, NO_CHUNK);
        for (int chunk = 0; chunk < chunks; chunk++) {
            lives.putLong((long) chunk * Long.BYTES, 1);
        }
    }

    static int capacity(int sizeClass) {
        return 1 << (sizeClass << 1);
    }

    MemoryRegion memory() {
        return memory;
    }

    /** The life of the chunk that a run lies in; partner of the release in {@link #assign}. */
    long life(long place) {
        return lives.getLongAcquire((Place.unit(place) >>> CHUNK_SHIFT) * Long.BYTES);
    }

    /** Whether memory in this life holds runs of the class that the place names. */
    static boolean holds(long life, long place) {
        return (life & 7) == Place.sizeClass(place) << 1;
    }

    /** Takes a free run of a class: its sequence is odd, the rest undefined. {@link Place#NONE}: there is none. */
    long take(int sizeClass) {
        int chunk = open[sizeClass];
        if (chunk == NO_CHUNK) {
            chunk = takeChunk();
            if (chunk == NO_CHUNK) {
                return Place.NONE;
            }
            assign(chunk, sizeClass);
        }
        long run = runAt(chunk, freeHead[chunk]);
        freeHead[chunk] = (int) memory.getLong(Runs.base(run) + Runs.LINK);
        used[chunk]++;
        if (freeHead[chunk] == NO_RUN) {
            close(chunk);
        }
        return run;
    }

    /** Gives a run back, whose sequence is odd already. */
    void free(long run) {
        int sizeClass = Place.sizeClass(run);
        int chunk = (int) (Place.unit(run) >>> CHUNK_SHIFT);
        int position = (int) (Place.unit(run) & (CHUNK_UNITS - 1)) / UNITS[sizeClass];
        boolean wasFull = freeHead[chunk] == NO_RUN;
        memory.putLong(Runs.base(run) + Runs.LINK, freeHead[chunk]);
        freeHead[chunk] = position;
        used[chunk]--;
        if (wasFull) {
            open(chunk);
        }
        // The last open chunk of a class stays, so that one run that comes and goes doesn't clear a chunk each time.
        if (used[chunk] == 0 && (open[sizeClass] != chunk || next[chunk] != NO_CHUNK)) {
            close(chunk);
            giveBack(chunk);
        }
    }

    private int takeChunk() {
        int chunk = freeChunks;
        if (chunk != NO_CHUNK) {
            freeChunks = next[chunk];
            return chunk;
        }
        if (chunksTouched < chunks) {
            return chunksTouched++;
        }
        for (int sizeClass = 0; sizeClass < CLASSES; sizeClass++) {
            chunk = open[sizeClass];
            if (chunk != NO_CHUNK && used[chunk] == 0) {
                close(chunk);
                countAssigned(-1);
                return chunk;
            }
        }
        return NO_CHUNK;
    }

    private void assign(int chunk, int sizeClass) {
        beginChange(chunk);
        classOf[chunk] = (byte) sizeClass;
        int runs = runsPerChunk(sizeClass);
        for (int position = 0; position < runs; position++) {
            long base =
                    Runs.base(Place.run((long) chunk * CHUNK_UNITS + (long) position * UNITS[sizeClass], sizeClass));
            memory.putLong(base + Runs.SEQUENCE, 1);
            memory.putLong(base + Runs.LINK, position + 1 == runs ? NO_RUN : position + 1);
        }
        freeHead[chunk] = 0;
        used[chunk] = 0;
        open(chunk);
        countAssigned(1);
        long offset = (long) chunk * Long.BYTES;
        // Partner: life(). Whoever sees the new class sees its runs marked free.
        lives.putLongRelease(offset, (lives.getLong(offset) >>> 3) + 1 << 3 | (long) sizeClass << 1);
    }

    private void countAssigned(int change) {
        chunksAssigned.lazySet(chunksAssigned.get() + change);
    }

    private void giveBack(int chunk) {
        beginChange(chunk);
        classOf[chunk] = UNASSIGNED;
        next[chunk] = freeChunks;
        freeChunks = chunk;
        countAssigned(-1);
    }

    private void beginChange(int chunk) {
        long offset = (long) chunk * Long.BYTES;
        lives.putLong(offset, lives.getLong(offset) | 1);
        VarHandle.storeStoreFence(); // partner: the acquire fence between a reader's loads and its second look at the
        // life
    }

    private void open(int chunk) {
        int sizeClass = classOf[chunk];
        next[chunk] = open[sizeClass];
        previous[chunk] = NO_CHUNK;
        if (next[chunk] != NO_CHUNK) {
            previous[next[chunk]] = chunk;
        }
        open[sizeClass] = chunk;
    }

    private void close(int chunk) {
        if (previous[chunk] == NO_CHUNK) {
            open[classOf[chunk]] = next[chunk];
        } else {
            next[previous[chunk]] = next[chunk];
        }
        if (next[chunk] != NO_CHUNK) {
            previous[next[chunk]] = previous[chunk];
        }
    }

    /** How many chunks were ever used: what a walk over all runs has to look at. */
    int chunksTouched() {
        return chunksTouched;
    }

    /** Runs, free ones included, of a chunk now; 0 when it is unassigned. */
    int runsIn(int chunk) {
        return classOf[chunk] == UNASSIGNED ? 0 : runsPerChunk(classOf[chunk]);
    }

    /** The run at a position of an assigned chunk. */
    long runAt(int chunk, int position) {
        int sizeClass = classOf[chunk];
        return Place.run((long) chunk * CHUNK_UNITS + (long) position * UNITS[sizeClass], sizeClass);
    }

    private static int runsPerChunk(int sizeClass) {
        return CHUNK_UNITS / UNITS[sizeClass];
    }

    long reservedBytes() {
        return memory.bytes() + lives.bytes();
    }

    /** Bytes of the chunks that hold runs now. */
    long assignedBytes() {
        return chunksAssigned.get() * CHUNK_BYTES;
    }

    @Override
    public void close() {
        memory.close();
        lives.close();
    }
}
