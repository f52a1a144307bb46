package io.orbitkv.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.NamespaceRow;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.LeakCheck;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.SegmentHeader;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: what can't be opened is refused with a code, the file and what to do; nothing is changed and nothing leaks, so
 * that with the cause removed the store opens with all its blocks.
 *
 * <p>Method: one store on the real file system with a segment of blocks; each test spoils one thing, is refused, puts it
 * right, and reads all blocks.
 */
final class BadInputTest {
    private static final long CAP_BYTES = 8L << 20;
    private static final int SEGMENT_BYTES = 256 << 10;
    private static final String SEGMENTS = "segments/000000000000.seg";

    private final TestFolders folders = new TestFolders();
    private final OpeningOptions options =
            OpeningOptions.of(CAP_BYTES).withSegmentBytes(SEGMENT_BYTES).withLockWaitNanos(50_000_000);
    private final List<TestBlock> blocks = new ArrayList<>();
    private Path path;

    @AfterEach
    void remove() {
        folders.close();
    }

    private void makeStore() {
        path = folders.make("bad-input");
        try (TestLife life = open(options)) {
            try (var batch = life.opened.catalog().begin()) {
                batch.putNamespace(new NamespaceRow(11, new Gen(1).bytes(32), 1, new byte[0]));
                batch.commit();
            }
            try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
                blocks.addAll(OpeningScenarios.sealed(log, 1, 1, 11, 100));
            }
        }
    }

    private TestLife open(OpeningOptions with) {
        return new TestLife(HostFolder.open(path), with);
    }

    private OrbitKvException refused(ErrorCode code, OpeningOptions with, String... parts) {
        LeakCheck before = LeakCheck.take();
        OrbitKvException e;
        try (HostFolder folder = HostFolder.open(path)) {
            e = assertThrows(OrbitKvException.class, () -> new TestLife(folder, with).close());
        }
        assertEquals(code, e.code(), e.getMessage());
        for (String part : parts) {
            assertTrue(e.getMessage().contains(part), e.getMessage());
        }
        before.assertNothingLeaked();
        return e;
    }

    private void stillGood() {
        try (TestLife life = open(options)) {
            life.requireAll(blocks);
            assertEquals(blocks.size(), life.opened.accounting().indexedBlocks());
        }
    }

    @Test
    void aFolderInUseIsRefusedWithThePid() {
        makeStore();
        try (TestLife life = open(options)) {
            refused(
                    ErrorCode.FOLDER_IN_USE,
                    options,
                    path.toString(),
                    Long.toString(ProcessHandle.current().pid()));
            life.requireAll(blocks);
        }
        stillGood();
    }

    @Test
    void aFolderWithOtherThingsIsRefusedWithoutATrace() throws IOException {
        path = folders.make("foreign");
        Files.writeString(path.resolve("thesis.tex"), "do not touch");
        refused(ErrorCode.FOREIGN_FILE, options, "thesis.tex", path.toString());
        assertEquals(List.of("thesis.tex"), List.of(path.toFile().list()));
    }

    @Test
    void foreignFilesInAStoreAreCountedAndLeftAlone() throws IOException {
        makeStore();
        Files.write(path.resolve("notes.txt"), new byte[10_000]);
        Files.write(path.resolve("segments/copy.seg"), new byte[5_000]);
        try (TestLife life = open(options)) {
            life.requireAll(blocks);
            assertEquals(
                    List.of("notes.txt", "segments/copy.seg"),
                    life.opened.report().foreignNames());
            assertTrue(life.opened.report().foreignBytes() >= 15_000);
        }
        assertTrue(Files.exists(path.resolve("notes.txt")));
    }

    @Test
    void aMissingOrShortSegmentFileIsRefused() throws IOException {
        makeStore();
        Path file = path.resolve(SEGMENTS);
        Files.move(file, path.resolve("elsewhere"));
        refused(ErrorCode.SEGMENT_FILE, options, SEGMENTS, "missing");
        Files.move(path.resolve("elsewhere"), file);
        stillGood();
        byte[] whole = Files.readAllBytes(file);
        try (RandomAccessFile cut = new RandomAccessFile(file.toFile(), "rw")) {
            cut.setLength(whole.length - 4096);
        }
        refused(ErrorCode.SEGMENT_FILE, options, SEGMENTS, Integer.toString(whole.length - 4096));
        Files.write(file, whole);
        stillGood();
    }

    @Test
    void segmentsOfAnotherStoreVersionOrPlaceAreRefused() throws IOException {
        makeStore();
        byte[] good = Files.readAllBytes(path.resolve(SEGMENTS));
        LogGeometry geometry;
        try (TestLife life = open(options)) {
            geometry = life.opened.geometry();
        }
        LogGeometry other = new LogGeometry(SEGMENT_BYTES, geometry.segments(), new byte[16]);
        putHeader(page -> new SegmentHeader(other).encode(page, 0, 3, 5), 3);
        refused(ErrorCode.OTHER_STORE, options, SEGMENTS, "segment 3");
        putHeader(page -> new SegmentHeader(geometry).encode(page, 0, 4, 5), 3);
        refused(ErrorCode.SEGMENT_HEADER, options, SEGMENTS, "segment 3");
        putHeader(
                page -> {
                    new SegmentHeader(geometry).encode(page, 0, 3, 5);
                    page.putInt(8, 2);
                    page.putInt(4092, new BlockChecksum().update(page, 0, 4092).value());
                },
                3);
        refused(ErrorCode.OTHER_VERSION, options, SEGMENTS, "version 2");
        try (HostFolder folder = HostFolder.open(path)) {
            VerifyReport report = Verify.run(folder, options);
            assertEquals(ErrorCode.OTHER_VERSION, report.problems().get(0).code());
        }
        Files.write(path.resolve(SEGMENTS), good);
        stillGood();
    }

    private void putHeader(java.util.function.Consumer<MemoryRegion> page, int segment) {
        try (HostFolder folder = HostFolder.open(path);
                StorageFile file = folder.open(SEGMENTS, true);
                MemoryRegion memory = MemoryRegion.anonymous(4096, PageKind.SMALL, MemoryPurpose.TOOL)) {
            page.accept(memory);
            file.write((long) segment * SEGMENT_BYTES, memory, 0, 4096);
        }
    }

    @Test
    void aDamagedOrMissingCatalogIsRefusedAndNothingChanges() throws IOException {
        makeStore();
        Path file = path.resolve("catalog/data.mdb");
        byte[] good = Files.readAllBytes(file);
        byte[] log = Files.readAllBytes(path.resolve(SEGMENTS));
        Files.delete(file);
        refused(ErrorCode.CATALOG, options, file.toString(), "missing");
        byte[] bad = good.clone();
        bad[17] ^= 8;
        Files.write(file, bad);
        refused(ErrorCode.CATALOG, options, file.toString(), "Put the file back");
        try (HostFolder folder = HostFolder.open(path)) {
            VerifyReport report = Verify.run(folder, options);
            assertEquals(ErrorCode.CATALOG, report.problems().get(0).code());
            assertFalse(report.isClean());
        }
        assertTrue(java.util.Arrays.equals(log, Files.readAllBytes(path.resolve(SEGMENTS))));
        Files.write(file, good);
        stillGood();
    }

    @Test
    void otherSizesAreRefused() {
        makeStore();
        refused(ErrorCode.OTHER_GEOMETRY, options.withSegmentBytes(1 << 20), "262144", "1048576");
        refused(ErrorCode.CAP_TOO_SMALL, OpeningOptions.of(1 << 20), "1048576", "store that is there");
        try (TestLife life = open(OpeningOptions.of(0))) { // as it was made
            life.requireAll(blocks);
        }
    }

    @Test
    void aCapThatIsTooSmallNamesTheSmallestThatWorks() {
        path = folders.make("cap");
        OrbitKvException e = refused(ErrorCode.CAP_TOO_SMALL, OpeningOptions.of(4L << 20), "4194304");
        assertEquals(0, path.toFile().list().length, "nothing was made");
        Matcher smallest = Pattern.compile("at least (\\d+) bytes").matcher(e.getMessage());
        assertTrue(smallest.find(), e.getMessage());
        long cap = Long.parseLong(smallest.group(1));
        refused(ErrorCode.CAP_TOO_SMALL, OpeningOptions.of(cap - (1 << 17)), "segments");
        try (TestLife life = open(OpeningOptions.of(cap))) {
            assertEquals(OpeningOptions.SEGMENTS_MIN, life.opened.geometry().segments());
            assertTrue(life.folder.allocatedBytes("") <= cap);
        }
        path = folders.make("cap");
        try (TestLife life = open(OpeningOptions.of(16L << 20))) {
            assertEquals(1 << 20, life.opened.geometry().segmentBytes());
            assertTrue(life.opened.geometry().segments() >= 14);
            long used = life.folder.allocatedBytes("") + life.opened.budget().snapshotBytes();
            assertTrue(used <= 16L << 20, used + " bytes");
        }
        path = folders.make("cap");
        refused(ErrorCode.CAP_TOO_SMALL, OpeningOptions.of(0), "give a cap");
    }

    @Test
    void aFullDriveIsRefusedBeforeAnythingIsMade() {
        SimulatedFolder folder = new SimulatedFolder(1, folders.make("full"));
        folder.capacityBytes(5L << 20);
        OrbitKvException e = assertThrows(OrbitKvException.class, () -> new TestLife(folder, options.simulated(1)));
        assertEquals(ErrorCode.NO_SPACE, e.code());
        assertTrue(e.getMessage().contains("missing"), e.getMessage());
        assertTrue(folder.list("").isEmpty());
    }

    @Test
    void aSnapshotWithoutRoomIsLeftOut() {
        makeStore();
        TestLife life = open(options);
        OpenedFolder opened = life.opened;
        assertFalse(CleanStop.write(opened, opened.namespaces(), 100, 100, 8192, io.orbitkv.nativeio.WindowProbe.NONE));
        life.close();
        stillGood();
    }

    @Test
    void nothingLeaksOverManyOpenings() {
        makeStore();
        stillGood();
        LeakCheck before = LeakCheck.take();
        for (int i = 0; i < 30; i++) {
            try (TestLife life = open(options)) {
                if (i % 2 == 0) {
                    assertTrue(OpeningScenarios.stop(
                            life,
                            life.opened.nextPosition(),
                            life.opened.logState().nextUseSequence()));
                } else {
                    assertEquals(OpeningKind.CLEAN, life.opened.kind());
                }
                life.requireAll(blocks);
            }
        }
        before.assertNothingLeaked();
    }
}
