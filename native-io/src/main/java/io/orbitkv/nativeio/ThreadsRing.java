package io.orbitkv.nativeio;

import io.orbitkv.nativeio.RingSlots.Operation;
import java.util.concurrent.locks.LockSupport;

/**
 * A ring of threads that call pread, pwrite and fdatasync: what serves where io_uring is not allowed.
 *
 * <p>As fast as io_uring for large transfers, at more than twice the CPU time a transfer. Threads start when they are
 * needed and live as long as the ring. The kernel keeps the folder's lock by itself until the last thread of a killed
 * process has left its call.
 */
final class ThreadsRing implements IoRing {
    /** Most threads of a ring: deeper queues bring a drive nothing more that would pay for a thread each. */
    static final int THREADS_MAX = 64;

    private final RingFolders folder;
    private final RingSlots slots;
    private final RingOwner owner = new RingOwner();
    private final WakeState wake = new WakeState();
    private final Thread[] threads;
    private final int[] reaped;
    private int threadsStarted;
    private boolean closed;
    private boolean interrupted;
    private volatile boolean parked;

    /** Two queues of slot numbers; both have room for all slots. */
    private final IntQueue jobs;

    private final IntQueue results;

    ThreadsRing(RingFolders folder, int depth) {
        this.folder = folder;
        this.slots = new RingSlots(depth);
        this.threads = new Thread[Math.min(depth, THREADS_MAX)];
        this.jobs = new IntQueue(depth);
        this.results = new IntQueue(depth);
        this.reaped = new int[depth];
    }

    @Override
    public Kind kind() {
        return Kind.THREADS;
    }

    @Override
    public int depth() {
        return slots.depth();
    }

    @Override
    public int inFlight() {
        return slots.used();
    }

    @Override
    public boolean register(MemoryRegion region, long unitBytes) {
        enter();
        return false; // plain calls have no use for it
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

    private void enter() {
        owner.check();
        if (closed) {
            throw new OrbitKvException(ErrorCode.CLOSED, "the ring of " + folder + " is closed");
        }
    }

    private boolean submit(int slot) {
        if (slot < 0) {
            return false;
        }
        if (!slots.file[slot].acquire()) {
            slots.end(slot, -LibC.EBADF);
            return true;
        }
        if (jobs.add(slot) && threadsStarted < threads.length) { // nobody was waiting for it
            startThread();
        }
        return true;
    }

    private void startThread() {
        Thread thread = new Thread(this::work, "orbitkv-io-" + threadsStarted);
        thread.setDaemon(true);
        threads[threadsStarted++] = thread;
        thread.start();
    }

    /** What each thread does until the ring is closed. */
    private void work() {
        for (int slot = jobs.take(); slot >= 0; slot = jobs.take()) {
            DirectFile file = slots.file[slot];
            int result = transfer(slot, file);
            file.release();
            slots.done[slot] = result;
            results.add(slot);
            if (parked) { // partner: await() sets it, then looks at the results
                LockSupport.unpark(owner.thread());
            }
        }
    }

    private int transfer(int slot, DirectFile file) {
        long address = slots.address[slot];
        long fileOffset = slots.fileOffset[slot];
        int bytes = slots.bytes[slot];
        return switch (slots.operation[slot]) {
            case READ -> DirectFile.pread(file.fd(), address, fileOffset, bytes);
            case WRITE -> DirectFile.pwrite(file.fd(), address, fileOffset, bytes, file.bytes());
            case FLUSH -> DirectFile.fdatasync(file.fd());
        };
    }

    @Override
    public int poll(CompletionHandler handler, int limit) {
        enter();
        reap();
        int delivered = 0;
        while (delivered < limit && slots.hasEnded()) {
            delivered++;
            slots.deliverFirst(handler);
        }
        return delivered;
    }

    private void reap() {
        int count = results.drain(reaped);
        for (int i = 0; i < count; i++) {
            slots.end(reaped[i], slots.done[reaped[i]]);
        }
    }

    @Override
    public void await(long timeoutNanos) {
        enter();
        long start = System.nanoTime();
        reap();
        if (slots.hasEnded() || !wake.sleep()) {
            return;
        }
        parked = true;
        for (long left = timeoutNanos; left > 0; left = timeoutNanos - (System.nanoTime() - start)) {
            if (!results.isEmpty() || wake.isNotified()) {
                break;
            }
            LockSupport.parkNanos(this, left);
            if (Thread.interrupted()) { // or park would not park any more; an interrupt means nothing here
                interrupted = true;
            }
        }
        parked = false;
        wake.awake();
        reap();
        if (interrupted) {
            interrupted = false;
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void wakeup() {
        if (wake.wake()) {
            LockSupport.unpark(owner.thread());
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
        jobs.end(); // what is queued is still done
        for (int i = 0; i < threadsStarted; ) {
            try {
                threads[i].join();
                i++;
            } catch (InterruptedException e) {
                interrupted = true; // transfers can't be called back: their memory must outlive them
            }
        }
        wake.close();
        reap();
        slots.dropEnded();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
