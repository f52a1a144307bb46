package io.orbitkv.nativeio;

/**
 * Asynchronous reads, writes and flushes of one drive.
 *
 * <p>Owned by one thread: the thread that first calls {@link #poll} or a submitting method is the owner, and only it
 * may call anything but {@link #wakeup()}. Short transfers are continued inside; a handler sees whole ones or errors.
 * Memory and file of a transfer must stay valid until its completion was delivered: the kernel may still write there.
 *
 * <p>Transfers are page-aligned in memory, file and length. Nothing orders them among each other; a flush covers the
 * writes whose completions were delivered before it was submitted.
 */
public interface IoRing extends AutoCloseable {
    /** What stands behind a ring. */
    enum Kind {
        /** io_uring of the kernel. */
        URING,
        /** A pool of threads that call pread and pwrite. */
        THREADS,
        /** A simulated drive of the test kit. */
        SIMULATED
    }

    /** What stands behind this ring. */
    Kind kind();

    /** Most transfers in flight at once. */
    int depth();

    /** Transfers in flight: submitted, and their completion not delivered yet. */
    int inFlight();

    /** A piece of memory that is registered at once where nobody says better: as long as the largest segment. */
    long UNIT_BYTES = 64L << 20;

    /** {@link #register(MemoryRegion, long)} with pieces of {@link #UNIT_BYTES}. */
    default boolean register(MemoryRegion region) {
        return register(region, UNIT_BYTES);
    }

    /**
     * Makes transfers from and to a region cheaper (fixed buffers); transfers from and to other memory stay possible. Takes
     * no memory: what of the region is pinned is what transfers touch, piece by piece, as long as the limit on locked memory
     * allows.
     *
     * @param region must stay open until the ring is closed
     * @param unitBytes transfers lie within multiples of it, mostly: pieces are as long, or longer
     * @return whether it will be; false where the kernel has no such thing or the ring has no use for it
     */
    boolean register(MemoryRegion region, long unitBytes);

    /**
     * Submits a read.
     *
     * @param file an open file of the folder that made this ring
     * @param fileOffset in bytes, a multiple of the page
     * @param region where the bytes land
     * @param offset in bytes within the region; the address there is a multiple of the page
     * @param bytes how many, a multiple of the page, at least one page
     * @param token handed back at completion
     * @return false when {@link #depth()} transfers are in flight: nothing was submitted, poll first
     */
    boolean read(StorageFile file, long fileOffset, MemoryRegion region, long offset, int bytes, long token);

    /** Submits a write; see {@link #read}. */
    boolean write(StorageFile file, long fileOffset, MemoryRegion region, long offset, int bytes, long token);

    /** Submits an fdatasync; see {@link #read}. */
    boolean flush(StorageFile file, long token);

    /**
     * Hands to the kernel what was submitted and delivers completions that are there, without waiting.
     *
     * @param handler receives them on this thread; it may submit again
     * @param limit most completions to deliver
     * @return how many were delivered
     */
    int poll(CompletionHandler handler, int limit);

    /**
     * Hands to the kernel what was submitted and sleeps until a completion is there, somebody calls {@link #wakeup()},
     * or the time is over. A wakeup that came before is not lost: the next call returns at once.
     *
     * @param timeoutNanos longest sleep
     */
    void await(long timeoutNanos);

    /** Ends the owner's present or next {@link #await}. Any thread; cheap when the owner is awake. */
    void wakeup();

    /** Waits until nothing is in flight, then frees the ring. Completions that were not delivered are dropped. */
    @Override
    void close();
}
