package io.orbitkv.nativeio;

import com.sun.jna.Native;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A data folder on a file system of this machine.
 *
 * <p>Closing gives the lock back and closes the files that are open; close the rings before, since transfers in flight
 * keep their files and the lock until they have ended.
 */
public final class HostFolder implements DataFolder {
    private static final Logger LOG = LoggerFactory.getLogger(HostFolder.class);
    private static final FileAttribute<Set<PosixFilePermission>> FOLDER_MODE =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
    private static final int FILE_MODE = 0600;
    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

    /** Zeros are written in pieces of this size where the file system can't allocate by itself. */
    private static final int ZERO_PIECE_BYTES = 1 << 20;

    private final Path root;
    private final String bootId;
    private final AtomicBoolean bufferedWarned = new AtomicBoolean();
    private final AtomicBoolean directSeen = new AtomicBoolean();
    private final AtomicBoolean zeroingWarned = new AtomicBoolean();

    private final AtomicInteger filesOpened = new AtomicInteger();
    private final AtomicLong descriptorsClosed = new AtomicLong();

    /** Rings that hold files open on their side, to be told when one is closed. */
    private final List<UringRing> rings = new CopyOnWriteArrayList<>();

    // Guarded by this.
    private final Set<DirectFile> openFiles = new HashSet<>();
    private FolderLock lock;
    private boolean closed;

    private HostFolder(Path root, String bootId) {
        this.root = root;
        this.bootId = bootId;
    }

    /**
     * Opens a folder, which is created where it is missing; its parent must exist.
     *
     * @param path the folder
     * @return the folder, not locked yet
     * @throws OrbitKvException {@link ErrorCode#FOLDER_UNUSABLE} when it is no folder, can't be created or written
     */
    public static HostFolder open(Path path) {
        Path absolute = path.toAbsolutePath().normalize();
        try {
            if (!Files.isDirectory(absolute)) {
                create(absolute);
            }
            if (!Files.isWritable(absolute) || !Files.isExecutable(absolute)) {
                throw unusable(
                        absolute,
                        Files.getFileStore(absolute).isReadOnly()
                                ? "its file system is mounted read-only; mount it writable or choose another folder"
                                : "it is not writable for user " + System.getProperty("user.name")
                                        + "; change its owner or mode",
                        null);
            }
            return new HostFolder(
                    absolute.toRealPath(), Files.readString(BOOT_ID).trim());
        } catch (IOException e) {
            throw unusable(absolute, reason(e) + "; choose a folder that this user can create and write", e);
        }
    }

    private static void create(Path folder) throws IOException {
        if (Files.exists(folder, LinkOption.NOFOLLOW_LINKS)) {
            throw unusable(folder, "it is not a folder; choose another path or move that file away", null);
        }
        Path parent = folder.getParent();
        if (parent != null && !Files.isDirectory(parent)) {
            throw unusable(
                    folder,
                    Files.exists(parent)
                            ? "its parent " + parent + " is not a folder; choose another path"
                            : "its parent " + parent + " does not exist; create it first",
                    null);
        }
        try {
            Files.createDirectory(folder, FOLDER_MODE);
        } catch (FileAlreadyExistsException e) {
            if (!Files.isDirectory(folder)) { // somebody else was faster: a folder is fine
                throw e;
            }
        }
    }

    private static OrbitKvException unusable(Path folder, String why, Throwable cause) {
        return new OrbitKvException(
                ErrorCode.FOLDER_UNUSABLE, "cannot use " + folder + " as a data folder: " + why, cause);
    }

    /** What the operating system said; the exception's own message is often the path alone. */
    private static String reason(IOException e) {
        if (e instanceof NoSuchFileException) {
            return "there is no " + e.getMessage();
        }
        if (e instanceof java.nio.file.FileSystemException fault && fault.getReason() != null) {
            return fault.getReason();
        }
        return e.getClass().getSimpleName() + " " + e.getMessage();
    }

    @Override
    public String path() {
        return root.toString();
    }

    @Override
    public String bootId() {
        return bootId;
    }

