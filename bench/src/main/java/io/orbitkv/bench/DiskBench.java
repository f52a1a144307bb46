package io.orbitkv.bench;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleSupplier;

/**
 * Question: how much of what the drive gives does the store pass on? fio and the store do the same work on the same file
 * system, alternately: writing and reading large blocks in order, reading small ones from random places; and a single
 * large block is restored beside {@code pread} of the same bytes.
 *
 * <p>Both sides use io_uring with direct I/O, registered files and equally many transfers in flight. All files were
 * written before; memory lies on huge pages on both sides or on neither. A restore also checks every byte it read, a save
 * also copies and checksums every byte it writes: that is what the store is asked for, and its CPU time shows it. What the
 * drive gives while a core does only that is measured too, as a second floor.
 */
public final class DiskBench {
    private static final int DEPTH = 32;
    private static final int WARM_UPS = 2;
    private static final int SINGLES = 64;

    // The sides of a round, in turns.
    private static final int FIO = 0;
    private static final int FIO_BESIDE_WORK = 1;
    private static final int STORE = 2;
    private static final int SIDES = 3;

    private static final long PROBE_BYTES = 64L << 20;
    private static final double GIB = 1L << 30;

    private final DiskSettings settings;
    private final List<DiskRow> rows = new ArrayList<>();
    private final com.sun.management.OperatingSystemMXBean process =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private boolean hugePages;

    private DiskBench(DiskSettings settings) {
        this.settings = settings;
    }

    /** Runs all comparisons. */
    public static DiskResult run(DiskSettings settings) {
        return new DiskBench(settings).run();
    }

    private DiskResult run() {
        Path folder = BenchStore.newFolder(settings.folder());
        try {
            Fio fio = Fio.find(folder, DiskStore.logBytes(settings), settings.roundBytes());
            settings.progress().accept("writing fio's file once");
            Fio.Run first = fio.makeFile(settings.blockBytes(), DEPTH, true);
            hugePages = isHuge(first) && canHaveHugePages();
            large(fio);
            small(fio);
            return new DiskResult(rows, fio.version(), fio.hasFixedBuffers());
        } finally {
            BenchStore.delete(folder);
        }
    }

    private static boolean isHuge(Fio.Run run) {
        return run.hugeBytes() >= run.bufferBytes() * 9 / 10;
    }

    private static boolean canHaveHugePages() {
        try (MemoryRegion probe = MemoryRegion.anonymous(PROBE_BYTES, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL)) {
            probe.fill(0, probe.bytes(), (byte) 1);
            return probe.hugeBytes() >= PROBE_BYTES * 9 / 10;
        }
    }

    private void large(Fio fio) {
        int blockBytes = settings.blockBytes();
        try (DiskStore store = new DiskStore(settings, blockBytes, DEPTH, hugePages)) {
            store.fill();
            compare("write", store, store::save, fio, Fio.Work.WRITE, ByteWork.Kind.COPY_AND_CHECK, blockBytes);
            store.saveCold(false);
            compare("restore", store, store::restore, fio, Fio.Work.READ, ByteWork.Kind.CHECK, blockBytes);
            single(store);
        }
    }

    private void small(Fio fio) {
        int blockBytes = settings.randomBlockBytes();
        try (DiskStore store = new DiskStore(settings, blockBytes, DEPTH, hugePages)) {
            store.fill();
            store.saveCold(true);
            compare(
                    "random restore",
                    store,
                    store::restore,
                    fio,
                    Fio.Work.RANDOM_READ,
                    ByteWork.Kind.CHECK,
                    blockBytes);
        }
    }

