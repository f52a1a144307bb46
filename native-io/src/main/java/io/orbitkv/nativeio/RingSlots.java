package io.orbitkv.nativeio;

/**
 * What a ring keeps of its transfers in flight: one slot each, all made beforehand, and the order in which they ended.
 *
 * <p>Owned by the ring's owner thread. A slot is free, in flight, or ended but not delivered.
 */
final class RingSlots {
    /** What a slot does. */
    enum Operation {
        READ,
        WRITE,
        FLUSH
    }

    /** Stands for the result of a slot in flight; no errno is that large. */
    private static final int RUNNING = Integer.MIN_VALUE;

    private final int[] free;
    private int freeCount;

    private final int[] ended;
    private int endedFirst;
    private int endedCount;

    final Operation[] operation;
    final DirectFile[] file;
    /** Holds on to the memory, which may be a view of a buffer that is garbage otherwise. */
    final MemoryRegion[] region;

    final long[] fileOffset;
    final long[] address;
    final int[] bytes;
    final long[] token;
    /** Bytes transferred so far. */
    final int[] done;
    /** How often the kernel asked to try again. */
    final int[] retries;

    final int[] result;

    RingSlots(int depth) {
        free = new int[depth];
        ended = new int[depth];
        operation = new Operation[depth];
        file = new DirectFile[depth];
        region = new MemoryRegion[depth];
        fileOffset = new long[depth];
        address = new long[depth];
        bytes = new int[depth];
        token = new long[depth];
        done = new int[depth];
        retries = new int[depth];
        result = new int[depth];
        for (int slot = 0; slot < depth; slot++) {
            free[slot] = depth - 1 - slot;
        }
        freeCount = depth;
    }

    int depth() {
        return free.length;
    }

    /** Slots in flight, or ended and not delivered. */
    int used() {
        return free.length - freeCount;
    }

    /** Slots that still wait for the drive. */
    int running() {
        return used() - endedCount;
    }

    /** Whether something waits to be delivered. */
    boolean hasEnded() {
        return endedCount > 0;
    }

    /** Takes a free slot for a transfer, or -1 when there is none. */
    int take(Operation what, DirectFile of, long at, MemoryRegion memory, long memoryAddress, int length, long name) {
        if (freeCount == 0) {
            return -1;
        }
        int slot = free[--freeCount];
        operation[slot] = what;
        file[slot] = of;
        region[slot] = memory;
        fileOffset[slot] = at;
        address[slot] = memoryAddress;
        bytes[slot] = length;
        token[slot] = name;
        done[slot] = 0;
        retries[slot] = 0;
        result[slot] = RUNNING;
        return slot;
    }

    /** Whether a slot is in flight. */
    boolean isRunning(int slot) {
        return file[slot] != null && result[slot] == RUNNING;
    }

    /** A slot has ended: bytes, or minus an errno. */
    void end(int slot, int value) {
        result[slot] = value;
        int last = endedFirst + endedCount;
        ended[last < ended.length ? last : last - ended.length] = slot;
        endedCount++;
    }

    /** Delivers the slot that ended first; it is free before the handler runs, which may submit again. */
    void deliverFirst(CompletionHandler handler) {
        int slot = dropFirst();
        handler.onCompletion(token[slot], result[slot]);
    }

    /** Frees the slot that ended first. */
    private int dropFirst() {
        int slot = ended[endedFirst];
        endedFirst = endedFirst + 1 == ended.length ? 0 : endedFirst + 1;
        endedCount--;
        file[slot] = null;
        region[slot] = null;
        free[freeCount++] = slot;
        return slot;
    }

    /** Drops what was not delivered. */
    void dropEnded() {
        while (endedCount > 0) {
            dropFirst();
        }
    }
}
