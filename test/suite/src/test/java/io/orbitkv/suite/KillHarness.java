package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.recovery.OpeningKind;
import io.orbitkv.recovery.OpeningOptions;
import io.orbitkv.recovery.Verify;
import io.orbitkv.recovery.VerifyReport;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.store.StoreStats;
import io.orbitkv.suite.CrashLedger.Block;
import io.orbitkv.suite.CrashLedger.Promise;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.agrona.concurrent.UnsafeBuffer;

/** Starts {@link KillChild}, kills it, opens its folder and holds it against what the child was promised. */
final class KillHarness implements AutoCloseable {
    /** The family that the child clears now and then. */
    static final int CLEARED_FAMILY = 2;

    private static final int SEGMENT_BYTES = 64 << 10;
    private static final int PROMPTS_CHECKED = 800;
    private static final int KILLED = 128 + 9;
    private static final long START_NANOS_MAX = 60_000_000_000L;
    private static final long LIFE_NANOS_MAX = 250_000_000L;
    private static final long WINDOW_NANOS_MAX = 1_500_000_000L;
    private static final int LOG_BYTES_SHOWN = 4000;

    private final List<Path> folders = new ArrayList<>();
    private final Path pageFile;
    private final Path log;
    private final MemoryRegion page;
    private final long seed;
    private final Gen gen;
    private final CrashFamily[] families = families();
    private final CrashLedger ledger = new CrashLedger(families);
    private final CrashPrompts prompts;
    private final CrashCheck check;
    private static final long WHOLE_MILLIS = 60_000;
    private final Map<CrashWindow, Integer> hits = new EnumMap<>(CrashWindow.class);

    private int lastPrompt = -1;
    private int clearing = -1;
    private boolean wasReady;
    private volatile boolean opening;
    private volatile boolean ready;
    private IOException broken;

    // ---- totals ----
    private int kills;
    private int outside;
    private long acknowledged;
    private long promisesChecked;
    private long promisesKept;
    private long clears;
    private final Map<OpeningKind, Integer> openings = new EnumMap<>(OpeningKind.class);

    /**
     * A store that has had no life yet.
     *
     * @param work an empty folder
     * @param folderCount data folders of the store
     * @param seed of what is saved
     */
    KillHarness(Path work, int folderCount, long seed) {
        for (int i = 0; i < folderCount; i++) {
            folders.add(work.resolve("store-" + i));
        }
        this.pageFile = work.resolve("windows");
        this.log = work.resolve("child.log");
        this.page = MemoryRegion.sharedFile(pageFile.toString(), MemoryRegion.PAGE_BYTES);
        this.seed = seed;
        this.gen = new Gen(Gen.mix(seed));
        this.prompts = new CrashPrompts(seed);
        this.check = new CrashCheck(families, prompts, ledger);
        for (CrashWindow window : CrashWindow.values()) {
            hits.put(window, 0);
        }
    }

    static CrashFamily[] families() {
        return new CrashFamily[] {
            new CrashFamily(0, 1, 4096), new CrashFamily(1, 2, 8192), new CrashFamily(CLEARED_FAMILY, 1, 9000)
        };
    }

    static CrashFamily familyOf(CrashFamily[] families, int prompt) {
        return families[(int) Long.remainderUnsigned(Gen.mix(prompt), families.length)];
    }

    /** Small segments and a small cap, so that seals and reuse are frequent. */
    static StoreOptions options(List<Path> folders, WindowProbe probe) {
        return StoreOptions.inFolders(folders)
                .poolBytes(4 << 20)
                .capBytes(16 << 20)
                .segmentBytes(SEGMENT_BYTES)
                .blockBytesLargest(12_288)
                .indexBlocksMax(16_384)
                .queryBlocksMax(64)
                .leasesMax(8)
                .writeQueueBlocks(256)
                .flushIntervalMillis(20)
                .pageKind(PageKind.SMALL)
                .lockWaitMillis(20_000)
                .probe(probe);
    }

    int hits(CrashWindow window) {
        return hits.get(window);
    }

    // ---- killing ----

