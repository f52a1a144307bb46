package io.orbitkv.cli;

import io.orbitkv.nativeio.Machine;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * {@code orbitkv doctor}: what this machine offers, and what each missing thing costs.
 *
 * <p>The figures are rounded from measurements on one 2-core virtual machine; they say what to expect, not what is.
 */
@Command(
        name = "doctor",
        sortOptions = false,
        description = {
            "Says what this machine offers to OrbitKV, what each missing thing costs, and how to get it.",
            "Exit code 0 even where something is missing: OrbitKV runs without all of it. Exit code 3 when the folder"
                    + " given with --data can't be used at all."
        })
final class DoctorCommand implements Callable<Integer> {
    private static final long HUGE_PROBE_BYTES = 8L << 20;
    private static final long MEMLOCK_GOOD_BYTES = 1L << 30;
    private static final long OPEN_FILES_GOOD = 1024;

    @Option(
            names = {"--data", "--ssd-cache-path"},
            paramLabel = "<folder>",
            description = "A folder whose drive is looked at as well; a file of 4 KiB is made in it and removed."
                    + " Give it once for each of several. Default: the folder for temporary files.")
    private List<Path> data;

    @Mixin
    private CommonOptions common;

    /** How a thing stands. */
    private enum State {
        GOOD,
        MISSING,
        UNUSABLE
    }

    /** One thing, what was found, and what it means. */
    private record Finding(String name, State state, String found, String meaning) {}

    private final List<Finding> findings = new ArrayList<>();

    @Override
    public Integer call() {
        common.apply();
        List<Path> folders = data != null ? data : List.of(TemporaryFolders.root());
        DataPaths.requireFolders(folders, "name one that exists");
        java();
        ring();
        memory();
        limits();
        for (Path folder : folders) {
            drive(folder, folders.size() == 1 ? "" : " of " + folder);
        }
        print(DataPaths.text(folders));
        common.print(json(DataPaths.text(folders)));
        return findings.stream().anyMatch(finding -> finding.state() == State.UNUSABLE) ? 3 : 0;
    }

    private void java() {
        int feature = Runtime.version().feature();
        add("Java", feature >= 17, System.getProperty("java.version"), "17 or newer is needed");
        add(
                "kernel",
                Machine.kernel().startsWith("Linux"),
                Machine.kernel() + ", " + Machine.architecture(),
                "only Linux is supported");
        add(
                "processors",
                Machine.processors() >= 2,
                Integer.toString(Machine.processors()),
                "with one, saves and the drive's thread take turns");
    }

    private void ring() {
        String problem = Machine.ioUringProblem();
        add(
                "io_uring",
                problem.isEmpty(),
                problem.isEmpty() ? String.join(" ", Machine.ioUringFlags()) : problem,
                "threads read and write instead: about the same throughput for twice the processor time of each"
                        + " transfer; allow io_uring (kernel.io_uring_disabled=0, seccomp profile of the container)");
        if (problem.isEmpty()) {
            List<String> flags = Machine.ioUringFlags();
            add(
                    "io_uring, single issuer",
                    flags.contains("SINGLE_ISSUER") && flags.contains("DEFER_TASKRUN"),
                    flags.contains("DEFER_TASKRUN") ? "yes" : "no",
                    "completions interrupt the thread; a kernel of 6.1 or newer has it");
        }
    }

    private void memory() {
        String mode = Machine.transparentHugePages();
        long huge = hugeBytesOfProbe();
        add(
                "huge pages (transparent)",
                huge > 0,
                mode + (huge > 0 ? ", got them" : ", got none"),
                "transfers of 64 KiB and more reach about half the drive's bandwidth from small pages, and first use of"
                        + " memory takes 4 times as long; set /sys/kernel/mm/transparent_hugepage/enabled to madvise");
        add(
                "huge pages (hugetlb)",
                Machine.hugetlbFree() > 0,
                Machine.hugetlbFree() + " free of " + Sizes.text(Math.max(1, Machine.hugetlbBytes())),
                "not needed by the embedded store; reserve with vm.nr_hugepages for memory shared with other processes");
        add(
                "huge pages, shared memory",
                !mode(Machine.sharedTransparentHugePages()).equals("never"),
                Machine.sharedTransparentHugePages(),
                "memory shared between processes gets small pages, with about half the drive's bandwidth; not needed by"
                        + " the embedded store (/sys/kernel/mm/transparent_hugepage/shmem_enabled: advise)");
        add(
                "memory available",
                Machine.availableBytes() >= 2L << 30,
                Sizes.text(Math.max(1, Machine.availableBytes())) + " of "
                        + Sizes.text(Math.max(1, Machine.memoryBytes())),
                "the default pool is 1 GiB; give a smaller --pool-size");
    }

