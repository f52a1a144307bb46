package io.orbitkv.nativeio;

import com.sun.jna.Native;
import io.orbitkv.nativeio.RingSlots.Operation;
import java.util.concurrent.locks.LockSupport;

/**
 * A ring over io_uring.
 *
 * <p>A request of the kernel is named by its slot's number. The owner sleeps in io_uring_enter; an eventfd that the ring
 * polls ends that sleep, and {@link WakeState} says when writing to it is needed. The folder's lock file stands in the
 * ring's table of files, so that after a {@code kill -9} the kernel keeps the lock until it has finished our transfers.
 */
final class UringRing implements IoRing {
    /** Names the poll of the eventfd; slots have numbers from 0 on. */
    private static final long WAKE = -1;

    /** After so many requests to try again one transfer fails with what the kernel said. */
    private static final int RETRIES_MAX = 100;

    /** How long to wait when the kernel has no memory for a request, or for transfers of an owner that has died. */
    private static final long PAUSE_NANOS = 1_000_000;

    private static final long DRAIN_NANOS = 100_000_000;

    private final RingFolders folder;
    private final RingSlots slots;
    private final RingOwner owner = new RingOwner();
    private final WakeState wake = new WakeState();
    private final Uring ring;
    private final UringBuffers buffers;
    private final UringFiles files;
    private final MemoryRegion signal;
    private final int eventFd;
    private boolean wakePolled;

    /** The reading end of a pipe whose writing end only the ring holds, or -1. */
    private int pipe = UringFiles.NONE;

    private boolean closed;

    UringRing(RingFolders folder, int depth) {
        this.folder = folder;
        this.slots = new RingSlots(depth);
        this.ring = new Uring(depth + 1); // one more for the poll of the eventfd
        this.buffers = new UringBuffers(ring);
        MemoryRegion word = null;
        int descriptor = -1;
        UringFiles table;
        try {
            word = MemoryRegion.anonymous(Long.BYTES, PageKind.SMALL, MemoryPurpose.RING);
            descriptor = LibC.eventfd(0, LibC.EFD_CLOEXEC | LibC.EFD_NONBLOCK);
            if (descriptor < 0) {
                throw new OrbitKvException(
                        ErrorCode.NOT_AVAILABLE, "eventfd failed: " + Errno.text(Native.getLastError()));
            }
            table = new UringFiles(ring, folder);
        } catch (RuntimeException e) {
            ring.close();
            if (word != null) {
                word.close();
            }
            if (descriptor >= 0) {
                LibC.close(descriptor);
            }
            throw e;
        }
        this.signal = word;
        this.eventFd = descriptor;
        this.files = table;
        folder.ringOpened(this);
    }

    @Override
    public Kind kind() {
        return Kind.URING;
    }

    @Override
    public int depth() {
        return slots.depth();
    }

    @Override
    public int inFlight() {
        return slots.used();
    }

    private void enter() {
        boolean first = owner.check();
        if (closed) {
            throw new OrbitKvException(ErrorCode.CLOSED, "the ring of " + folder + " is closed");
        }
        if (first) {
            ring.enable();
            files.keepLock();
            pipe = files.keepPipe();
        }
    }

    @Override
    public boolean register(MemoryRegion region, long unitBytes) {
        enter();
        return buffers.register(region, unitBytes);
    }

    @Override
    public boolean read(StorageFile file, long fileOffset, MemoryRegion region, long offset, int bytes, long token) {
        enter();
        DirectFile direct = folder.own(file);
        long address = direct.address(fileOffset, region, offset, bytes);
        return submit(slots.take(Operation.READ, direct, fileOffset, region, address, bytes, token));
    }

    @Override
    public boolean write(StorageFile file, long fileOffset, MemoryRegion region, long offset, int bytes, long token) {
        enter();
        DirectFile direct = folder.own(file);
        long address = direct.address(fileOffset, region, offset, bytes);
        return submit(slots.take(Operation.WRITE, direct, fileOffset, region, address, bytes, token));
    }

    @Override
    public boolean flush(StorageFile file, long token) {
        enter();
        return submit(slots.take(Operation.FLUSH, folder.own(file), 0, null, 0, 0, token));
    }

    private boolean submit(int slot) {
        if (slot < 0) {
            return false;
        }
        DirectFile file = slots.file[slot];
        if (slots.operation[slot] == Operation.WRITE && slots.fileOffset[slot] > file.bytes() - slots.bytes[slot]) {
            slots.end(slot, -LibC.EFBIG); // files never grow
        } else if (!file.acquire()) {
            slots.end(slot, -LibC.EBADF);
        } else {
            queue(slot);
        }
        return true;
    }

    /** Queues what is left of a slot's transfer. */
    private void queue(int slot) {
        DirectFile file = slots.file[slot];
        int place = files.placeFor(file);
        int flags = place == UringFiles.NONE ? 0 : Uring.SQE_FLAG_FIXED_FILE;
        int fd = place == UringFiles.NONE ? file.fd() : place;
        Operation operation = slots.operation[slot];
        if (operation == Operation.FLUSH) {
            ring.queue(Uring.OP_FSYNC, flags, fd, 0, 0, 0, Uring.FSYNC_DATASYNC, 0, slot);
            return;
        }
        int done = slots.done[slot];
        int left = slots.bytes[slot] - done;
        long address = slots.address[slot] + done;
        int piece = buffers.pieceFor(address, left);
        boolean isRead = operation == Operation.READ;
        int opcode = piece == UringBuffers.NONE
                ? (isRead ? Uring.OP_READ : Uring.OP_WRITE)
                : (isRead ? Uring.OP_READ_FIXED : Uring.OP_WRITE_FIXED);
        int buffer = piece == UringBuffers.NONE ? 0 : piece;
        ring.queue(opcode, flags, fd, slots.fileOffset[slot] + done, address, left, 0, buffer, slot);
    }

