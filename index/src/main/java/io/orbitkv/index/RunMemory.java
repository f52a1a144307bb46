package io.orbitkv.index;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/**
 * The memory that runs lie in: bounded, and reserved as a whole up front, so that it never grows; pages that were never
 * touched cost nothing.
 *
 * <pre>
 * memory   slabs of 256 KiB = 4096 units of 64 bytes; a slab holds runs of one class while it holds any
 * class    0    1    2    3
 * blocks   1    4   16   64     capacity of a run
 * units    2    4   12   45     see {@link Runs} for what is in them
 *
 * life of a slab (8 bytes, read by anybody):
 *  63                3 2     1  0
 * +-------------------+-------+---+
 * | counter           | class | 1 |  lowest bit: the slab is unassigned or changing its class
 * +-------------------+-------+---+
 * </pre>
 *
 * <p>A slab whose runs are all free goes back and can serve another class, so that a change in the length of prompts
 * strands nothing but the free runs of slabs that are in part used. A reader compares the life before and after it
 * read a run: memory that changed its class in between is noticed.
 *
 * <p>Bound: the memory holds {@link #BYTES_PER_BLOCK_MAX} bytes for every block, which is above the worst ratio of a
 * run that has just grown (17 blocks in 45 units: 170 bytes a block), and one slab a class on top.
 *
 * <p>Single writer; lives and run contents are read by any thread.
 */
final class RunMemory implements AutoCloseable {
    static final int CLASSES = 4;
    static final int UNIT_BYTES = 64;
    static final int SLAB_UNITS = 4096;
    static final int SLAB_SHIFT = 12;
    static final long SLAB_BYTES = (long) SLAB_UNITS * UNIT_BYTES;
    static final long BYTES_PER_BLOCK_MAX = 176;

    /** Behind the last run, so that a reader may touch a line more than a short run has. */
    static final long TOUCH_SLACK_BYTES = MemoryRegion.PAGE_BYTES;

    private static final int[] UNITS = {2, 4, 12, 45};
    private static final int NO_SLAB = -1;
    private static final int NO_RUN = -1;
    private static final int UNASSIGNED = -1;

    private final MemoryRegion memory;
    private final MemoryRegion lives;
    private final int slabs;

    // The writer's own notes about each slab.
    private final byte[] classOf;
    private final int[] used;
    private final int[] freeHead;
    private final int[] next;
    private final int[] previous;

    /** Per class, slabs that have a free run. */
    private final int[] open = new int[CLASSES];

    private int freeSlabs = NO_SLAB;
    private int slabsTouched;

    /** Written by the one writer only. */
    private final AtomicInteger slabsAssigned = new AtomicInteger();

    RunMemory(long blocksMax) {
        long bytes = blocksMax * BYTES_PER_BLOCK_MAX;
        this.slabs = Math.toIntExact((bytes + SLAB_BYTES - 1) / SLAB_BYTES + CLASSES);
        this.memory = MemoryRegion.anonymous(
                slabs * SLAB_BYTES + TOUCH_SLACK_BYTES, PageKind.TRANSPARENT_HUGE, MemoryPurpose.INDEX);
        this.lives = MemoryRegion.anonymous((long) slabs * Long.BYTES, PageKind.SMALL, MemoryPurpose.INDEX);
        this.classOf = new byte[slabs];
        this.used = new int[slabs];
        this.freeHead = new int[slabs];
        this.next = new int[slabs];
        this.previous = new int[slabs];
        Arrays.fill(classOf, (byte) UNASSIGNED);
        Arrays.fill(open, NO_SLAB);
        for (int slab = 0; slab < slabs; slab++) {
            lives.putLong((long) slab * Long.BYTES, 1);
        }
    }

    static int capacity(int sizeClass) {
        return 1 << (sizeClass << 1);
    }

    MemoryRegion memory() {
        return memory;
    }

    /** The life of the slab that a run lies in; partner of the release in {@link #assign}. */
    long life(long place) {
        return lives.getLongAcquire((Place.unit(place) >>> SLAB_SHIFT) * Long.BYTES);
    }

    /** Whether memory in this life holds runs of the class that the place names. */
    static boolean holds(long life, long place) {
        return (life & 7) == Place.sizeClass(place) << 1;
    }

    /** Takes a free run of a class: its sequence is odd, the rest undefined. {@link Place#NONE}: there is none. */
    long take(int sizeClass) {
        int slab = open[sizeClass];
        if (slab == NO_SLAB) {
            slab = takeSlab();
            if (slab == NO_SLAB) {
                return Place.NONE;
            }
            assign(slab, sizeClass);
        }
        long run = runAt(slab, freeHead[slab]);
        freeHead[slab] = (int) memory.getLong(Runs.base(run) + Runs.LINK);
        used[slab]++;
        if (freeHead[slab] == NO_RUN) {
            close(slab);
        }
        return run;
    }

