package io.orbitkv.kit;

import io.orbitkv.nativeio.CompletionHandler;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFile;
import java.util.ArrayList;
import java.util.List;

/**
 * The ring of a simulated drive: transfers end out of order, each after a latency of its own on the simulated clock.
 *
 * <p>{@link #await} moves the clock to the next completion instead of sleeping, and {@link #poll} moves it a little, so
 * that one thread that steps all agents makes progress. A transfer takes effect when its completion is delivered.
 */
final class SimulatedRing implements IoRing {
    /** What a poll costs: lets time pass for owners that never wait. */
    static final long POLL_NANOS = 1_000;

    /** Longest that one wait moves the clock: an owner that waits for ever must not bring other timers down. */
    static final long AWAIT_NANOS_MAX = 1_000_000_000;

    /** Bounds the descriptors of one ring, as the kernel does. */
    static final int DEPTH_MAX = 1 << 14;

    /** A transfer or flush that was submitted. */
    private record Transfer(
            History.Operation completion,
            SimulatedFile file,
            long fileOffset,
            MemoryRegion region,
            long offset,
            int bytes,
            long token,
            FileContent.PendingWrite write,
            long writesCovered,
            long dueNanos) {}

    private final SimulatedDrive drive;
    private final SimulatedFolder folder;
    private final int depth;
    private final List<Transfer> transfers = new ArrayList<>();
    private Thread owner;
    private boolean wakeup;
    private boolean closed;
    private boolean closing;

    SimulatedRing(SimulatedDrive drive, SimulatedFolder folder, int depth) {
        if (depth < 1 || depth > DEPTH_MAX) {
            throw new OrbitKvException(ErrorCode.BAD_ARGUMENT, "depth of a ring is 1 to " + DEPTH_MAX + ": " + depth);
        }
        this.drive = drive;
        this.folder = folder;
        this.depth = depth;
    }

    @Override
    public Kind kind() {
        return Kind.SIMULATED;
    }

    @Override
    public int depth() {
        return depth;
    }

    @Override
    public int inFlight() {
        synchronized (drive) {
            return transfers.size();
        }
    }

    @Override
    public boolean register(MemoryRegion region, long unitBytes) {
        synchronized (drive) {
            requireOwner();
        }
        return false;
    }

    @Override
    public boolean read(StorageFile file, long fileOffset, MemoryRegion region, long offset, int bytes, long token) {
        synchronized (drive) {
            SimulatedFile simulated = requireUsable(file);
            simulated.requireAligned(fileOffset, region, offset, bytes);
            if (transfers.size() == depth) {
                return false;
            }
            drive.step();
            drive.record(History.Operation.SUBMIT_READ, simulated.content().number, fileOffset, bytes, 0, token);
            add(History.Operation.COMPLETE_READ, simulated, fileOffset, region, offset, bytes, token, null);
            return true;
        }
    }

    @Override
    public boolean write(StorageFile file, long fileOffset, MemoryRegion region, long offset, int bytes, long token) {
        synchronized (drive) {
            SimulatedFile simulated = requireUsable(file);
            simulated.requireWritable();
            simulated.requireAligned(fileOffset, region, offset, bytes);
            if (transfers.size() == depth) {
                return false;
            }
            boolean dies = drive.countOperation();
            FileContent content = simulated.content();
            FileContent.PendingWrite write = simulated.begin(fileOffset, region, offset, bytes);
            int checksum = simulated.checksum(region, offset, bytes);
            drive.record(History.Operation.SUBMIT_WRITE, content.number, fileOffset, bytes, checksum, token);
            if (dies) {
                throw drive.crash();
            }
            add(History.Operation.COMPLETE_WRITE, simulated, fileOffset, region, offset, bytes, token, write);
            return true;
        }
    }

    @Override
    public boolean flush(StorageFile file, long token) {
        synchronized (drive) {
            SimulatedFile simulated = requireUsable(file);
            if (transfers.size() == depth) {
                return false;
            }
            drive.step();
            drive.record(History.Operation.SUBMIT_FLUSH, simulated.content().number, 0, 0, 0, token);
            add(History.Operation.COMPLETE_FLUSH, simulated, 0, null, 0, 0, token, null);
            return true;
        }
    }

