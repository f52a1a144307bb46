package io.orbitkv.nativeio;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a folder on a real file system does what {@link DataFolder} says, and each failure names itself and its remedy.
 * Method: the failures that root can meet too (a file in the way, no parent, no room); locks against a second JVM.
 */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class HostFolderTest {
    private static final int PAGE = MemoryRegion.PAGE_BYTES;

    private final TestFolder place = new TestFolder();

    @AfterEach
    void remove() {
        place.close();
    }

    @Test
    void aMissingFolderIsMadeForItsOwnerOnly() throws IOException {
        try (HostFolder folder = HostFolder.open(place.data());
                StorageFile file = folder.create("a", PAGE)) {
            folder.makeFolder("sub");
            folder.makeFolder("sub");
            assertEquals("rwx------", mode(place.data()));
            assertEquals("rwx------", mode(place.data().resolve("sub")));
            assertEquals("rw-------", mode(place.data().resolve("a")));
            assertEquals(36, folder.bootId().length());
            assertEquals("a", file.name());
        }
    }

    private static String mode(Path path) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
    }

    @Test
    void unusableFoldersSayWhy() throws IOException {
        Path file = Files.writeString(place.path().resolve("file"), "x");
        assertFails(ErrorCode.FOLDER_UNUSABLE, "is not a folder", () -> HostFolder.open(file));
        assertFails(ErrorCode.FOLDER_UNUSABLE, "is not a folder", () -> HostFolder.open(file.resolve("below")));
        assertFails(
                ErrorCode.FOLDER_UNUSABLE,
                "does not exist",
                () -> HostFolder.open(place.path().resolve("no/where")));
        assertFails(ErrorCode.FOLDER_UNUSABLE, "/proc/", () -> HostFolder.open(Path.of("/proc/orbitkv")));
    }

    private static void assertFails(ErrorCode code, String part, org.junit.jupiter.api.function.Executable action) {
        OrbitKvException e = assertThrows(OrbitKvException.class, action);
        assertEquals(code, e.code(), e.getMessage());
        assertTrue(e.getMessage().contains(part), e.getMessage());
    }

    @Test
    void filesAreListedRenamedRemovedAndMeasured() {
        try (HostFolder folder = HostFolder.open(place.data())) {
            folder.makeFolder("segments");
            folder.create("segments/b", 16L * PAGE).close();
            folder.create("segments/a", 8L * PAGE).close();
            assertEquals(List.of("a", "b"), folder.list("segments"));
            assertEquals(List.of("segments"), folder.list(""));
            assertEquals(List.of(), folder.list("nothing"));
            assertEquals(16L * PAGE, folder.allocatedBytes("segments/b"), "fallocate must give real blocks");
            long folderItself = folder.allocatedBytes("segments") - 24L * PAGE;
            assertTrue(folderItself >= 0 && folderItself <= 2 * PAGE, "" + folderItself);
            assertEquals(0, folder.allocatedBytes("nothing"));
            folder.rename("segments/a", "segments/b");
            folder.syncFolder("segments");
            folder.syncFolder("");
            assertEquals(List.of("b"), folder.list("segments"));
            assertEquals(8L * PAGE, folder.allocatedBytes("segments/b"));
            folder.unlink("segments/b");
            folder.unlink("segments/b");
            assertFalse(folder.exists("segments/b"));
            assertTrue(folder.exists("segments"));
            assertTrue(folder.freeBytes() > 0);
        }
    }

    @Test
    void filesThatCannotBeSayWhy() throws IOException {
        try (HostFolder folder = HostFolder.open(place.data())) {
            folder.create("there", PAGE).close();
            assertFails(ErrorCode.FOLDER_UNUSABLE, "EEXIST", () -> folder.create("there", PAGE));
            assertFails(ErrorCode.MISALIGNED, "whole pages", () -> folder.create("odd", PAGE + 1));
            assertFails(ErrorCode.FOLDER_UNUSABLE, "ENOENT", () -> folder.open("missing", true));
            assertFails(ErrorCode.FOLDER_UNUSABLE, "ENOENT", () -> folder.create("no/where", PAGE));
            assertFails(ErrorCode.FOREIGN_FILE, "regular file", () -> folder.open("", false));
            assertFails(ErrorCode.BAD_ARGUMENT, "leads out", () -> folder.open("../file", false));
            assertFails(ErrorCode.BAD_ARGUMENT, "leads out", () -> folder.exists("/etc"));
            Files.createSymbolicLink(place.data().resolve("link"), place.data().resolve("there"));
            assertFails(ErrorCode.FOREIGN_FILE, "ELOOP", () -> folder.open("link", false));
            long tooMuch = (folder.freeBytes() / PAGE + (1L << 26)) * PAGE;
            assertFails(ErrorCode.NO_SPACE, "bytes are free there", () -> folder.create("huge", tooMuch));
            assertFalse(folder.exists("huge"), "a file that got no room must not stay");
        }
    }

    @Test
    void filesReadBackWhatWasWritten() {
        try (HostFolder folder = HostFolder.open(place.data());
                MemoryRegion region = MemoryRegion.anonymous(8L * PAGE, PageKind.SMALL, MemoryPurpose.TOOL)) {
            StorageFile file = folder.create("f", 4L * PAGE);
            region.fill(0, PAGE, (byte) 1);
            region.fill(PAGE, PAGE, (byte) 2);
            file.write(2L * PAGE, region, 0, 2 * PAGE);
            file.flush();
            file.close();
            file.close();
            assertFails(ErrorCode.CLOSED, "closed", () -> file.read(0, region, 0, PAGE));
            try (StorageFile again = folder.open("f", false)) {
                assertEquals(4L * PAGE, again.bytes());
                again.read(0, region, 4L * PAGE, 4 * PAGE);
                assertEquals(0, region.getByte(4L * PAGE));
                assertEquals(1, region.getByte(6L * PAGE));
                assertEquals(2, region.getByte(8L * PAGE - 1));
                assertFails(ErrorCode.DRIVE, "ENODATA", () -> again.read(3L * PAGE, region, 0, 2 * PAGE));
                assertFails(ErrorCode.DRIVE, "/f", () -> again.write(0, region, 0, PAGE));
                assertFails(ErrorCode.MISALIGNED, "whole pages", () -> again.read(512, region, 0, PAGE));
                assertFails(ErrorCode.MISALIGNED, "whole pages", () -> again.read(0, region, 512, PAGE));
                assertFails(ErrorCode.MISALIGNED, "whole pages", () -> again.read(0, region, 0, 512));
                assertFails(ErrorCode.OUT_OF_BOUNDS, "closed", () -> {
                    MemoryRegion gone = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL);
                    gone.close();
                    again.read(0, gone, 0, PAGE);
                });
            }
            try (StorageFile writable = folder.open("f", true)) {
                assertFails(ErrorCode.DRIVE, "EFBIG", () -> writable.write(3L * PAGE, region, 0, 2 * PAGE));
            }
        }
    }

    @Test
    void aFileSystemWithoutDirectIoStillServes() throws IOException {
        Path memory = Path.of("/dev/shm");
        if (!Files.isWritable(memory)) {
            return;
        }
        Path path = memory.resolve("orbitkv-test-" + ProcessHandle.current().pid());
        try (HostFolder folder = HostFolder.open(path);
                StorageFile file = folder.create("f", PAGE);
                MemoryRegion region = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL)) {
            region.putLong(0, 77);
            file.write(0, region, 0, PAGE);
            region.putLong(0, 0);
            file.read(0, region, 0, PAGE);
            assertEquals(77, region.getLong(0));
            folder.unlink("f");
        } finally {
            Files.delete(path);
        }
    }

    @Test
    void closingTheFolderClosesEverything() throws IOException {
        int before = Machine.openFiles();
        HostFolder folder = HostFolder.open(place.data());
        folder.lock("LOCK", 0);
        StorageFile file = folder.create("f", PAGE);
        assertEquals(before + 2, Machine.openFiles());
        assertFails(ErrorCode.BUG, "once", () -> folder.lock("LOCK", 0));
        folder.close();
        folder.close();
        assertEquals(before, Machine.openFiles());
        assertFails(ErrorCode.CLOSED, "closed", () -> file.flush());
        assertFails(ErrorCode.CLOSED, "closed", () -> folder.open("f", false));
        assertFails(ErrorCode.CLOSED, "closed", () -> folder.newRing(4));
        assertEquals(before, Machine.openFiles());
        assertArrayEquals(new byte[PAGE], Files.readAllBytes(place.data().resolve("LOCK")));
    }

    @Test
    void theLockIsGivenBackWithItsRing() {
        for (int i = 0; i < 20; i++) {
            try (HostFolder folder = HostFolder.open(place.data())) {
                folder.lock("LOCK", 0);
                writePid(folder);
                try (IoRing ring = folder.newRing(4)) {
                    ring.poll((token, result) -> {}, 1);
                }
            }
        }
    }

    @Test
    void oneRingServesSeveralFoldersAndHoldsTheirLocks() throws IOException {
        Path other = Files.createDirectory(place.path().resolve("other"));
        Path third = Files.createDirectory(place.path().resolve("third"));
        for (String kind : List.of("auto", "threads")) {
            System.setProperty(Rings.PROPERTY, kind);
            try (HostFolder stranger = HostFolder.open(third);
                    DataFolders folders = DataFolders.of(HostFolder.open(place.data()), HostFolder.open(other));
                    MemoryRegion page = MemoryRegion.anonymous(2L * PAGE, PageKind.SMALL, MemoryPurpose.TOOL)) {
                List<StorageFile> files = new ArrayList<>();
                for (DataFolder folder : folders.list()) {
                    folder.lock("LOCK", 1_000_000_000);
                    folder.unlink("f");
                    files.add(folder.create("f", PAGE));
                }
                stranger.unlink("f");
                StorageFile strange = stranger.create("f", PAGE);
                try (IoRing ring = folders.newRing(4)) {
                    for (int i = 0; i < files.size(); i++) {
                        page.putLong((long) i * PAGE, 100 + i);
                        assertTrue(ring.write(files.get(i), 0, page, (long) i * PAGE, PAGE, i));
                    }
                    assertFails(ErrorCode.BAD_ARGUMENT, "ring", () -> ring.flush(strange, 7));
                    for (int done = 0; done < 2; ) {
                        done += ring.poll((token, result) -> assertEquals(PAGE, result), 2);
                        ring.await(1_000_000);
                    }
                }
                for (int i = 0; i < files.size(); i++) {
                    files.get(i).read(0, page, 0, PAGE);
                    assertEquals(100 + i, page.getLong(0));
                }
            } finally {
                System.clearProperty(Rings.PROPERTY);
            }
        }
    }

    @Test
    void aSecondOpenerInTheSameProcessIsRefusedAtOnce() {
        try (HostFolder folder = HostFolder.open(place.data());
                HostFolder second = HostFolder.open(place.data())) {
            folder.lock("LOCK", 0);
            writePid(folder);
            long start = System.nanoTime();
            for (int i = 0; i < 2; i++) {
                assertFails(
                        ErrorCode.FOLDER_IN_USE,
                        "process " + ProcessHandle.current().pid(),
                        () -> second.lock("LOCK", TimeUnit.SECONDS.toNanos(30)));
            }
            assertTrue(System.nanoTime() - start < TimeUnit.SECONDS.toNanos(20), "must not wait for a living holder");
        }
    }

    private static void writePid(HostFolder folder) {
        byte[] page = ByteBuffer.allocate(16)
                .order(ByteOrder.LITTLE_ENDIAN)
                .put("OKVLOCK1".getBytes(StandardCharsets.US_ASCII))
                .putLong(ProcessHandle.current().pid())
                .array();
        try (StorageFile file = folder.open("LOCK", true);
                MemoryRegion region = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL)) {
            region.copyFrom(0, page, 0, page.length);
            file.write(0, region, 0, PAGE);
        }
    }

    /** What the second JVM does: takes the lock, keeps writing through a ring, and never ends by itself. */
    static final class Holder {
        private Holder() {}

        public static void main(String[] args) {
            HostFolder folder = HostFolder.open(Path.of(args[0]));
            folder.lock("LOCK", 0);
            writePid(folder);
            StorageFile file = folder.create("data", 1024L * PAGE);
            MemoryRegion region = MemoryRegion.anonymous(1024L * PAGE, PageKind.SMALL, MemoryPurpose.TOOL);
            IoRing ring = folder.newRing(32);
            ring.register(region);
            System.out.println("locked");
            for (long i = 0; ; i++) {
                while (!ring.write(file, i % 32 * 32 * PAGE, region, i % 32 * 32 * PAGE, 32 * PAGE, i)) {
                    ring.await(1_000_000_000);
                    ring.poll((token, result) -> {}, 32);
                }
            }
        }
    }

    @Test
    void aLivingHolderKeepsOthersOutAndAKilledOneDoesNot() throws Exception {
        String root = System.getProperty("orbitkv.root");
        assertNotNull(root);
        String flags = Runtime.version().feature() >= 21 ? "25" : "17";
        Process holder = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "@" + root + "/bin/jvm." + flags,
                        "-cp",
                        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                        "-Xmx128m",
                        Holder.class.getName(),
                        place.data().toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (HostFolder folder = HostFolder.open(waitFor(holder))) {
            assertFails(
                    ErrorCode.FOLDER_IN_USE,
                    "process " + holder.pid(),
                    () -> folder.lock("LOCK", TimeUnit.SECONDS.toNanos(30)));
            holder.destroyForcibly();
            holder.waitFor();
            folder.lock("LOCK", TimeUnit.SECONDS.toNanos(30));
        } finally {
            holder.destroyForcibly().waitFor();
        }
    }

    private Path waitFor(Process holder) throws IOException {
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(holder.getInputStream(), StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals("locked")) {
                return place.data();
            }
        }
        throw new IllegalStateException("the holder ended without taking the lock");
    }

    @Test
    void theMachineTellsAboutItself() {
        assertTrue(Machine.kernel().startsWith("Linux"));
        assertTrue(Machine.memoryBytes() > 1L << 28);
        assertTrue(Machine.availableBytes() > 0 && Machine.availableBytes() <= Machine.memoryBytes());
        assertTrue(Machine.lockedBytesMax() > 0);
        assertTrue(Machine.openFilesMax() > 0);
        assertTrue(Machine.residentBytes() > 1 << 20 && Machine.residentBytes() <= Machine.residentBytesPeak());
        assertTrue(Machine.processorNanos() > 0);
        assertTrue(Machine.readBytes() >= 0 && Machine.writtenBytes() >= 0);
        assertTrue(Machine.processors() > 0);
        assertTrue(Machine.hugetlbFree() >= 0 && Machine.hugetlbBytes() > 0);
        assertTrue(List.of("always", "madvise", "never").contains(Machine.transparentHugePages()));
        assertEquals(Machine.ioUringProblem().isEmpty(), !Machine.bootId().isEmpty() && worksHere());
        Machine.FolderAbilities abilities = Machine.folderAbilities(place.path());
        assertEquals("", abilities.problem());
        assertTrue(abilities.freeBytes() > 0);
        assertEquals(0, place.path().toFile().list().length, "the probe left something");
        assertFalse(Machine.folderAbilities(Path.of("/nowhere")).problem().isEmpty());
    }

    private boolean worksHere() {
        try (HostFolder folder = HostFolder.open(place.data());
                IoRing ring = folder.newRing(1)) {
            return ring.kind() == IoRing.Kind.URING;
        } finally {
            assertTrue(place.data().toFile().delete());
        }
    }

    @Test
    void thePropertyChoosesTheRing() {
        try (HostFolder folder = HostFolder.open(place.data())) {
            System.setProperty(Rings.PROPERTY, "threads");
            try (IoRing ring = folder.newRing(1)) {
                assertEquals(IoRing.Kind.THREADS, ring.kind());
            }
            System.setProperty(Rings.PROPERTY, "magic");
            assertFails(ErrorCode.BAD_FLAG, "magic", () -> folder.newRing(1));
            System.clearProperty(Rings.PROPERTY);
            assertFails(ErrorCode.BAD_ARGUMENT, "depth", () -> folder.newRing(0));
            assertFails(ErrorCode.BAD_ARGUMENT, "depth", () -> folder.newRing(Rings.DEPTH_MAX + 1));
            folder.newRing(Rings.DEPTH_MAX).close();
        } finally {
            System.clearProperty(Rings.PROPERTY);
        }
    }
}