    /** Gives a run back, whose sequence is odd already. */
    void free(long run) {
        int sizeClass = Place.sizeClass(run);
        int slab = (int) (Place.unit(run) >>> SLAB_SHIFT);
        int position = (int) (Place.unit(run) & (SLAB_UNITS - 1)) / UNITS[sizeClass];
        boolean wasFull = freeHead[slab] == NO_RUN;
        memory.putLong(Runs.base(run) + Runs.LINK, freeHead[slab]);
        freeHead[slab] = position;
        used[slab]--;
        if (wasFull) {
            open(slab);
        }
        // The last open slab of a class stays, so that one run that comes and goes doesn't clear a slab each time.
        if (used[slab] == 0 && (open[sizeClass] != slab || next[slab] != NO_SLAB)) {
            close(slab);
            giveBack(slab);
        }
    }

    /** Has pages ready for so many blocks in full runs, from the first slab on; ends early when told to. Any thread. */
    void makeReady(long blocks, BooleanSupplier isEnded) {
        long bytes = blocks * UNITS[CLASSES - 1] * UNIT_BYTES / capacity(CLASSES - 1);
        memory.populate(Math.min(bytes, memory.bytes()), isEnded);
    }

    private int takeSlab() {
        int slab = freeSlabs;
        if (slab != NO_SLAB) {
            freeSlabs = next[slab];
            return slab;
        }
        if (slabsTouched < slabs) {
            return slabsTouched++;
        }
        for (int sizeClass = 0; sizeClass < CLASSES; sizeClass++) {
            slab = open[sizeClass];
            if (slab != NO_SLAB && used[slab] == 0) {
                close(slab);
                countAssigned(-1);
                return slab;
            }
        }
        return NO_SLAB;
    }

    private void assign(int slab, int sizeClass) {
        beginChange(slab);
        classOf[slab] = (byte) sizeClass;
        int runs = runsPerSlab(sizeClass);
        for (int position = 0; position < runs; position++) {
            long base = Runs.base(Place.run((long) slab * SLAB_UNITS + (long) position * UNITS[sizeClass], sizeClass));
            memory.putLong(base + Runs.SEQUENCE, 1);
            memory.putLong(base + Runs.LINK, position + 1 == runs ? NO_RUN : position + 1);
        }
        freeHead[slab] = 0;
        used[slab] = 0;
        open(slab);
        countAssigned(1);
        long offset = (long) slab * Long.BYTES;
        // Partner: life(). Whoever sees the new class sees its runs marked free.
        lives.putLongRelease(offset, (lives.getLong(offset) >>> 3) + 1 << 3 | (long) sizeClass << 1);
    }

    private void countAssigned(int change) {
        slabsAssigned.lazySet(slabsAssigned.get() + change);
    }

    private void giveBack(int slab) {
        beginChange(slab);
        classOf[slab] = UNASSIGNED;
        next[slab] = freeSlabs;
        freeSlabs = slab;
        countAssigned(-1);
    }

    private void beginChange(int slab) {
        long offset = (long) slab * Long.BYTES;
        lives.putLong(offset, lives.getLong(offset) | 1);
        VarHandle.storeStoreFence(); // partner: the acquire fence between a reader's loads and its second look at the
        // life
    }

    private void open(int slab) {
        int sizeClass = classOf[slab];
        next[slab] = open[sizeClass];
        previous[slab] = NO_SLAB;
        if (next[slab] != NO_SLAB) {
            previous[next[slab]] = slab;
        }
        open[sizeClass] = slab;
    }

    private void close(int slab) {
        if (previous[slab] == NO_SLAB) {
            open[classOf[slab]] = next[slab];
        } else {
            next[previous[slab]] = next[slab];
        }
        if (next[slab] != NO_SLAB) {
            previous[next[slab]] = previous[slab];
        }
    }

    /** How many slabs were ever used: what a walk over all runs has to look at. */
    int slabsTouched() {
        return slabsTouched;
    }

    /** Runs, free ones included, of a slab now; 0 when it is unassigned. */
    int runsIn(int slab) {
        return classOf[slab] == UNASSIGNED ? 0 : runsPerSlab(classOf[slab]);
    }

    /** The run at a position of an assigned slab. */
    long runAt(int slab, int position) {
        int sizeClass = classOf[slab];
        return Place.run((long) slab * SLAB_UNITS + (long) position * UNITS[sizeClass], sizeClass);
    }

    private static int runsPerSlab(int sizeClass) {
        return SLAB_UNITS / UNITS[sizeClass];
    }

    long reservedBytes() {
        return memory.bytes() + lives.bytes();
    }

    /** Bytes of the slabs that hold runs now. */
    long assignedBytes() {
        return slabsAssigned.get() * SLAB_BYTES;
    }

    @Override
    public void close() {
        memory.close();
        lives.close();
    }
}