    private static String mode(String text) {
        return text == null ? Machine.UNKNOWN : text;
    }

    /** Asks for huge pages and looks whether they came: the mode alone doesn't tell, for memory may be fragmented. */
    private static long hugeBytesOfProbe() {
        try (MemoryRegion probe =
                MemoryRegion.anonymous(HUGE_PROBE_BYTES, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL)) {
            probe.fill(0, probe.bytes(), (byte) 1);
            return probe.hugeBytes();
        }
    }

    private void limits() {
        long locked = Machine.lockedBytesMax();
        boolean root = "root".equals(System.getProperty("user.name"));
        add(
                "locked memory",
                locked >= MEMLOCK_GOOD_BYTES || root,
                (locked == Machine.UNLIMITED ? "without a limit" : Sizes.text(Math.max(1, locked)))
                        + (root ? ", but root may lock more" : ""),
                "the pool can't be registered with io_uring, and each transfer pins its pages anew: some µs of processor"
                        + " time; raise LimitMEMLOCK (ulimit -l) above the pool or give CAP_IPC_LOCK");
        long files = Machine.openFilesMax();
        add(
                "open files",
                files >= OPEN_FILES_GOOD,
                files == Machine.UNLIMITED ? "without a limit" : Long.toString(files),
                "one file for each 64 MiB of the cap is open at once; raise LimitNOFILE (ulimit -n)");
    }

    private void drive(Path folder, String which) {
        Machine.FolderAbilities drive = Machine.folderAbilities(folder);
        if (!drive.problem().isEmpty()) {
            findings.add(new Finding(
                    "data folder" + which,
                    State.UNUSABLE,
                    drive.problem(),
                    "nothing works there; give another --data"));
            return;
        }
        add(
                "file system" + which,
                !isInMemory(drive),
                drive.fileSystem(),
                "blocks would lie in memory twice and survive nothing");
        add(
                "direct I/O (O_DIRECT)" + which,
                drive.directIo(),
                drive.directIo() ? "yes" : "no",
                "every block takes a detour through the page cache: a second copy in memory and one more copy of each"
                        + " transfer; use ext4 or xfs on a local drive");
        add(
                "preallocation (fallocate)" + which,
                drive.preallocation(),
                drive.preallocation() ? "yes" : "no",
                "files are filled with zeros when a store is made, which takes as long as writing the whole cap once");
        add(
                "room on the drive" + which,
                drive.freeBytes() >= 8L << 30,
                Sizes.text(Math.max(1, drive.freeBytes())) + " free",
                "the default cap is 8 GiB; give a smaller --cap");
    }

    private static boolean isInMemory(Machine.FolderAbilities drive) {
        return drive.fileSystem().equals("tmpfs") || drive.fileSystem().equals("ramfs");
    }

    private void add(String name, boolean good, String found, String meaning) {
        findings.add(new Finding(name, good ? State.GOOD : State.MISSING, found, good ? "" : meaning));
    }

    private void print(String folder) {
        PrintStream out = common.text();
        Table table = new Table(false, "what", "", "found");
        for (Finding finding : findings) {
            table.row(finding.name(), finding.state() == State.GOOD ? "ok" : "--", finding.found());
        }
        table.print(out);
        out.println();
        for (Finding finding : findings) {
            if (finding.state() != State.GOOD) {
                out.println(finding.name() + ": " + finding.meaning() + ".");
            }
        }
        out.println("Looked at " + folder + ". Figures are rounded from one virtual machine with 2 cores.");
    }

    private Json json(String folder) {
        Json json = new Json().put("folder", folder).array("findings");
        for (Finding finding : findings) {
            json.element()
                    .put("name", finding.name())
                    .put("state", finding.state().name().toLowerCase(java.util.Locale.ROOT))
                    .put("found", finding.found())
                    .put("meaning", finding.meaning())
                    .end();
        }
        return json.end();
    }
}
