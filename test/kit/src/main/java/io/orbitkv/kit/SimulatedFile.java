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
        int errno = fileOffset + bytes > content.bytes ? ENODATA : drive.gen.chance(drive.faults.readError()) ? EIO : 0;
        if (errno != 0) {
            drive.record(operation, content.number, fileOffset, bytes, 0, -errno);
            return -errno;
        }
        content.read(fileOffset, region, offset, bytes, drive.scratch, drive.gen);
        if (drive.gen.chance(drive.faults.bitRot())) {
            long at = offset + drive.gen.below(bytes);
            region.putByte(at, (byte) (region.getByte(at) ^ 1 << drive.gen.below(Byte.SIZE)));
        }
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
        int result = write == null ? -EFBIG : drive.gen.chance(drive.faults.writeError()) ? -EIO : bytes;
        if (result == -EIO) {
            content.abandon(write, drive.gen);
        } else if (write != null) {
            content.complete(write);
        }
        drive.record(operation, content.number, fileOffset, bytes, checksum, result);
        return result;
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
        int result = drive.gen.chance(drive.faults.flushFailure()) ? -EIO : 0;
        if (result < 0) {
            content.failFlush();
        } else if (!drive.gen.chance(drive.faults.lyingFlush())) {
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
            if (drive.freeBytes() < bytes || drive.gen.chance(drive.faults.noSpace())) {
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