    /**
     * Starts a child and kills it.
     *
     * @param wanted kill inside of this window, if it opens in time; null: at a random moment, be it while it opens
     */
    void kill(CrashWindow wanted) throws IOException, InterruptedException {
        page.fill(0, MemoryRegion.PAGE_BYTES, (byte) 0);
        opening = false;
        ready = false;
        broken = null;
        Process child = start();
        Thread reader = new Thread(() -> read(child), "kill-child-frames");
        reader.start();
        try {
            boolean whileOpening = wanted == null && gen.below(5) == 0;
            long life = gen.between(0, whileOpening ? LIFE_NANOS_MAX / 4 : LIFE_NANOS_MAX);
            awaitStart(child, whileOpening);
            LockSupport.parkNanos(life);
            if (wanted != null) {
                awaitWindow(wanted);
            }
        } finally {
            child.toHandle().destroyForcibly(); // SIGKILL, and unlike the process's own it leaves the pipe readable
            child.waitFor(60, TimeUnit.SECONDS);
            reader.join();
        }
        if (broken != null || child.exitValue() != KILLED) {
            throw new AssertionError(
                    "the child ended by itself with exit code " + child.exitValue() + ": " + logTail(), broken);
        }
        kills++;
        wasReady |= ready;
        count();
    }

    private Process start() throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        String flags = Runtime.version().feature() >= 24 ? "jvm.25" : "jvm.17";
        command.add("@" + Path.of(System.getProperty("orbitkv.root"), "bin", flags));
        command.addAll(List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx128m", "-ea"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), KillChild.class.getName()));
        command.addAll(List.of(text(folders), pageFile.toString(), Long.toString(seed)));
        command.add(Integer.toString(lastPrompt + 1));
        for (CrashFamily family : families) {
            command.add(Integer.toString(family.clears));
        }
        return new ProcessBuilder(command).redirectError(log.toFile()).start();
    }

    private void awaitStart(Process child, boolean openingIsEnough) {
        long start = System.nanoTime();
        while (!(openingIsEnough ? opening : ready) && child.isAlive()) {
            if (System.nanoTime() - start > START_NANOS_MAX) {
                throw new AssertionError("the child does not get ready: " + logTail());
            }
            LockSupport.parkNanos(200_000);
        }
    }

    private void awaitWindow(CrashWindow window) {
        long start = System.nanoTime();
        long offset = (long) window.ordinal() * Integer.BYTES;
        while (page.getIntVolatile(offset) == 0 && System.nanoTime() - start < WINDOW_NANOS_MAX) {
            Thread.onSpinWait();
        }
    }

    private void count() {
        boolean inside = false;
        for (CrashWindow window : CrashWindow.values()) {
            if (page.getIntVolatile((long) window.ordinal() * Integer.BYTES) > 0) {
                hits.merge(window, 1, Integer::sum);
                inside = true;
            }
        }
        outside += inside ? 0 : 1;
    }

