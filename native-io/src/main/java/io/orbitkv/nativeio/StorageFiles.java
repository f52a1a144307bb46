package io.orbitkv.nativeio;

import com.sun.jna.Native;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * Plain files, named by path and read through the page cache: what the catalog needs around LMDB, which does its own
 * file access. All else goes through {@link DataFolder}.
 */
public final class StorageFiles {
    private StorageFiles() {}

    /** Whether a regular file is there. */
    public static boolean exists(String path) {
        return Files.isRegularFile(Path.of(path));
    }

    /** A file's length in bytes. */
    public static long bytes(String path) {
        try {
            return Files.size(Path.of(path));
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE, "cannot look at " + path + ": " + e + "; check its permissions", e);
        }
    }

    /** Makes a folder of mode 0700 unless it exists. */
    public static void makeFolder(String path) {
        try {
            Path folder = Path.of(path);
            if (!Files.isDirectory(folder)) {
                Files.createDirectory(
                        folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            }
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE,
                    "cannot create the folder " + path + ": " + e + "; check permissions",
                    e);
        }
    }

    /** Removes a file; one that isn't there is fine. */
    public static void unlink(String path) {
        try {
            Files.deleteIfExists(Path.of(path));
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE, "cannot remove " + path + ": " + e + "; check its permissions", e);
        }
    }

    /** All bytes of a small file. */
    public static byte[] readAll(String path) {
        try {
            return Files.readAllBytes(Path.of(path));
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE, "cannot read " + path + ": " + e + "; check its permissions", e);
        }
    }

    /**
     * Replaces a file as a whole: after a death at any moment it has its old bytes or the new ones, durably when this
     * returns.
     */
    public static void replace(String path, byte[] bytes) {
        Path target = Path.of(path);
        Path made = Path.of(path + ".new");
        try {
            Files.deleteIfExists(made);
            try (FileChannel channel = FileChannel.open(
                    made,
                    Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                    PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
                ByteBuffer buffer = ByteBuffer.wrap(bytes);
                while (buffer.hasRemaining()) {
                    channel.write(buffer);
                }
                channel.force(true);
            }
            Files.move(made, target, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE,
                    "cannot write " + path + ": " + e + "; check permissions and room of its file system",
                    e);
        }
        syncFolder(target.getParent().toString());
    }

    /**
     * Puts a file in the place of another, which stays under another name; durable when this returns. At no moment there is
     * neither under the name.
     *
     * @param made the new file
     * @param path its name from now on
     * @param kept the name of the file that had it, if there was one; must not exist
     */
    public static void supersede(String made, String path, String kept) {
        try {
            if (exists(path)) {
                Files.createLink(Path.of(kept), Path.of(path));
            }
            Files.move(Path.of(made), Path.of(path), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE,
                    "cannot put " + made + " in the place of " + path + ": " + e + "; check permissions",
                    e);
        }
        syncFolder(Path.of(path).getParent().toString());
    }

    /**
     * Gives a file real blocks up to a length, keeps what it holds, and flushes it.
     *
     * @param path an existing file
     * @param bytes its length afterwards, at least
     * @throws OrbitKvException {@link ErrorCode#NO_SPACE} when the file system is full
     */
    public static void allocate(String path, long bytes) {
        int fd = open(path, LibC.O_RDWR);
        try {
            int errno = LibC.fallocate(fd, 0, 0, bytes) < 0 ? Native.getLastError() : 0;
            if (errno == LibC.EOPNOTSUPP || errno == LibC.ENOSYS) { // the folder has warned of it, or will
                errno = writeZeros(fd, bytes);
            }
            if (errno != 0) {
                if (errno == LibC.ENOSPC) {
                    throw new OrbitKvException(
                            ErrorCode.NO_SPACE,
                            "no room for " + bytes + " bytes of " + path + "; free space or give a smaller cap");
                }
                throw failed("allocate " + bytes + " bytes of", path, errno);
            }
            if (LibC.fsync(fd) < 0) {
                throw failed("flush", path, Native.getLastError());
            }
        } finally {
            LibC.close(fd);
        }
    }

    /** What file systems without fallocate need: zeros behind what the file holds; 0, or an errno. */
    private static int writeZeros(int fd, long bytes) {
        try (MemoryRegion zeros =
                MemoryRegion.anonymous(MemoryRegion.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING)) {
            long address = zeros.address(0, MemoryRegion.PAGE_BYTES);
            for (long done = LibC.lseek(fd, 0, LibC.SEEK_END); done < bytes; ) {
                int piece = (int) Math.min(MemoryRegion.PAGE_BYTES, bytes - done);
                int result = DirectFile.pwrite(fd, address, done, piece, bytes);
                if (result < 0) {
                    return -result;
                }
                done += piece;
            }
        }
        return 0;
    }

    /** fsync of a folder: creations and removals in it are durable. */
    public static void syncFolder(String path) {
        int fd = open(path, LibC.O_RDONLY | LibC.O_DIRECTORY);
        try {
            if (LibC.fsync(fd) < 0) {
                throw failed("flush the folder", path, Native.getLastError());
            }
        } finally {
            LibC.close(fd);
        }
    }

    /**
     * Reads from a file's start through the page cache.
     *
     * @param path an existing file
     * @param region where the bytes land, from its offset 0
     * @param bytes how many
     * @return how many there were: fewer at the end of the file
     */
    public static long read(String path, MemoryRegion region, long bytes) {
        int fd = open(path, LibC.O_RDONLY);
        try {
            long done = 0;
            while (done < bytes) {
                long got = LibC.pread(fd, region.address(done, bytes - done), bytes - done, done);
                if (got < 0) {
                    int errno = Native.getLastError();
                    if (errno == LibC.EINTR) {
                        continue;
                    }
                    throw failed("read", path, errno);
                }
                if (got == 0) {
                    break;
                }
                done += got;
            }
            return done;
        } finally {
            LibC.close(fd);
        }
    }

    private static int open(String path, int flags) {
        int fd = LibC.open(path, flags | LibC.O_CLOEXEC, 0);
        if (fd < 0) {
            throw failed("open", path, Native.getLastError());
        }
        return fd;
    }

    private static OrbitKvException failed(String verb, String path, int errno) {
        return new OrbitKvException(
                errno == LibC.EIO ? ErrorCode.DRIVE : ErrorCode.FOLDER_UNUSABLE,
                "cannot " + verb + " " + path + ": " + Errno.text(errno) + "; check its permissions and its drive");
    }
}
