package io.orbitkv.kit;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFile;

/** An open file of a {@link SimulatedFolder}. Its blocking operations are done when they return, and take no time. */
final class SimulatedFile implements StorageFile {
    private static final int EIO = 5;
    private static final int EFBIG = 27;
    private static final int ENOSPC = 28;
    private static final int ENODATA = 61;

    private final SimulatedDrive drive;
    private final SimulatedFolder folder;
    private final String name;
    private final FileContent content;
    private final boolean writable;
    private final BlockChecksum checksum = new BlockChecksum();
    private boolean closed;
    int inFlight;

    SimulatedFile(SimulatedDrive drive, SimulatedFolder folder, String name, FileContent content, boolean writable) {
        this.drive = drive;
        this.folder = folder;
        this.name = name;
        this.content = content;
        this.writable = writable;
    }

    FileContent content() {
        return content;
    }

    SimulatedFolder folder() {
        return folder;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public long bytes() {
        return content.bytes;
    }

    @Override
    public void read(long fileOffset, MemoryRegion region, long offset, int bytes) {
        synchronized (drive) {
            requireOpen();
            requireAligned(fileOffset, region, offset, bytes);
            drive.step();
            int result = readNow(History.Operation.READ, fileOffset, region, offset, bytes);
            if (result < 0) {
                throw failed("read", fileOffset, bytes, result);
            }
        }
    }

    /** The effect of a read: bytes, or minus an errno. */
    int readNow(History.Operation operation, long fileOffset, MemoryRegion region, long offset, int bytes) {
        Faults faults = drive.faults;
        int errno = fileOffset + bytes > content.bytes ? ENODATA : faults.strikes(Fault.READ_ERROR) ? EIO : 0;
        if (errno != 0) {
            drive.record(operation, content.number, fileOffset, bytes, 0, -errno);
            return -errno;
        }
        boolean isElsewhere = faults.strikes(Fault.MISDIRECTED_READ);
        long from = isElsewhere ? elsewhere(Fault.MISDIRECTED_READ, fileOffset, bytes) : fileOffset;
        content.read(from, region, offset, bytes, drive.scratch, drive.gen);
        if (isElsewhere) {
            content.harm(Fault.MISDIRECTED_READ, fileOffset, bytes);
        }
        if (faults.strikes(Fault.ROT_ON_READ)) {
            Gen choice = faults.gen(Fault.ROT_ON_READ);
            int bit = choice.below(bytes * Byte.SIZE);
            long at = offset + bit / Byte.SIZE;
            region.putByte(at, (byte) (region.getByte(at) ^ 1 << bit % Byte.SIZE));
            content.harm(Fault.ROT_ON_READ, fileOffset + bit / Byte.SIZE, 1);
        }
        drive.rot();
        drive.record(operation, content.number, fileOffset, bytes, checksum(region, offset, bytes), bytes);
        return bytes;
    }

    @Override
    public void write(long fileOffset, MemoryRegion region, long offset, int bytes) {
        synchronized (drive) {
            requireOpen();
            requireWritable();
            requireAligned(fileOffset, region, offset, bytes);
            boolean dies = drive.countOperation();
            FileContent.PendingWrite write = begin(fileOffset, region, offset, bytes);
            if (dies) {
                throw drive.crash();
            }
            int result = writeNow(History.Operation.WRITE, write, fileOffset, bytes, checksum(region, offset, bytes));
            if (result < 0) {
                throw failed("write", fileOffset, bytes, result);
            }
        }
    }

    /** Starts a write; null past the end of the file, which never grows. */
    FileContent.PendingWrite begin(long fileOffset, MemoryRegion region, long offset, int bytes) {
        return fileOffset + bytes > content.bytes ? null : content.begin(folder, fileOffset, region, offset, bytes);
    }

    /** The effect of a write that was begun: bytes, or minus an errno. */
    int writeNow(
            History.Operation operation, FileContent.PendingWrite write, long fileOffset, int bytes, int checksum) {
        Faults faults = drive.faults;
        int result = write == null
                ? -EFBIG
                : faults.strikes(Fault.WRITE_ERROR) ? -EIO : faults.strikes(Fault.NO_SPACE) ? -ENOSPC : bytes;
        if (write != null && result < 0) {
            content.abandon(write, drive.gen);
        } else if (write != null && faults.strikes(Fault.LOST_WRITE)) {
            content.completeElsewhere(write, FileContent.NOWHERE, Fault.LOST_WRITE);
        } else if (write != null && faults.strikes(Fault.MISDIRECTED_WRITE)) {
            long at = elsewhere(Fault.MISDIRECTED_WRITE, fileOffset, bytes);
            content.completeElsewhere(write, (int) (at / MemoryRegion.PAGE_BYTES), Fault.MISDIRECTED_WRITE);
        } else if (write != null) {
            content.complete(write);
        }
        drive.rot();
        drive.record(operation, content.number, fileOffset, bytes, checksum, result);
        return result;
    }

    /** Another place of the file where as many bytes fit; the same one where there is no other. */
    private long elsewhere(Fault fault, long fileOffset, int bytes) {
        long pages = (content.bytes - bytes) / MemoryRegion.PAGE_BYTES;
        if (pages == 0) {
            return fileOffset;
        }
        long other = drive.faults.gen(fault).between(0, pages - 1);
        long own = fileOffset / MemoryRegion.PAGE_BYTES;
        return (other < own ? other : other + 1) * MemoryRegion.PAGE_BYTES;
    }

    @Override
    public void flush() {
        synchronized (drive) {
            requireOpen();
            drive.step();
            int result = flushNow(History.Operation.FLUSH, content.writes());
            if (result < 0) {
                throw failed("fdatasync", 0, 0, result);
            }
        }
    }

    /** The effect of a flush: 0, or minus an errno. */
    int flushNow(History.Operation operation, long upToWrites) {
        int result = drive.faults.strikes(Fault.FLUSH_FAILURE) ? -EIO : 0;
        if (result < 0) {
            content.failFlush();
        } else if (drive.faults.strikes(Fault.LYING_FLUSH)) {
            content.lieOfFlush(upToWrites);
        } else if (!drive.faults.isFlushingNothing()) {
            content.flush(upToWrites);
        }
        drive.record(operation, content.number, upToWrites, 0, 0, result);
        return result;
    }

    @Override
    public void allocate(long fileOffset, long bytes) {
        synchronized (drive) {
            requireOpen();
            requireWritable();
            drive.step();
            if (drive.freeBytes() < bytes || drive.faults.strikes(Fault.NO_SPACE)) {
                throw new OrbitKvException(
                        ErrorCode.NO_SPACE, "no space for " + bytes + " bytes at " + fileOffset + " of " + name);
            }
            content.allocate(fileOffset, bytes);
            drive.record(History.Operation.ALLOCATE, content.number, fileOffset, (int) bytes, 0, 0);
        }
    }

    @Override
    public void punch(long fileOffset, long bytes) {
        synchronized (drive) {
            requireOpen();
            requireWritable();
            drive.step();
            content.punch(fileOffset, bytes);
            drive.record(History.Operation.PUNCH, content.number, fileOffset, (int) bytes, 0, 0);
        }
    }

    @Override
    public void close() {
        synchronized (drive) {
            if (closed || folder.isGone()) {
                return;
            }
            if (inFlight > 0) {
                throw new OrbitKvException(
                        ErrorCode.BUG, name + " is closed while " + inFlight + " transfers of a ring use it");
            }
            closed = true;
            folder.closed(this);
        }
    }

    int checksum(MemoryRegion region, long offset, int bytes) {
        return checksum.reset().update(region, offset, bytes).value();
    }

    void requireOpen() {
        folder.requireAlive();
        if (closed) {
            throw new OrbitKvException(ErrorCode.CLOSED, "the simulated file " + name + " is closed");
        }
    }

    void requireWritable() {
        if (!writable) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "write to " + name + ", which was opened for reading; open it writable");
        }
    }

    void requireAligned(long fileOffset, MemoryRegion region, long offset, int bytes) {
        long address = region.address(offset, bytes);
        if ((fileOffset | address | bytes) % MemoryRegion.PAGE_BYTES != 0 || bytes <= 0 || fileOffset < 0) {
            throw new OrbitKvException(
                    ErrorCode.MISALIGNED,
                    "transfer of " + bytes + " bytes at " + fileOffset + " of " + name + " and address " + address
                            + ": each must be a multiple of " + MemoryRegion.PAGE_BYTES);
        }
    }

    private OrbitKvException failed(String what, long fileOffset, int bytes, int result) {
        return new OrbitKvException(
                ErrorCode.DRIVE,
                what + " of " + bytes + " bytes at " + fileOffset + " of " + name + " failed: errno " + -result);
    }
}