    /** On a thread of its own, which the killer joins before it looks at what was read. */
    private void read(Process child) {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(child.getInputStream(), 1 << 16))) {
            UnsafeBuffer key = new UnsafeBuffer(new byte[32]);
            for (int frame = in.read(); frame >= 0; frame = in.read()) {
                take(frame, in, key);
            }
        } catch (EOFException e) {
            return; // killed in the middle of a frame
        } catch (IOException e) {
            broken = e;
        }
    }

    private void take(int frame, DataInputStream in, UnsafeBuffer key) throws IOException {
        switch (frame) {
            case 'O' -> opening = true;
            case 'R' -> ready = true;
            case 'P' -> lastPrompt = in.readInt();
            case 'C' -> clearing = in.readInt();
            case 'D' -> {
                cleared(families[in.readInt()]);
                clearing = -1;
            }
            case 'A' -> {
                int family = in.readInt();
                int shard = in.readInt();
                in.readFully(key.byteArray());
                long position = in.readLong();
                int segment = in.readInt();
                long use = in.readLong();
                ledger.claim(Block.of(family, shard, key, 0), key, 0, Promise.WRITTEN, position, segment, use);
                acknowledged++;
            }
            default -> throw new IOException("the child sent an unknown frame: " + frame);
        }
    }

    private void cleared(CrashFamily family) {
        family.clears++;
        ledger.cleared(family.number);
        clears++;
    }

    private String logTail() {
        try {
            String text = Files.readString(log);
            return text.substring(Math.max(0, text.length() - LOG_BYTES_SHOWN));
        } catch (IOException e) {
            return "(no log: " + e.getMessage() + ")";
        }
    }

    // ---- checking ----

    /** Whether the outcome of a clear is unknown, so that no other child may run before a look. */
    boolean mustLook() {
        return clearing >= 0;
    }

    /** One of several folders is gone, as with its drive. */
    void lose(int number) {
        TestFolders.remove(folders.get(number));
        ledger.lost(segment -> segment % folders.size() == number);
    }

    /** Opens the folder, holds it against the promises, restores and compares everything, stops, verifies. */
    void checkFolder() {
        try (KvStore store = KvStore.open(options(folders, WindowProbe.NONE))) {
            assertTrue(store.awaitWhole(WHOLE_MILLIS), () -> "the index is not whole: " + store.openReport());
            OpeningKind kind = store.openReport().kind();
            openings.merge(kind, 1, Integer::sum);
            assertTrue(!wasReady || kind == OpeningKind.KILL, "after a kill the opening is of kind " + kind);
            assertTrue(store.openReport().accounting().isWhole(), "accounting");
            check.attach(store);
            int first = Math.max(0, lastPrompt - PROMPTS_CHECKED);
            settleClear(first);
            long promises = ledger.size();
            try (DataFolders headersOf = openFolders();
                    SegmentHeaders headers = new SegmentHeaders(headersOf.list(), SEGMENT_BYTES)) {
                List<SegmentRow> rows = segmentsWithoutBlocks();
                List<String> lost = ledger.check(
                        store,
                        check.handles,
                        Promise.WRITTEN,
                        headers::useSequence,
                        (segment, use) -> headers.useSequence(segment) == 0 && isGivenUpForCap(rows, segment, use),
                        (block, claim) -> false);
                assertEquals(List.of(), lost, () -> lost.size() + " blocks are lost; the catalog says " + rows);
            }
            promisesChecked += promises;
            promisesKept += ledger.size();
            check.restorePromised();
            for (int number = first; number <= lastPrompt; number++) {
                check.checkPrompt(familyOf(families, number), prompts.get(number));
            }
            StoreStats stats = store.stats();
            assertEquals(0, stats.corruptBlocks(), "blocks in the index whose bytes are wrong");
            assertEquals(0, stats.readErrors(), "read errors");
            assertTrue(stats.ownBytes() <= stats.capBytes(), "more bytes than the cap: " + stats);
        }
        verify();
        wasReady = false;
    }

    /** What the catalog knows of segments that hold no blocks. */
    private List<SegmentRow> segmentsWithoutBlocks() {
        try (DataFolders all = openFolders()) {
            return all.list().stream()
                    .flatMap(one -> Catalog.read(one.path() + "/catalog").segments().stream())
                    .filter(row -> row.state() == SegmentRow.State.ABSENT || row.state() == SegmentRow.State.FREE)
                    .toList();
        }
    }

    /**
     * The pages of a segment that the cap had no room for are gone, and its header with them: its row says which use ended,
     * also when it has pages again that nobody has written to.
     */
    private static boolean isGivenUpForCap(List<SegmentRow> rows, int segment, long use) {
        return rows.stream().anyMatch(row -> row.segment() == segment && row.useSequence() >= use);
    }

    /** A clear that the child died in has happened whole or not at all: one block that is there says not at all. */
    private void settleClear(int firstPrompt) {
        if (clearing >= 0) {
            CrashFamily family = families[clearing];
            clearing = -1;
            if (!check.hasAny(family, firstPrompt, lastPrompt + 1)) {
                cleared(family);
            }
        }
    }

    private DataFolders openFolders() {
        return new DataFolders(folders.stream().map(HostFolder::open).toList());
    }

    /** Folders as one argument of a child. */
    static String text(List<Path> folders) {
        return folders.stream().map(Path::toString).collect(Collectors.joining(File.pathSeparator));
    }

    private void verify() {
        try (DataFolders opened = openFolders()) {
            VerifyReport report = Verify.run(opened, OpeningOptions.of(0));
            assertTrue(report.isClean(), () -> "verify: " + report.problems());
        }
    }

    /** What was done, as a table. */
    String report() {
        StringBuilder text = new StringBuilder(String.format("%d kills, seed %d%n", kills, seed));
        text.append(String.format("  %-16s %5s%n", "killed inside of", "kills"));
        hits.forEach((window, count) -> text.append(String.format("  %-16s %5d%n", window, count)));
        text.append(String.format("  %-16s %5d%n", "none of them", outside));
        text.append(String.format(
                "  openings %s; %d prompts; acknowledged blocks %d; promises checked %d, kept %d, ended with their"
                        + " segment %d; lost 0%n",
                openings, lastPrompt + 1, acknowledged, promisesChecked, promisesKept, promisesChecked - promisesKept));
        text.append(
                String.format("  blocks restored and compared %d, wrong 0; clears %d", check.restoredBlocks(), clears));
        return text.toString();
    }

    @Override
    public void close() {
        check.close();
        page.close();
    }
}