    @Override
    public int poll(CompletionHandler handler, int limit) {
        enter();
        files.dropGone();
        submitPending();
        reap();
        int delivered = 0;
        while (delivered < limit && slots.hasEnded()) {
            delivered++;
            slots.deliverFirst(handler);
        }
        return delivered;
    }

    /** Hands over what is pending; what the kernel has no memory for now stays pending. */
    private void submitPending() {
        // The kernel's mark is looked at once: it may stay set with nothing behind it until the next completion.
        boolean enter = ring.needsEnter();
        while (ring.pending() > 0 || enter) {
            enter = false;
            int before = ring.pending();
            int result = ring.submit();
            if (isBusy(result) || (result == 0 && before > 0 && ring.pending() == before)) {
                return;
            }
            requireGood(result);
        }
    }

    private static boolean isBusy(int result) {
        return result == -LibC.EAGAIN || result == -LibC.EBUSY;
    }

    private void requireGood(int result) {
        if (result < 0 && result != -LibC.EINTR && result != -LibC.ETIME) {
            throw new OrbitKvException(
                    ErrorCode.SYSTEM_CALL, "io_uring_enter failed for " + folder + ": " + Errno.text(-result));
        }
    }

    /** Takes all completions that are there from the kernel. */
    private void reap() {
        while (ring.hasCompletion()) {
            long name = ring.name();
            int result = ring.result();
            ring.next();
            if (name == WAKE) {
                wakePolled = false;
                LibC.read(eventFd, signal.address(0, Long.BYTES), Long.BYTES); // back to 0; nobody needs the number
            } else {
                complete((int) name, result);
            }
        }
    }

    private void complete(int slot, int result) {
        boolean again = result == -LibC.EAGAIN || result == -LibC.EINTR;
        if (again && ++slots.retries[slot] <= RETRIES_MAX) {
            queue(slot);
        } else if (result < 0) {
            end(slot, result);
        } else if (slots.operation[slot] == Operation.FLUSH) {
            end(slot, 0);
        } else if (result == 0) {
            end(slot, slots.operation[slot] == Operation.READ ? -LibC.ENODATA : -LibC.EIO);
        } else {
            slots.done[slot] += result;
            if (slots.done[slot] < slots.bytes[slot]) {
                queue(slot);
            } else {
                end(slot, slots.bytes[slot]);
            }
        }
    }

    private void end(int slot, int result) {
        slots.file[slot].release();
        slots.end(slot, result);
    }

    @Override
    public void await(long timeoutNanos) {
        enter();
        long start = System.nanoTime();
        files.dropGone();
        reap();
        if (slots.hasEnded()) {
            submitPending();
            return;
        }
        for (long left = timeoutNanos; ; left = timeoutNanos - (System.nanoTime() - start)) {
            pollWake();
            if (!wake.sleep()) {
                submitPending();
                return;
            }
            int result = ring.submitAndWait(left);
            boolean woken = wake.awake();
            reap();
            if (woken || slots.hasEnded() || left <= 0) {
                return;
            }
            if (isBusy(result)) {
                LockSupport.parkNanos(PAUSE_NANOS);
            } else {
                requireGood(result);
            }
        }
    }

    /** Lets the ring watch the eventfd, unless it does. */
    private void pollWake() {
        if (!wakePolled) {
            wakePolled = true;
            ring.queue(Uring.OP_POLL_ADD, 0, eventFd, 0, 0, 0, Uring.POLLIN, 0, WAKE);
        }
    }

    @Override
    public void wakeup() {
        if (wake.wake()) {
            LibC.eventfd_write(eventFd, 1);
            wake.signalled();
        }
    }

    @Override
    public void close() {
        owner.checkClose();
        if (closed) {
            return;
        }
        closed = true;
        folder.ringClosed(this);
        wake.close();
        LibC.eventfd_write(eventFd, 1); // ends the poll of the eventfd
        if (owner.isCurrent()) {
            drain();
            ring.unregisterAll();
            ring.close();
        } else {
            ring.unregisterAll();
            ring.close();
            awaitKernel();
        }
        slots.dropEnded();
        if (pipe >= 0) {
            LibC.close(pipe);
        }
        LibC.close(eventFd);
        signal.close();
    }

    private void drain() {
        while (slots.running() > 0 || wakePolled) {
            if (isBusy(ring.submitAndWait(DRAIN_NANOS))) {
                LockSupport.parkNanos(PAUSE_NANOS);
            }
            reap();
        }
    }

    /**
     * Waits until the kernel has freed the ring, which it does when the last transfer has ended. The owner has died (or
     * there never was one), so nobody can enter the ring and completions don't come out of it any more.
     */
    private void awaitKernel() {
        if (slots.running() > 0) {
            if (pipe < 0) {
                throw new OrbitKvException(
                        ErrorCode.BUG,
                        "the thread that owns a ring of " + folder + " died with " + slots.running()
                                + " transfers in flight, whose end can't be proved: end this process");
            }
            long got;
            do {
                got = LibC.read(pipe, signal.address(0, Long.BYTES), Long.BYTES); // nobody writes: 0 at the end
            } while (got < 0 && Native.getLastError() == LibC.EINTR);
        }
        for (int slot = 0; slot < slots.depth(); slot++) {
            if (slots.isRunning(slot)) {
                end(slot, -LibC.ECANCELED);
            }
        }
    }
}
