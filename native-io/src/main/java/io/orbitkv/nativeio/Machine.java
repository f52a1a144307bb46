package io.orbitkv.nativeio;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * What this machine offers and what this process has used of it, as plain values for reports.
 *
 * <p>Each call looks again. What can't be told is -1 or {@link #UNKNOWN}; nothing here throws for that.
 */
public final class Machine {
    /** What stands where the machine does not tell. */
    public static final String UNKNOWN = "unknown";

    /** Stands for a limit that there is not. */
    public static final long UNLIMITED = Long.MAX_VALUE;

    private static final Path PROC_SELF = Path.of("/proc/self");
    private static final String PROBE_FILE = ".orbitkv-probe";

    private Machine() {}

    /** The kernel's name and release, for example {@code Linux 6.18.44}. */
    public static String kernel() {
        return System.getProperty("os.name") + " " + System.getProperty("os.version");
    }

    /** The processor's architecture as Java names it. */
    public static String architecture() {
        return System.getProperty("os.arch");
    }

    /** Processors that this process may use. */
    public static int processors() {
        return Runtime.getRuntime().availableProcessors();
    }

    /** Bytes of memory that the machine has. */
    public static long memoryBytes() {
        return memoryInfo("MemTotal:");
    }

    /** Bytes of memory that can be had without swapping. */
    public static long availableBytes() {
        return memoryInfo("MemAvailable:");
    }

    /**
     * Bytes of memory that this process can have more: what the machine has available, or what its control groups leave it,
     * where that is less; {@link #UNLIMITED} where neither is told.
     */
    public static long headroomBytes() {
        long available = availableBytes();
        return Math.min(
                available < 0 ? UNLIMITED : available,
                ControlGroups.ofThisMachine().leftBytes());
    }

    /** Bytes of memory or drive that a file takes, links of /proc to memory without a name included. */
    public static long takenBytes(Path file) {
        Stat stat = Stat.behind(file.toString());
        return stat == null ? -1 : stat.allocatedBytes();
    }

    /** Transparent huge pages of private memory: {@code always}, {@code madvise} or {@code never}. */
    public static String transparentHugePages() {
        return chosen(firstLine(Path.of("/sys/kernel/mm/transparent_hugepage/enabled")));
    }

    /** Transparent huge pages of shared memory; {@code never} means that a memfd gets small pages only. */
    public static String sharedTransparentHugePages() {
        return chosen(firstLine(Path.of("/sys/kernel/mm/transparent_hugepage/shmem_enabled")));
    }

    /** Reserved huge pages (hugetlb) of the default size that are free. */
    public static long hugetlbFree() {
        return number(field(Path.of("/proc/meminfo"), "HugePages_Free:"));
    }

    /** Bytes of a reserved huge page. */
    public static long hugetlbBytes() {
        return memoryInfo("Hugepagesize:");
    }

    /** RLIMIT_MEMLOCK: bytes that this process may lock, or {@link #UNLIMITED}; root may lock more. */
    public static long lockedBytesMax() {
        return limit(LibC.RLIMIT_MEMLOCK);
    }

    /** RLIMIT_NOFILE: files that this process may have open, or {@link #UNLIMITED}. */
    public static long openFilesMax() {
        return limit(LibC.RLIMIT_NOFILE);
    }

    /** Names this boot of the machine. */
    public static String bootId() {
        return firstLine(Path.of("/proc/sys/kernel/random/boot_id"));
    }

    /** Why io_uring can't be used here, for people; empty when it works. */
    public static String ioUringProblem() {
        try {
            new Uring(1).close();
            return "";
        } catch (OrbitKvException e) {
            return e.getMessage();
        }
    }

    /** The ways of io_uring that this kernel took, by their names in io_uring_setup(2); empty where it doesn't work. */
    public static List<String> ioUringFlags() {
        List<String> names = new ArrayList<>();
        try (Uring ring = new Uring(1)) {
            int flags = ring.setupFlags();
            add(names, flags, Uring.SETUP_SINGLE_ISSUER, "SINGLE_ISSUER");
            add(names, flags, Uring.SETUP_DEFER_TASKRUN, "DEFER_TASKRUN");
            add(names, flags, Uring.SETUP_COOP_TASKRUN, "COOP_TASKRUN");
            add(names, flags, Uring.SETUP_TASKRUN_FLAG, "TASKRUN_FLAG");
            add(names, flags, Uring.SETUP_SUBMIT_ALL, "SUBMIT_ALL");
        } catch (OrbitKvException e) {
            return List.of();
        }
        return names;
    }

    private static void add(List<String> names, int flags, int flag, String name) {
        if ((flags & flag) != 0) {
            names.add(name);
        }
    }

    /**
     * What the file system under a folder can do.
     *
     * @param fileSystem its kind, for example {@code ext4}
     * @param directIo whether files can bypass the page cache (O_DIRECT)
     * @param preallocation whether fallocate gives files their blocks
     * @param freeBytes what it could still give out
     * @param problem why it could not be tried, for people; empty when it was
     */
    public record FolderAbilities(
            String fileSystem, boolean directIo, boolean preallocation, long freeBytes, String problem) {}