    private void add(
            History.Operation completion,
            SimulatedFile file,
            long fileOffset,
            MemoryRegion region,
            long offset,
            int bytes,
            long token,
            FileContent.PendingWrite write) {
        long due = drive.clock.nanoTime() + drive.faults.latencyNanos(drive.gen);
        long covered = file.content().writes();
        transfers.add(new Transfer(completion, file, fileOffset, region, offset, bytes, token, write, covered, due));
        file.inFlight++;
    }

    @Override
    public int poll(CompletionHandler handler, int limit) {
        int delivered = 0;
        synchronized (drive) {
            requireOwner();
            drive.clock.advance(POLL_NANOS);
        }
        while (delivered < limit) {
            long token;
            int result;
            synchronized (drive) {
                Transfer next = takeDue(drive.clock.nanoTime());
                if (next == null) {
                    break;
                }
                token = next.token;
                result = complete(next);
            }
            delivered++;
            handler.onCompletion(token, result); // outside the monitor: it may call anything
        }
        return delivered;
    }

    private Transfer takeDue(long nowNanos) {
        Transfer first = drive.faults.hangs() && !closing ? null : earliest();
        if (first == null || first.dueNanos > nowNanos) {
            return null;
        }
        transfers.remove(first);
        return first;
    }

    private Transfer earliest() {
        Transfer first = null;
        for (int i = 0; i < transfers.size(); i++) {
            Transfer transfer = transfers.get(i);
            if (first == null || transfer.dueNanos < first.dueNanos) {
                first = transfer;
            }
        }
        return first;
    }

    private int complete(Transfer transfer) {
        folder.requireAlive();
        drive.step();
        SimulatedFile file = transfer.file;
        file.inFlight--;
        return switch (transfer.completion) {
            case COMPLETE_READ ->
                file.readNow(
                        transfer.completion, transfer.fileOffset, transfer.region, transfer.offset, transfer.bytes);
            case COMPLETE_WRITE -> {
                if (transfer.write != null) {
                    file.content()
                            .takeAgain(transfer.write, transfer.region, transfer.offset, drive.scratch, drive.gen);
                }
                yield file.writeNow(transfer.completion, transfer.write, transfer.fileOffset, transfer.bytes, 0);
            }
            default -> file.flushNow(transfer.completion, transfer.writesCovered);
        };
    }

    @Override
    public void await(long timeoutNanos) {
        synchronized (drive) {
            requireOwner();
            if (wakeup) {
                wakeup = false;
                return;
            }
            long now = drive.clock.nanoTime();
            long until = now + Math.min(Math.max(timeoutNanos, 0), AWAIT_NANOS_MAX);
            Transfer first = drive.faults.hangs() ? null : earliest();
            drive.clock.advanceTo(first == null ? until : Math.min(until, first.dueNanos));
        }
    }

    @Override
    public void wakeup() {
        synchronized (drive) {
            wakeup = true;
        }
    }

    @Override
    public void close() {
        synchronized (drive) {
            if (closed || folder.isGone()) {
                return;
            }
            if (owner != null && owner.isAlive()) {
                requireOwner();
            }
            closing = true;
            while (!transfers.isEmpty()) {
                drive.clock.advanceTo(earliest().dueNanos);
                complete(takeDue(drive.clock.nanoTime()));
            }
            closed = true;
        }
    }

    private SimulatedFile requireUsable(StorageFile file) {
        requireOwner();
        if (!(file instanceof SimulatedFile simulated) || !simulated.folder().isOfMachine(folder)) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "the file " + file.name() + " is not of the folder that made this ring");
        }
        simulated.requireOpen();
        return simulated;
    }

    private void requireOwner() {
        folder.requireAlive();
        if (closed) {
            throw new OrbitKvException(ErrorCode.CLOSED, "the simulated ring is closed");
        }
        if (owner == null) {
            owner = Thread.currentThread();
        } else if (owner != Thread.currentThread()) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "a ring of " + owner.getName() + " is used by "
                            + Thread.currentThread().getName());
        }
    }
}
