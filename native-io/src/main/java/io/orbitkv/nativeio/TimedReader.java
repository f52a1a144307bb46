package io.orbitkv.nativeio;

/**
 * Reads on the caller's own thread that it can walk away from: as fast as pread, since no other thread takes part, and bounded,
 * which a pread on a drive that hangs is not.
 *
 * <p>One read at a time, by whichever thread holds the reader; it may change hands between calls, as an object that is not
 * thread-safe may. A read that was given up still lands in its memory some day: until {@link #isDrained()} says so, neither the
 * memory nor the reader may be used for anything else.
 */
public final class TimedReader implements AutoCloseable {
    /** What {@link #read} answers when the time was over: the read is still under way. */
    public static final int PENDING = Integer.MIN_VALUE;

    private static final int ENTRIES = 2;

    private final Uring ring;

    // The read under way, if any.
    private DirectFile file;
    private long fileOffset;
    private long address;
    private int bytes;
    private int done;
    private int result;

    private TimedReader(Uring ring) {
        this.ring = ring;
    }

    /** A reader, or null where the kernel has no io_uring for this process. */
    static TimedReader open() {
        Uring made = null;
        boolean good = false;
        try {
            made = Uring.shared(ENTRIES);
            made.enable();
            good = true;
            return new TimedReader(made);
        } catch (OrbitKvException e) {
            if (e.code() != ErrorCode.NOT_AVAILABLE && e.code() != ErrorCode.OUT_OF_MEMORY) {
                throw e;
            }
            return null;
        } finally {
            if (!good && made != null) {
                made.close();
            }
        }
    }

    /**
     * Starts a read and waits for it.
     *
     * @param from an open file of a folder on this machine
     * @param offsetInFile in bytes, a multiple of the page
     * @param region where the bytes land
     * @param offset within the region; the address there is a multiple of the page
     * @param length how many bytes, a multiple of the page
     * @param timeoutNanos longest wait
     * @return the bytes; or minus an errno; or {@link #PENDING}, then {@link #await} goes on waiting
     */
    public int read(
            StorageFile from, long offsetInFile, MemoryRegion region, long offset, int length, long timeoutNanos) {
        if (file != null) {
            throw new OrbitKvException(ErrorCode.BUG, "a read is under way in this reader, of " + file);
        }
        DirectFile direct = (DirectFile) from;
        address = direct.address(offsetInFile, region, offset, length);
        if (!direct.acquire()) {
            return -LibC.EBADF;
        }
        file = direct;
        fileOffset = offsetInFile;
        bytes = length;
        done = 0;
        queue();
        return await(timeoutNanos);
    }

    private void queue() {
        ring.queue(Uring.OP_READ, 0, file.fd(), fileOffset + done, address + done, bytes - done, 0, 0, 0);
    }

    /** Waits further for a read that was {@link #PENDING}; see {@link #read}. */
    public int await(long timeoutNanos) {
        long start = System.nanoTime();
        for (long left = timeoutNanos; file != null; left = timeoutNanos - (System.nanoTime() - start)) {
            if (reap()) {
                return result;
            }
            if (left <= 0) {
                return PENDING;
            }
            ring.submitAndWait(left); // whatever it says: what has ended is looked at, and time goes on
        }
        return result;
    }

    /** Whether the read has ended; continues a short one. */
    private boolean reap() {
        while (file != null && ring.hasCompletion()) {
            int now = ring.result();
            ring.next();
            if (now == -LibC.EINTR || now == -LibC.EAGAIN) {
                queue();
            } else if (now <= 0) {
                end(now == 0 ? -LibC.ENODATA : now);
            } else {
                done += now;
                if (done == bytes) {
                    end(bytes);
                } else {
                    queue();
                }
            }
        }
        return file == null;
    }

    private void end(int with) {
        result = with;
        file.release();
        file = null;
    }

    /** Whether no read is under way any more. Does not wait. */
    public boolean isDrained() {
        if (file == null) {
            return true;
        }
        ring.submit();
        return reap();
    }

    /** Frees the ring; nothing may be under way. */
    @Override
    public void close() {
        if (file != null) {
            throw new OrbitKvException(ErrorCode.BUG, "a reader is closed while a read of " + file + " is under way");
        }
        ring.close();
    }
}
