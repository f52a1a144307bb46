package io.orbitkv.nativeio;

import com.sun.jna.Native;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A file of a {@link HostFolder}, opened with O_DIRECT where the file system has it.
 *
 * <p>The descriptor is closed when the file is closed <em>and</em> nobody uses it any more: a number that the kernel
 * gave out again would send somebody's bytes into another file. Whoever uses it, a ring too, does so between
 * {@link #acquire()} and {@link #release()}.
 */
final class DirectFile implements StorageFile {
    /** Set in {@link #uses} by close; the bits below count who uses the descriptor. */
    private static final int CLOSED = 1 << 30;

    private final HostFolder folder;
    private final String name;
    private final int number;
    private final int fd;
    private final long bytes;
    private final AtomicInteger uses = new AtomicInteger();

    /** Takes over the descriptor. */
    DirectFile(HostFolder folder, String name, int number, int fd, long bytes) {
        this.folder = folder;
        this.name = name;
        this.number = number;
        this.fd = fd;
        this.bytes = bytes;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public long bytes() {
        return bytes;
    }

    /** The folder that the file was opened in. */
    HostFolder folder() {
        return folder;
    }

    /** Counts the files that its folder has opened, from 0 on; starts again after 2^31. */
    int number() {
        return number;
    }

    /** The descriptor, to be used between {@link #acquire()} and {@link #release()}. */
    int fd() {
        return fd;
    }

    /** Keeps the descriptor open; false when the file is closed already. */
    boolean acquire() {
        for (; ; ) {
            int now = uses.get();
            if ((now & CLOSED) != 0) {
                return false;
            }
            if (uses.compareAndSet(now, now + 1)) {
                return true;
            }
        }
    }

    /** Ends what {@link #acquire()} began. */
    void release() {
        if (uses.decrementAndGet() == CLOSED) {
            closeDescriptor();
        }
    }

    private void closeDescriptor() {
        LibC.close(fd);
        folder.descriptorClosed();
    }

    /** Whether it was closed and nobody uses it any more. */
    boolean isGone() {
        return uses.get() == CLOSED;
    }

    @Override
    public void read(long fileOffset, MemoryRegion region, long offset, int transferBytes) {
        long address = address(fileOffset, region, offset, transferBytes);
        acquireOpen("read");
        int result;
        try {
            result = pread(fd, address, fileOffset, transferBytes);
        } finally {
            release();
        }
        if (result < 0) {
            throw driveError("read", fileOffset, transferBytes, -result);
        }
    }

    @Override
    public void write(long fileOffset, MemoryRegion region, long offset, int transferBytes) {
        long address = address(fileOffset, region, offset, transferBytes);
        acquireOpen("write");
        int result;
        try {
            result = pwrite(fd, address, fileOffset, transferBytes, bytes);
        } finally {
            release();
        }
        if (result < 0) {
            throw driveError("write", fileOffset, transferBytes, -result);
        }
    }

    @Override
    public void flush() {
        acquireOpen("flush");
        int result;
        try {
            result = fdatasync(fd);
        } finally {
            release();
        }
        if (result < 0) {
            throw driveError("flush", 0, 0, -result);
        }
    }

    @Override
    public void allocate(long fileOffset, long length) {
        int errno = fallocate("allocate", 0, fileOffset, length);
        if (errno == LibC.ENOSPC || errno == LibC.EDQUOT) {
            throw new OrbitKvException(
                    ErrorCode.NO_SPACE,
                    "no room for " + length + " bytes at " + fileOffset + " of " + this + ": " + Errno.text(errno)
                            + "; free space or make the cap smaller");
        }
        // A file system that can't preallocate fills new files with zeros; here the first write takes the blocks.
        if (errno != 0 && errno != LibC.EOPNOTSUPP && errno != LibC.ENOSYS) {
            throw driveError("allocation", fileOffset, (int) Math.min(Integer.MAX_VALUE, length), errno);
        }
    }

    @Override
    public void punch(long fileOffset, long length) {
        int mode = LibC.FALLOC_FL_PUNCH_HOLE | LibC.FALLOC_FL_KEEP_SIZE;
        int errno = fallocate("give back pages of", mode, fileOffset, length);
        if (errno == LibC.EOPNOTSUPP || errno == LibC.ENOSYS) {
            throw new OrbitKvException(
                    ErrorCode.NOT_AVAILABLE,
                    "the file system of " + this + " can't take pages back (fallocate PUNCH_HOLE: " + Errno.text(errno)
                            + "), so the store there can't shrink; put the data folder on ext4 or xfs");
        }
        if (errno != 0) {
            throw driveError("giving back", fileOffset, (int) Math.min(Integer.MAX_VALUE, length), errno);
        }
    }

    /** 0, or an errno. */
    private int fallocate(String what, int mode, long fileOffset, long length) {
        if (((fileOffset | length) & (MemoryRegion.PAGE_BYTES - 1)) != 0
                || fileOffset < 0
                || length <= 0
                || fileOffset > bytes - length) {
            throw new OrbitKvException(
                    ErrorCode.MISALIGNED,
                    "cannot " + what + " " + this + ": " + length + " bytes at " + fileOffset
                            + " are not whole pages within its " + bytes + " bytes; this is a bug of the caller");
        }
        acquireOpen(what);
        try {
            int errno;
            do {
                errno = LibC.fallocate(fd, mode, fileOffset, length) == 0 ? 0 : Native.getLastError();
            } while (errno == LibC.EINTR);
            return errno;
        } finally {
            release();
        }
    }

    private void acquireOpen(String what) {
        if (!acquire()) {
            throw new OrbitKvException(
                    ErrorCode.CLOSED, "cannot " + what + " " + this + ": it is closed; this is a bug of the caller");
        }
    }

    private OrbitKvException driveError(String what, long fileOffset, int transferBytes, int errno) {
        String where = transferBytes == 0 ? "" : " of " + transferBytes + " bytes at " + fileOffset;
        return new OrbitKvException(
                ErrorCode.DRIVE,
                what + where + " failed in " + this + ": " + Errno.text(errno)
                        + "; look at the kernel log for errors of this drive");
    }

    /**
     * Checks that a transfer is whole aligned pages within its memory, as direct I/O needs.
     *
     * @return the address of the memory
     */
    long address(long fileOffset, MemoryRegion region, long offset, int transferBytes) {
        long address = region.address(offset, transferBytes);
        if (((fileOffset | address | transferBytes) & (MemoryRegion.PAGE_BYTES - 1)) != 0
                || fileOffset < 0
                || transferBytes <= 0) {
            throw new OrbitKvException(
                    ErrorCode.MISALIGNED,
                    "a transfer of " + this + " must be whole pages of " + MemoryRegion.PAGE_BYTES
                            + " bytes: file offset " + fileOffset + ", address 0x" + Long.toHexString(address)
                            + ", bytes " + transferBytes + "; this is a bug of the caller");
        }
        return address;
    }

    /** Reads all of a range: its bytes, or minus an errno; ENODATA at the end of the file. */
    static int pread(int fd, long address, long fileOffset, int bytes) {
        for (int done = 0; done < bytes; ) {
            long now = LibC.pread(fd, address + done, bytes - done, fileOffset + done);
            if (now < 0) {
                int errno = Native.getLastError();
                if (errno != LibC.EINTR) {
                    return -errno;
                }
            } else if (now == 0) {
                return -LibC.ENODATA;
            } else {
                done += (int) now;
            }
        }
        return bytes;
    }

    /** Writes all of a range: its bytes, or minus an errno; EFBIG past the end, for files never grow. */
    static int pwrite(int fd, long address, long fileOffset, int bytes, long fileBytes) {
        if (fileOffset > fileBytes - bytes) {
            return -LibC.EFBIG;
        }
        for (int done = 0; done < bytes; ) {
            long now = LibC.pwrite(fd, address + done, bytes - done, fileOffset + done);
            if (now < 0) {
                int errno = Native.getLastError();
                if (errno != LibC.EINTR) {
                    return -errno;
                }
            } else if (now == 0) {
                return -LibC.EIO; // a write that moves nothing and reports no error would loop for ever
            } else {
                done += (int) now;
            }
        }
        return bytes;
    }

    /** Flushes: 0, or minus an errno. */
    static int fdatasync(int fd) {
        return LibC.fdatasync(fd) < 0 ? -Native.getLastError() : 0;
    }

    @Override
    public void close() {
        int before = uses.getAndUpdate(now -> now | CLOSED);
        if ((before & CLOSED) != 0) {
            return;
        }
        folder.forget(this);
        if (before == 0) {
            closeDescriptor();
        }
    }

    @Override
    public String toString() {
        return folder.path() + "/" + name;
    }
}
