package io.orbitkv.kit;

import io.orbitkv.nativeio.CompletionHandler;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.StorageFile;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.function.BooleanSupplier;

/**
 * A real folder whose drive hangs while a test says so: transfers of its rings, and looks at the room that it takes, begin when
 * it is released. For stores with threads of their own; what is read lands as late as on a drive that hangs.
 */
public final class StallingFolder implements DataFolder {
    private final DataFolder real;

    /** Guarded by this, as the next. */
    private boolean stalled;

    private boolean looksToo;

    /** A folder that does not hang yet. */
    public StallingFolder(DataFolder real) {
        this.real = real;
    }

    /** The drive hangs from now on. */
    public synchronized void stall() {
        stalled = true;
        looksToo = true;
    }

    /** Transfers hang from now on, and looks at the folder don't, as with a file system that is frozen. */
    public synchronized void stallTransfers() {
        stalled = true;
        looksToo = false;
    }

    /** The drive does what it was asked meanwhile. */
    public synchronized void release() {
        stalled = false;
        notifyAll();
    }

    synchronized boolean isStalled() {
        return stalled;
    }

    private synchronized void awaitRelease() {
        boolean interrupted = false;
        while (stalled && looksToo) {
            try {
                wait();
            } catch (InterruptedException e) {
                interrupted = true; // a drive that hangs can't be interrupted
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Sleeps while the drive hangs, until somebody says something or the time is over. */
    private synchronized void sleep(long nanos) {
        if (stalled && nanos >= 1_000_000) {
            try {
                wait(nanos / 1_000_000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private synchronized void wake() {
        notifyAll();
    }

    @Override
    public IoRing newRing(int depth, List<DataFolder> beside) {
        return new Ring(real.newRing(depth, beside));
    }

    private final class Ring implements IoRing {
        private final IoRing inner;

        /** Transfers that the drive has not begun: each tries to. The owner's. */
        private final Queue<BooleanSupplier> held = new ArrayDeque<>();

        private volatile boolean woken;

        private Ring(IoRing inner) {
            this.inner = inner;
        }

        @Override
        public Kind kind() {
            return inner.kind();
        }

        @Override
        public int depth() {
            return inner.depth();
        }

        @Override
        public int inFlight() {
            return inner.inFlight() + held.size();
        }

        @Override
        public boolean register(MemoryRegion region, long unitBytes) {
            return inner.register(region, unitBytes);
        }

        private boolean submit(BooleanSupplier transfer) {
            if (inFlight() >= depth()) {
                return false;
            }
            if (!isStalled() && held.isEmpty()) {
                return transfer.getAsBoolean();
            }
            return held.add(transfer);
        }

        private void pass() {
            while (!held.isEmpty() && held.peek().getAsBoolean()) {
                held.remove();
            }
        }

        @Override
        public boolean read(StorageFile file, long at, MemoryRegion region, long offset, int bytes, long token) {
            return submit(() -> inner.read(file, at, region, offset, bytes, token));
        }

        @Override
        public boolean write(StorageFile file, long at, MemoryRegion region, long offset, int bytes, long token) {
            return submit(() -> inner.write(file, at, region, offset, bytes, token));
        }

        @Override
        public boolean flush(StorageFile file, long token) {
            return submit(() -> inner.flush(file, token));
        }

        @Override
        public int poll(CompletionHandler handler, int limit) {
            if (isStalled()) {
                return 0;
            }
            pass();
            return inner.poll(handler, limit);
        }

        @Override
        public void await(long timeoutNanos) {
            if (woken || !isStalled()) {
                woken = false;
                pass();
                inner.await(timeoutNanos);
            } else {
                sleep(timeoutNanos);
            }
        }

        @Override
        public void wakeup() {
            woken = true;
            inner.wakeup();
            wake();
        }

        @Override
        public void close() {
            awaitRelease();
            while (!held.isEmpty()) {
                pass();
                inner.poll((token, result) -> {}, depth());
            }
            inner.close();
        }
    }

    @Override
    public long allocatedBytes(String name) {
        awaitRelease();
        return real.allocatedBytes(name);
    }

    @Override
    public String path() {
        return real.path();
    }

    @Override
    public String bootId() {
        return real.bootId();
    }

    @Override
    public void lock(String name, long waitNanos) {
        real.lock(name, waitNanos);
    }

    @Override
    public void makeFolder(String name) {
        real.makeFolder(name);
    }

    @Override
    public List<String> list(String name) {
        return real.list(name);
    }

    @Override
    public boolean exists(String name) {
        return real.exists(name);
    }

    @Override
    public StorageFile create(String name, long bytes) {
        return real.create(name, bytes);
    }

    @Override
    public void extend(String name, long bytes) {
        real.extend(name, bytes);
    }

    @Override
    public StorageFile open(String name, boolean writable) {
        return real.open(name, writable);
    }

    @Override
    public void rename(String from, String to) {
        real.rename(from, to);
    }

    @Override
    public void unlink(String name) {
        real.unlink(name);
    }

    @Override
    public void syncFolder(String name) {
        real.syncFolder(name);
    }

    @Override
    public long freeBytes() {
        return real.freeBytes();
    }

    @Override
    public void close() {
        real.close();
    }
}
