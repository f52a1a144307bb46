package io.orbitkv.nativeio;

import com.sun.jna.Native;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * The flock that makes a folder belong to one process.
 *
 * <p>The kernel gives it back when the last reference to the open file is gone. A ring keeps one, so that after a
 * {@code kill -9} the lock stays until the kernel has finished the transfers of the killed process; the next opener
 * waits for that, but never for a process that lives.
 *
 * <pre>
 * the file is one page; recovery writes it:   0 magic "OKVLOCK1" | 8 pid u64 | ...
 * </pre>
 */
final class FolderLock implements AutoCloseable {
    private static final long POLL_NANOS = 2_000_000;
    private static final int PID_OFFSET = 8;
    private static final byte[] MAGIC = "OKVLOCK1".getBytes(StandardCharsets.US_ASCII);
    private static final long NOBODY = -1;

    /** Locks that this very process holds: its pid in a file proves nothing where a ring is only slow to let go. */
    private static final Set<String> OWN = ConcurrentHashMap.newKeySet();

    private final String path;
    private int fd;
    private boolean held;

    private FolderLock(String path, int fd) {
        this.path = path;
        this.fd = fd;
    }

    /** Takes the lock; see {@link DataFolder#lock}. */
    static FolderLock take(String path, long waitNanos) {
        int fd = LibC.open(path, LibC.O_RDWR | LibC.O_CREAT | LibC.O_CLOEXEC | LibC.O_NOFOLLOW, 0600);
        if (fd < 0) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE,
                    "cannot open the lock file " + path + ": " + Errno.text(Native.getLastError())
                            + "; make the folder writable for this user");
        }
        FolderLock lock = new FolderLock(path, fd);
        boolean good = false;
        try {
            lock.waitForIt(waitNanos);
            lock.allocatePage();
            lock.held = true;
            OWN.add(path);
            good = true;
            return lock;
        } finally {
            if (!good) {
                lock.close();
            }
        }
    }

    private void waitForIt(long waitNanos) {
        long start = System.nanoTime();
        while (LibC.flock(fd, LibC.LOCK_EX | LibC.LOCK_NB) < 0) {
            int errno = Native.getLastError();
            if (errno != LibC.EAGAIN && errno != LibC.EINTR) {
                throw new OrbitKvException(
                        ErrorCode.FOLDER_UNUSABLE,
                        "cannot lock " + path + ": " + Errno.text(errno)
                                + "; use a folder on a local file system that has flock");
            }
            long pid = holder();
            boolean own = pid == ProcessHandle.current().pid();
            if (pid != NOBODY && (own ? OWN.contains(path) : isAlive(pid))) {
                throw new OrbitKvException(
                        ErrorCode.FOLDER_IN_USE,
                        path + " is held by process " + pid + "; stop that process or choose another folder");
            }
            if (System.nanoTime() - start >= waitNanos) {
                throw new OrbitKvException(
                        ErrorCode.FOLDER_IN_USE,
                        path + " is still locked after " + waitNanos / 1_000_000 + " ms by "
                                + (pid == NOBODY
                                        ? "a process that has not written its pid"
                                        : "process " + pid
                                                + ", which is gone: the kernel finishes its transfers, or it "
                                                + "lives in another container")
                                + "; try again, or find the holder with lsof");
            }
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    /** The pid in the lock file, or {@link #NOBODY} when none stands there (yet). */
    private long holder() {
        byte[] page;
        try {
            page = Files.readAllBytes(Path.of(path));
        } catch (IOException e) {
            return NOBODY;
        }
        if (page.length < PID_OFFSET + Long.BYTES) {
            return NOBODY;
        }
        for (int i = 0; i < MAGIC.length; i++) {
            if (page[i] != MAGIC[i]) {
                return NOBODY;
            }
        }
        long pid = 0;
        for (int i = Long.BYTES - 1; i >= 0; i--) {
            pid = pid << Byte.SIZE | (page[PID_OFFSET + i] & 0xff);
        }
        return pid;
    }

    /** Whether a process runs: a zombie has given up its memory and files and only waits to be noticed. */
    private static boolean isAlive(long pid) {
        try {
            String stat = Files.readString(Path.of("/proc/" + pid + "/stat"), StandardCharsets.ISO_8859_1);
            int state = stat.lastIndexOf(") ") + 2; // the name before it, in brackets, may hold anything
            return state < 2 || state >= stat.length() || "ZX".indexOf(stat.charAt(state)) < 0;
        } catch (IOException e) {
            return false;
        }
    }

    /** Gives the lock file its one page, so that writing the pid can't fail for lack of room. */
    private void allocatePage() {
        if (LibC.lseek(fd, 0, LibC.SEEK_END) >= MemoryRegion.PAGE_BYTES) {
            return;
        }
        if (LibC.fallocate(fd, 0, 0, MemoryRegion.PAGE_BYTES) < 0 && LibC.ftruncate(fd, MemoryRegion.PAGE_BYTES) < 0) {
            int errno = Native.getLastError();
            throw new OrbitKvException(
                    errno == LibC.ENOSPC ? ErrorCode.NO_SPACE : ErrorCode.FOLDER_UNUSABLE,
                    "cannot give " + path + " its page: " + Errno.text(errno) + "; free space on its file system");
        }
    }

    /** The descriptor that holds the lock. */
    int fd() {
        return fd;
    }

    /** Gives the lock back, unless a ring still keeps it. Safe to call twice. */
    @Override
    public void close() {
        if (fd >= 0) {
            if (held) {
                OWN.remove(path);
            }
            LibC.close(fd);
            fd = -1;
        }
    }
}