    /** The path behind a name; names that would lead out of the folder are a bug of the caller. */
    private Path resolve(String name) {
        Path resolved = root.resolve(name).normalize();
        if (!resolved.startsWith(root) || name.startsWith("/")) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "name '" + name + "' leads out of " + root + "; give a name within it");
        }
        return resolved;
    }

    @Override
    public synchronized void lock(String name, long waitNanos) {
        requireOpen("lock");
        if (lock != null) {
            throw new OrbitKvException(
                    ErrorCode.BUG, "this process already took the lock of " + root + "; lock a folder once");
        }
        lock = FolderLock.take(resolve(name).toString(), waitNanos);
    }

    /** The descriptor that holds the lock, -1 when the folder is not locked. */
    synchronized int lockFd() {
        return lock == null ? -1 : lock.fd();
    }

    @Override
    public void makeFolder(String name) {
        Path folder = resolve(name);
        try {
            Files.createDirectory(folder, FOLDER_MODE);
        } catch (FileAlreadyExistsException e) {
            if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
                throw fault("make the folder", folder, e);
            }
        } catch (IOException e) {
            throw fault("make the folder", folder, e);
        }
    }

    @Override
    public List<String> list(String name) {
        Path folder = resolve(name);
        List<String> names = new ArrayList<>();
        try (Stream<Path> paths = Files.list(folder)) {
            paths.forEach(path -> names.add(path.getFileName().toString()));
        } catch (NoSuchFileException | NotDirectoryException e) {
            return List.of();
        } catch (IOException | java.io.UncheckedIOException e) {
            throw fault("list", folder, e instanceof IOException io ? io : (IOException) e.getCause());
        }
        names.sort(null);
        return names;
    }

    @Override
    public boolean exists(String name) {
        return Stat.of(resolve(name).toString()) != null;
    }

    @Override
    public StorageFile create(String name, long bytes) {
        if (bytes <= 0 || bytes % MemoryRegion.PAGE_BYTES != 0) {
            throw new OrbitKvException(
                    ErrorCode.MISALIGNED,
                    "a file must be whole pages of " + MemoryRegion.PAGE_BYTES + " bytes, not " + bytes + ": " + name);
        }
        Path file = resolve(name);
        int flags = LibC.O_RDWR | LibC.O_CREAT | LibC.O_EXCL | LibC.O_CLOEXEC | LibC.O_NOFOLLOW;
        int fd = LibC.open(file.toString(), flags, FILE_MODE);
        if (fd < 0) {
            int errno = Native.getLastError();
            throw openFault("create", file, errno, errno == LibC.EEXIST ? "; remove it or open it instead" : "");
        }
        boolean good = false;
        try {
            allocate(fd, file, bytes);
            makeDirect(fd, file);
            StorageFile opened =
                    keep(new DirectFile(this, name, filesOpened.getAndIncrement() & Integer.MAX_VALUE, fd, bytes));
            good = true;
            return opened;
        } finally {
            if (!good) {
                LibC.close(fd);
                unlink(name);
            }
        }
    }

    /** Gives a new file its blocks for good, so that later writes into it can't fail for lack of room. */
    private void allocate(int fd, Path file, long bytes) {
        int errno;
        do {
            errno = LibC.fallocate(fd, 0, 0, bytes) == 0 ? 0 : Native.getLastError();
        } while (errno == LibC.EINTR);
        if (errno == LibC.EOPNOTSUPP || errno == LibC.ENOSYS) {
            if (zeroingWarned.compareAndSet(false, true)) {
                LOG.warn(
                        "{}: the file system cannot preallocate (fallocate: {}), so new files are filled with zeros: "
                                + "slower at first start, and a file system that compresses or copies on write may "
                                + "still run out of room later",
                        root,
                        Errno.text(errno));
            }
            errno = writeZeros(fd, bytes);
        }
        if (errno != 0) {
            boolean full = errno == LibC.ENOSPC || errno == LibC.EFBIG || errno == LibC.EDQUOT;
            throw new OrbitKvException(
                    full ? ErrorCode.NO_SPACE : ErrorCode.DRIVE,
                    "cannot allocate " + bytes + " bytes for " + file + ": " + Errno.text(errno) + "; "
                            + (full
                                    ? freeBytes() + " bytes are free there: make the cap smaller or free space"
                                    : "look at the kernel log for errors of this drive"));
        }
    }

    private static int writeZeros(int fd, long bytes) {
        try (MemoryRegion zeros = MemoryRegion.anonymous(ZERO_PIECE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING)) {
            long address = zeros.address(0, ZERO_PIECE_BYTES);
            for (long done = 0; done < bytes; ) {
                int piece = (int) Math.min(ZERO_PIECE_BYTES, bytes - done);
                int result = DirectFile.pwrite(fd, address, done, piece, bytes);
                if (result < 0) {
                    return -result;
                }
                done += piece;
            }
        }
        return 0;
    }

    @Override
    public void extend(String name, long bytes) {
        Path file = resolve(name);
        int flags = LibC.O_RDWR | LibC.O_CREAT | LibC.O_CLOEXEC | LibC.O_NOFOLLOW;
        int fd = LibC.open(file.toString(), flags, FILE_MODE);
        if (fd < 0) {
            throw openFault("make", file, Native.getLastError(), "");
        }
        try {
            if (LibC.lseek(fd, 0, LibC.SEEK_END) < bytes && (LibC.ftruncate(fd, bytes) < 0 || LibC.fsync(fd) < 0)) {
                throw openFault("make longer", file, Native.getLastError(), "");
            }
        } finally {
            LibC.close(fd);
        }
    }

    @Override
    public StorageFile open(String name, boolean writable) {
        Path file = resolve(name);
        int flags = (writable ? LibC.O_RDWR : LibC.O_RDONLY) | LibC.O_CLOEXEC | LibC.O_NOFOLLOW;
        int fd = LibC.open(file.toString(), flags, 0);
        if (fd < 0) {
            throw openFault("open", file, Native.getLastError(), "");
        }
        boolean good = false;
        try {
            Stat stat = Stat.of(file.toString());
            if (stat == null || !stat.regular()) {
                throw new OrbitKvException(
                        ErrorCode.FOREIGN_FILE, file + " is not a regular file; OrbitKV did not make it: remove it");
            }
            long bytes = LibC.lseek(fd, 0, LibC.SEEK_END);
            makeDirect(fd, file);
            StorageFile opened =
                    keep(new DirectFile(this, name, filesOpened.getAndIncrement() & Integer.MAX_VALUE, fd, bytes));
            good = true;
            return opened;
        } finally {
            if (!good) {
                LibC.close(fd);
            }
        }
    }

    /** Turns the page cache off for a descriptor; where the file system can't, one warning and the cache stays. */
    private void makeDirect(int fd, Path file) {
        int flags = LibC.fcntl(fd, LibC.F_GETFL, 0);
        boolean taken = flags >= 0 && LibC.fcntl(fd, LibC.F_SETFL, flags | LibC.O_DIRECT) == 0;
        if (taken && servesPages(fd)) {
            return;
        }
        int errno = taken ? LibC.EINVAL : Native.getLastError();
        if (taken) {
            LibC.fcntl(fd, LibC.F_SETFL, flags);
        }
        if (errno != LibC.EINVAL && errno != LibC.EOPNOTSUPP) {
            throw openFault("switch to direct I/O", file, errno, "");
        }
        if (bufferedWarned.compareAndSet(false, true)) {
            LOG.warn(
                    "{}: the file system refuses direct I/O (O_DIRECT: {}), so transfers go through the page cache: "
                            + "bytes are copied twice and other memory is displaced; put the data folder on ext4 or xfs",
                    root,
                    Errno.text(errno));
        }
    }

    /**
     * Whether a direct read of one page is taken: some file systems let the flag pass and refuse the transfers, or want them
     * larger or otherwise aligned. Looked at once a folder.
     */
    private boolean servesPages(int fd) {
        if (!directSeen.get()) {
            try (MemoryRegion page =
                    MemoryRegion.anonymous(MemoryRegion.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING)) {
                long address = page.address(0, MemoryRegion.PAGE_BYTES);
                if (LibC.pread(fd, address, MemoryRegion.PAGE_BYTES, 0) < 0 && Native.getLastError() == LibC.EINVAL) {
                    return false;
                }
            }
            directSeen.set(true);
        }
        return true;
    }

    private static OrbitKvException openFault(String what, Path file, int errno, String remedy) {
        ErrorCode code = switch (errno) {
            case LibC.ENOSPC, LibC.EDQUOT -> ErrorCode.NO_SPACE;
            case LibC.EIO -> ErrorCode.DRIVE;
            case LibC.EMFILE, LibC.ENFILE -> ErrorCode.NOT_AVAILABLE;
            case LibC.ELOOP -> ErrorCode.FOREIGN_FILE;
            default -> ErrorCode.FOLDER_UNUSABLE;
        };
        String advice = switch (errno) {
            case LibC.ENOSPC, LibC.EDQUOT -> "; free space or make the cap smaller";
            case LibC.EMFILE -> "; raise the limit on open files (ulimit -n, LimitNOFILE)";
            case LibC.EACCES -> "; change its owner or mode";
            default -> remedy;
        };
        return new OrbitKvException(code, "cannot " + what + " " + file + ": " + Errno.text(errno) + advice);
    }

    private synchronized StorageFile keep(DirectFile file) {
        requireOpen("open a file of");
        openFiles.add(file);
        return file;
    }

    /** A file was closed. */
    synchronized void forget(DirectFile file) {
        openFiles.remove(file);
    }

    /** A descriptor was closed: rings let go of the file too, their owners at their next turn, which is now. */
    void descriptorClosed() {
        descriptorsClosed.incrementAndGet();
        for (UringRing ring : rings) {
            ring.wakeup();
        }
    }

    /** How many descriptors were closed so far. */
    long descriptorsClosed() {
        return descriptorsClosed.get();
    }

    /** A ring starts; it ends with {@link #ringClosed}. */
    void ringOpened(UringRing ring) {
        rings.add(ring);
    }

    void ringClosed(UringRing ring) {
        rings.remove(ring);
    }

    private void requireOpen(String what) {
        if (closed) {
            throw new OrbitKvException(ErrorCode.CLOSED, "cannot " + what + " " + root + ": the folder is closed");
        }
    }

    @Override
    public void rename(String from, String to) {
        try {
            Files.move(resolve(from), resolve(to), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw fault("rename to '" + to + "' the file", resolve(from), e);
        }
    }

    @Override
    public void unlink(String name) {
        try {
            Files.deleteIfExists(resolve(name));
        } catch (IOException e) {
            throw fault("remove", resolve(name), e);
        }
    }

    @Override
    public void syncFolder(String name) {
        Path folder = resolve(name);
        int fd = LibC.open(folder.toString(), LibC.O_RDONLY | LibC.O_DIRECTORY | LibC.O_CLOEXEC, 0);
        if (fd < 0) {
            throw openFault("open the folder", folder, Native.getLastError(), "");
        }
        try {
            if (LibC.fsync(fd) < 0) {
                throw new OrbitKvException(
                        ErrorCode.DRIVE,
                        "fsync of the folder " + folder + " failed: " + Errno.text(Native.getLastError())
                                + "; look at the kernel log for errors of this drive");
            }
        } finally {
            LibC.close(fd);
        }
    }

    private static OrbitKvException fault(String what, Path path, IOException e) {
        String reason = reason(e);
        ErrorCode code = reason.contains("No space left") || reason.contains("quota exceeded")
                ? ErrorCode.NO_SPACE
                : reason.contains("Input/output error") ? ErrorCode.DRIVE : ErrorCode.FOLDER_UNUSABLE;
        return new OrbitKvException(code, "cannot " + what + " " + path + ": " + reason, e);
    }

    @Override
    public long allocatedBytes(String name) {
        return allocatedBytes(resolve(name));
    }

    private static long allocatedBytes(Path path) {
        Stat stat = Stat.of(path.toString());
        if (stat == null) {
            return 0; // vanished while we were looking
        }
        long sum = stat.allocatedBytes();
        if (stat.folder()) {
            String[] names = path.toFile().list();
            if (names != null) {
                for (String name : names) {
                    sum += allocatedBytes(path.resolve(name));
                }
            }
        }
        return sum;
    }

    @Override
    public long freeBytes() {
        return root.toFile().getUsableSpace(); // statvfs: f_bavail × f_frsize
    }

    @Override
    public IoRing newRing(int depth, List<DataFolder> beside) {
        List<HostFolder> served = new ArrayList<>();
        served.add(this);
        beside.forEach(folder -> served.add((HostFolder) folder));
        for (HostFolder folder : served) {
            synchronized (folder) {
                folder.requireOpen("make a ring for");
            }
        }
        return Rings.open(new RingFolders(served), depth);
    }

    @Override
    public TimedReader newReader() {
        return Rings.reader();
    }

    @Override
    public void close() {
        List<DirectFile> files;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            files = List.copyOf(openFiles);
        }
        for (DirectFile file : files) {
            file.close();
        }
        synchronized (this) {
            if (lock != null) {
                lock.close();
            }
        }
    }

    @Override
    public String toString() {
        return root.toString();
    }
}