    /**
     * Tries what the file system under a folder can do, with a file of one page that is gone afterwards.
     *
     * @param folder a folder that exists and can be written
     * @return what was found
     */
    public static FolderAbilities folderAbilities(Path folder) {
        String kind;
        try {
            kind = Files.getFileStore(folder).type();
        } catch (IOException e) {
            return new FolderAbilities(UNKNOWN, false, false, -1, "there is no folder " + folder);
        }
        String probe =
                folder.resolve(PROBE_FILE + "-" + ProcessHandle.current().pid()).toString();
        long freeBytes = folder.toFile().getUsableSpace();
        int fd = LibC.open(probe, LibC.O_RDWR | LibC.O_CREAT | LibC.O_EXCL | LibC.O_CLOEXEC | LibC.O_NOFOLLOW, 0600);
        if (fd < 0) {
            return new FolderAbilities(
                    kind,
                    false,
                    false,
                    freeBytes,
                    "cannot create " + probe + ": " + Errno.text(com.sun.jna.Native.getLastError()));
        }
        try {
            boolean allocates = LibC.fallocate(fd, 0, 0, MemoryRegion.PAGE_BYTES) == 0;
            int flags = LibC.fcntl(fd, LibC.F_GETFL, 0);
            boolean direct = LibC.fcntl(fd, LibC.F_SETFL, flags | LibC.O_DIRECT) == 0 && writesPage(fd);
            return new FolderAbilities(kind, direct, allocates, freeBytes, "");
        } finally {
            LibC.close(fd);
            boolean ours = Path.of(probe).toFile().delete();
            assert ours || !Path.of(probe).toFile().exists() : probe;
        }
    }

    private static boolean writesPage(int fd) {
        try (MemoryRegion page = MemoryRegion.anonymous(MemoryRegion.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.TOOL)) {
            int bytes = MemoryRegion.PAGE_BYTES;
            return DirectFile.pwrite(fd, page.address(0, bytes), 0, bytes, bytes) == bytes;
        }
    }

    /** Bytes that this process has had read from drives so far; what the page cache answered is not among them. */
    public static long readBytes() {
        return number(field(PROC_SELF.resolve("io"), "read_bytes:"));
    }

    /** Bytes that this process has had written to drives so far. */
    public static long writtenBytes() {
        return number(field(PROC_SELF.resolve("io"), "write_bytes:"));
    }

    /** Processor time of this process so far, user and system. */
    public static long processorNanos() {
        java.lang.management.OperatingSystemMXBean bean =
                java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        return bean instanceof com.sun.management.OperatingSystemMXBean sun ? sun.getProcessCpuTime() : -1;
    }

    /** Bytes of memory that this process occupies now. */
    public static long residentBytes() {
        return kibibytes(field(PROC_SELF.resolve("status"), "VmRSS:"));
    }

    /** The most bytes of memory that this process has occupied so far. */
    public static long residentBytesPeak() {
        return kibibytes(field(PROC_SELF.resolve("status"), "VmHWM:"));
    }

    /** Files that this process has open now, the one that counts them left out. */
    public static int openFiles() {
        String[] names = PROC_SELF.resolve("fd").toFile().list();
        return names == null ? -1 : names.length - 1;
    }

    private static long memoryInfo(String name) {
        return kibibytes(field(Path.of("/proc/meminfo"), name));
    }

    private static long limit(int resource) {
        byte[] limits = new byte[2 * Long.BYTES];
        if (LibC.getrlimit(resource, limits) < 0) {
            return -1;
        }
        long soft = ByteBuffer.wrap(limits).order(ByteOrder.nativeOrder()).getLong(0);
        return soft < 0 ? UNLIMITED : soft; // RLIM_INFINITY has all bits set
    }

    /** The word in brackets, as /sys marks what is chosen. */
    private static String chosen(String line) {
        int open = line.indexOf('[');
        int close = line.indexOf(']', open + 1);
        return open >= 0 && close > open ? line.substring(open + 1, close) : line;
    }

    private static String firstLine(Path file) {
        String text = text(file);
        int end = text.indexOf('\n');
        String line = (end < 0 ? text : text.substring(0, end)).trim();
        return line.isEmpty() ? UNKNOWN : line;
    }

    /** What stands behind a name at the start of a line; empty when there is none. */
    private static String field(Path file, String name) {
        for (String line : text(file).split("\n", -1)) {
            if (line.startsWith(name)) {
                return line.substring(name.length()).trim();
            }
        }
        return "";
    }

    private static String text(Path file) {
        try {
            return Files.readString(file, StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            return "";
        }
    }

    private static long kibibytes(String value) {
        long number = number(value.endsWith(" kB") ? value.substring(0, value.length() - 3) : value);
        return number < 0 ? -1 : number << 10;
    }

    private static long number(String value) {
        try {
            return Long.parseLong(value.trim());
        } catch (NumberFormatException e) {
            return -1;
        }
    }
}