    /**
     * The store, fio, and fio beside a core that does with equally many bytes what the store does with its own: the last
     * shows what the machine leaves of its drive to anybody who looks at the bytes.
     */
    private void compare(
            String what,
            DiskStore store,
            DoubleSupplier work,
            Fio fio,
            Fio.Work same,
            ByteWork.Kind beside,
            int blockBytes) {
        int rounds = settings.rounds();
        double[] ours = new double[rounds];
        double[] alone = new double[rounds];
        double[] loaded = new double[rounds];
        double[] cpuNanos = new double[SIDES];
        double pace = 0;
        boolean aloneHuge = true;
        boolean loadedHuge = true;
        for (int round = -WARM_UPS; round < rounds; round++) {
            settings.progress().accept(what + ", blocks of " + blockBytes + " bytes: round " + round);
            int slot = Math.max(round, 0);
            int counted = round < 0 ? 0 : 1;
            for (int step = 0; step < SIDES; step++) {
                int side = (step + round + WARM_UPS) % SIDES;
                if (side == FIO) {
                    Fio.Run run = fio.run(same, blockBytes, DEPTH, hugePages);
                    alone[slot] = run.nanos() / run.bytes() * blockBytes;
                    pace = alone[slot];
                    cpuNanos[side] += counted * run.cpuNanos();
                    aloneHuge &= isHuge(run);
                } else if (side == FIO_BESIDE_WORK) {
                    ByteWork bytes = store.work(beside, pace);
                    Fio.Run run = fio.run(same, blockBytes, DEPTH, hugePages);
                    ByteWork.Done done = bytes.stop();
                    loaded[slot] = Math.max(done.blockNanos(), run.nanos() / run.bytes() * blockBytes);
                    cpuNanos[side] += counted * (run.cpuNanos() + done.busyNanos() * run.bytes() / blockBytes);
                    loadedHuge &= isHuge(run);
                } else {
                    long cpu = process.getProcessCpuTime();
                    ours[slot] = work.getAsDouble();
                    cpuNanos[side] += counted * (process.getProcessCpuTime() - cpu);
                }
            }
        }
        String floor = "fio " + same.label();
        String loadedFloor = floor + " + " + beside.label();
        double cpu = cpuNanos[STORE];
        rows.add(row(what, store, blockBytes, ours, floor, alone, cpu, cpuNanos[FIO], aloneHuge));
        rows.add(row(what, store, blockBytes, ours, loadedFloor, loaded, cpu, cpuNanos[FIO_BESIDE_WORK], loadedHuge));
    }

    private DiskRow row(
            String what,
            DiskStore store,
            int blockBytes,
            double[] ours,
            String floor,
            double[] theirs,
            double storeCpuNanos,
            double floorCpuNanos,
            boolean floorHuge) {
        double gibibytes = settings.rounds() * settings.roundBytes() / GIB;
        return new DiskRow(
                BenchRow.of(what, floor, blockBytes, store.blocksPerCall(), ours, theirs),
                BenchRow.ofFloor(floor, blockBytes, 1, theirs),
                DEPTH,
                storeCpuNanos / 1e9 / gibibytes,
                floorCpuNanos / 1e9 / gibibytes,
                pages(store.isOnHugePages()),
                pages(floorHuge));
    }

    private void single(DiskStore store) {
        double[] ours = new double[settings.rounds()];
        double[] pread = new double[settings.rounds()];
        double[] checked = new double[settings.rounds()];
        for (int round = -WARM_UPS; round < settings.rounds(); round++) {
            settings.progress().accept("one block of " + settings.blockBytes() + " bytes: round " + round);
            double[] medians = store.single(SINGLES, round + WARM_UPS);
            ours[Math.max(round, 0)] = medians[0];
            pread[Math.max(round, 0)] = medians[1];
            checked[Math.max(round, 0)] = medians[2];
        }
        rows.add(single(store, ours, "pread", pread));
        rows.add(single(store, ours, "pread + CRC32C", checked)); // what one core takes for both, one after the other
    }

    private DiskRow single(DiskStore store, double[] ours, String floor, double[] theirs) {
        String pages = pages(store.isOnHugePages());
        return new DiskRow(
                BenchRow.of("one block", floor, settings.blockBytes(), 1, ours, theirs),
                BenchRow.ofFloor(floor, settings.blockBytes(), 1, theirs),
                1,
                -1,
                -1,
                pages,
                pages);
    }

    private static String pages(boolean huge) {
        return huge ? "huge" : "small";
    }
}
