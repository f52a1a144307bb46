package io.orbitkv.kit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: the simulated drive keeps what its contract promises, and drops, tears and reorders what it does not.
 * Method: small works on it, cut off by power loss, kill and crash points over many seeds; what must survive is compared
 * with what was written, and what may be lost must be lost, torn and reordered under some seed.
 */
class SimulatedFolderTest {
    private static final int PAGE = MemoryRegion.PAGE_BYTES;
    private static final int FILE_PAGES = 64;

    @TempDir
    private Path temp;

    private final MemoryRegion memory =
            MemoryRegion.anonymous(2L * FILE_PAGES * PAGE, PageKind.SMALL, MemoryPurpose.TOOL);

    @AfterEach
    void freeMemory() {
        memory.close();
    }

    private SimulatedFolder folderWithFile(long seed) {
        SimulatedFolder folder = new SimulatedFolder(seed, temp);
        folder.create("a", (long) FILE_PAGES * PAGE).close();
        folder.syncFolder("");
        return folder;
    }

    private void writePage(StorageFile file, int page, int value) {
        memory.fill(0, PAGE, (byte) value);
        file.write((long) page * PAGE, memory, 0, PAGE);
    }

    /** The bytes of a page by sector: which value each of its eight sectors holds; fails where one is mixed. */
    private int[] sectors(StorageFile file, int page) {
        file.read((long) page * PAGE, memory, 0, PAGE);
        int[] values = new int[PAGE / FileContent.SECTOR_BYTES];
        for (int i = 0; i < PAGE; i++) {
            int sector = i / FileContent.SECTOR_BYTES;
            values[sector] = i % FileContent.SECTOR_BYTES == 0 ? memory.getByte(i) : values[sector];
            assertEquals(values[sector], memory.getByte(i), "a sector is mixed at " + i);
        }
        return values;
    }

    private static boolean all(int[] sectors, int value) {
        for (int sector : sectors) {
            if (sector != value) {
                return false;
            }
        }
        return true;
    }

    @Test
    void foldersBesideEachOtherDieTogetherAndAreErasedAlone(@TempDir Path firstReal, @TempDir Path secondReal) {
        SimulatedFolder first = new SimulatedFolder(5, firstReal);
        SimulatedFolder second = first.beside(secondReal);
        for (SimulatedFolder folder : List.of(first, second)) {
            folder.lock("LOCK", 0);
            folder.makeFolder("d");
            folder.syncFolder("");
            folder.create("d/f", PAGE).close();
            folder.syncFolder("d");
            assertEquals(2L * PAGE, folder.allocatedBytes(""));
        }
        assertEquals(List.of("LOCK", "d"), first.list(""));
        first.kill();
        assertThrows(SimulatedCrash.class, () -> second.list(""));
        SimulatedFolder next = first.reopen();
        SimulatedFolder besideIt = next.beside(secondReal);
        besideIt.lock("LOCK", 0);
        besideIt.close();
        besideIt = next.beside(secondReal);
        next.erase();
        assertEquals(List.of(), next.list(""));
        assertEquals(List.of("f"), besideIt.list("d"));
        next.powerLoss();
        next = next.reopen();
        assertEquals(List.of(), next.list(""), "for good");
        assertEquals(List.of("LOCK", "d"), next.beside(secondReal).list(""));
    }

    @Test
    void flushedDataSurvivesPowerLossUnderThousandSeeds() {
        for (long seed : Seed.many(0, 1_000)) {
            SimulatedFolder folder = folderWithFile(seed);
            StorageFile file = folder.open("a", true);
            for (int page = 0; page < 8; page++) {
                writePage(file, page, 1);
                writePage(file, page, 2 + page);
            }
            file.flush();
            writePage(file, 20, 99);
            folder.powerLoss();
            StorageFile after = folder.reopen().open("a", false);
            for (int page = 0; page < 8; page++) {
                assertTrue(all(sectors(after, page), 2 + page), "seed " + seed + " page " + page);
            }
        }
    }

    @Test
    void whatWasNotFlushedIsLostAppliedTornAndReordered() {
        int lost = 0;
        int applied = 0;
        int torn = 0;
        int older = 0;
        int laterWithoutEarlier = 0;
        for (long seed = 0; seed < 500; seed++) {
            SimulatedFolder folder = folderWithFile(seed);
            StorageFile file = folder.open("a", true);
            writePage(file, 0, 1);
            file.flush();
            writePage(file, 0, 2);
            writePage(file, 0, 3);
            writePage(file, 1, 4);
            folder.powerLoss();
            StorageFile after = folder.reopen().open("a", false);
            int[] first = sectors(after, 0);
            boolean secondThere = all(sectors(after, 1), 4);
            lost += all(first, 1) ? 1 : 0;
            older += all(first, 2) ? 1 : 0;
            applied += all(first, 3) ? 1 : 0;
            torn += first[0] != first[1] ? 1 : 0;
            laterWithoutEarlier += all(first, 1) && secondThere ? 1 : 0;
        }
        assertTrue(
                lost > 20 && applied > 20 && torn > 20 && older > 10 && laterWithoutEarlier > 10,
                "lost " + lost + " applied " + applied + " torn " + torn + " older " + older + " reordered "
                        + laterWithoutEarlier);
    }

    @Test
    void killKeepsWhatWasCompletedAndTearsWhatWasInFlight() {
        boolean sawNothing = false;
        boolean sawAll = false;
        boolean sawTorn = false;
        for (long seed = 0; seed < 200; seed++) {
            SimulatedFolder folder = folderWithFile(seed);
            String boot = folder.bootId();
            folder.lock("LOCK", 0);
            StorageFile file = folder.open("a", true);
            writePage(file, 0, 1);
            IoRing ring = folder.newRing(4);
            memory.fill(PAGE, PAGE, (byte) 2);
            assertTrue(ring.write(file, PAGE, memory, PAGE, PAGE, 7));
            folder.kill();
            assertThrows(SimulatedCrash.class, () -> file.read(0, memory, 0, PAGE));
            assertThrows(SimulatedCrash.class, () -> ring.poll((token, result) -> {}, 1));
            ring.close();
            file.close();
            folder.close();
            SimulatedFolder next = folder.reopen();
            next.lock("LOCK", 0);
            assertEquals(boot, next.bootId());
            StorageFile after = next.open("a", false);
            assertTrue(all(sectors(after, 0), 1));
            int[] second = sectors(after, 1);
            sawNothing |= all(second, 0);
            sawAll |= all(second, 2);
            sawTorn |= !all(second, 0) && !all(second, 2);
        }
        assertTrue(sawNothing && sawAll && sawTorn);
    }

    @Test
    void flushCoversOnlyWhatWasCompletedBeforeItsSubmission() {
        boolean sawLost = false;
        for (long seed = 0; seed < 200; seed++) {
            SimulatedFolder folder = folderWithFile(seed);
            StorageFile file = folder.open("a", true);
            writePage(file, 0, 1);
            IoRing ring = folder.newRing(4);
            assertTrue(ring.flush(file, 1));
            writePage(file, 1, 2);
            while (ring.inFlight() > 0) {
                ring.await(1_000_000);
                ring.poll((token, result) -> assertEquals(0, result), 4);
            }
            folder.powerLoss();
            assertNotEquals(folder.bootId(), new SimulatedFolder(seed, temp).bootId());
            StorageFile after = folder.reopen().open("a", false);
            assertTrue(all(sectors(after, 0), 1));
            sawLost |= all(sectors(after, 1), 0);
        }
        assertTrue(sawLost);
    }

    @Test
    void aPrefixOfNameChangesSurvives() {
        boolean[] seen = new boolean[4];
        for (long seed = 0; seed < 100; seed++) {
            SimulatedFolder folder = new SimulatedFolder(seed, temp);
            folder.create("a", PAGE).close();
            folder.syncFolder("");
            folder.create("b", PAGE).close();
            folder.rename("b", "c");
            folder.unlink("a");
            folder.powerLoss();
            List<String> names = folder.reopen().list("");
            int state = List.of(List.of("a"), List.of("a", "b"), List.of("a", "c"), List.of("c"))
                    .indexOf(names);
            assertTrue(state >= 0, () -> "not a prefix: " + names);
            seen[state] = true;
        }
        assertArrayEquals(new boolean[] {true, true, true, true}, seen);
    }

    @Test
    void aSyncedFolderKeepsItsNamesWhateverOtherFoldersLose() {
        for (long seed = 0; seed < 50; seed++) {
            SimulatedFolder folder = new SimulatedFolder(seed, temp);
            folder.makeFolder("from");
            folder.makeFolder("to");
            folder.syncFolder("");
            folder.create("from/a", PAGE).close();
            folder.rename("from/a", "to/b");
            folder.syncFolder("to");
            folder.makeFolder("lost");
            folder.create("lost/c", PAGE).close();
            folder.syncFolder("lost");
            folder.powerLoss();
            SimulatedFolder after = folder.reopen();
            assertTrue(after.exists("to/b"), "seed " + seed);
            assertTrue(!after.list("lost").contains("c") || after.list("").contains("lost"), "seed " + seed);
        }
    }

    @Test
    void everyCrashPointThrowsAndLeavesAFolderThatOpens() {
        SimulatedFolder measured = new SimulatedFolder(1, temp);
        work(measured, new Gen(1));
        long operations = measured.operations();
        assertTrue(operations > 100, "operations " + operations);
        for (long crash = 1; crash <= operations; crash++) {
            SimulatedFolder folder = new SimulatedFolder(1, temp);
            folder.crashAfter(crash);
            assertThrows(SimulatedCrash.class, () -> work(folder, new Gen(1)));
            assertTrue(folder.isCrashed());
            assertEquals(crash, folder.operations());
            assertThrows(SimulatedCrash.class, () -> folder.list(""));
            if (crash % 2 == 0) {
                folder.kill();
            } else {
                folder.powerLoss();
            }
            SimulatedFolder next = folder.reopen();
            next.list("");
            assertFalse(next.isCrashed());
        }
    }

    @Test
    void sameSeedGivesSameHistory() {
        long seed = Seed.of(getClass());
        SimulatedFolder first = crashedWork(seed);
        SimulatedFolder second = crashedWork(seed);
        assertArrayEquals(first.history().bytes(), second.history().bytes());
        assertEquals(first.history().digest(), second.history().digest());
        assertNotEquals(
                first.history().digest(), crashedWork(seed + 1).history().digest());
        assertEquals(first.history().rows() * History.ROW_BYTES, first.history().bytes().length);
    }

    private SimulatedFolder crashedWork(long seed) {
        SimulatedFolder folder = new SimulatedFolder(seed, temp);
        folder.crashAfter(80);
        assertThrows(SimulatedCrash.class, () -> work(folder, new Gen(seed)));
        folder.powerLoss();
        SimulatedFolder next = folder.reopen();
        if (next.exists("seg/a")) {
            StorageFile file = next.open("seg/a", false);
            file.read(0, memory, 0, FILE_PAGES * PAGE);
        }
        return next;
    }

    /** Some of everything, in a way that depends on the seed. */
    private void work(SimulatedFolder folder, Gen gen) {
        memory.fill(0, memory.bytes(), (byte) 0); // what an earlier run left would show in the history
        folder.lock("LOCK", 0);
        folder.makeFolder("seg");
        folder.syncFolder("");
        try (StorageFile file = folder.create("seg/a", (long) FILE_PAGES * PAGE);
                IoRing ring = folder.newRing(8)) {
            folder.syncFolder("seg");
            for (int i = 0; i < 100; i++) {
                int pages = gen.size(1, 16);
                long offset = (long) gen.between(0, FILE_PAGES - pages) * PAGE;
                long at = (long) gen.between(0, FILE_PAGES - 1) * PAGE;
                gen.fill(memory, at, PAGE);
                boolean submitted = switch (gen.below(4)) {
                    case 0 -> ring.read(file, offset, memory, at, pages * PAGE, i);
                    case 1 -> ring.flush(file, i);
                    default -> ring.write(file, offset, memory, at, pages * PAGE, i);
                };
                if (!submitted || gen.coin()) {
                    ring.await(gen.between(0, 300_000));
                    ring.poll((token, result) -> assertTrue(result >= 0), 3);
                }
            }
        }
        folder.close();
    }

    @Test
    void lockIsHeldUntilItsProcessEnds() {
        SimulatedFolder folder = new SimulatedFolder(3, temp);
        folder.lock("LOCK", 0);
        SimulatedFolder other = folder.reopen();
        OrbitKvException held = assertThrows(OrbitKvException.class, () -> other.lock("LOCK", 0));
        assertEquals(ErrorCode.FOLDER_IN_USE, held.code());
        assertTrue(held.getMessage().contains("process 1000"), held.getMessage());
        folder.close();
        other.lock("LOCK", 0);
    }

    @Test
    void spaceAddsUp() {
        SimulatedFolder folder = new SimulatedFolder(4, temp);
        folder.capacityBytes(10L * PAGE);
        folder.makeFolder("d");
        StorageFile file = folder.create("d/x", 4L * PAGE);
        assertEquals(4L * PAGE, folder.allocatedBytes(""));
        assertEquals(4L * PAGE, folder.allocatedBytes("d"));
        assertEquals(6L * PAGE, folder.freeBytes());
        OrbitKvException full = assertThrows(OrbitKvException.class, () -> folder.create("y", 7L * PAGE));
        assertEquals(ErrorCode.NO_SPACE, full.code());
        folder.unlink("d/x");
        assertEquals(6L * PAGE, folder.freeBytes(), "an open file keeps its space");
        file.close();
        assertEquals(10L * PAGE, folder.freeBytes());
    }

    @Test
    void faultsHappenWhenAskedFor() {
        SimulatedFolder folder = folderWithFile(5);
        StorageFile file = folder.open("a", true);
        folder.faults().writeError(1);
        assertEquals(
                ErrorCode.DRIVE,
                assertThrows(OrbitKvException.class, () -> writePage(file, 0, 1))
                        .code());
        folder.faults().writeError(0).readError(1);
        assertThrows(OrbitKvException.class, () -> file.read(0, memory, 0, PAGE));
        folder.faults().readError(0).bitRot(1);
        writePage(file, 1, 0);
        file.read(PAGE, memory, 0, PAGE);
        int bits = 0;
        for (int i = 0; i < PAGE; i++) {
            bits += Integer.bitCount(memory.getByte(i) & 0xff);
        }
        assertEquals(1, bits);
        folder.faults().bitRot(0).noSpace(1);
        assertThrows(OrbitKvException.class, () -> folder.create("b", PAGE));
    }

    @Test
    void afterAFailedFlushNoLaterOneMakesAnythingDurable() {
        boolean sawLost = false;
        for (long seed = 0; seed < 50; seed++) {
            SimulatedFolder folder = folderWithFile(seed);
            StorageFile file = folder.open("a", true);
            writePage(file, 0, 1);
            folder.faults().flushFailure(1);
            assertThrows(OrbitKvException.class, file::flush);
            folder.faults().flushFailure(0);
            file.flush();
            folder.powerLoss();
            sawLost |= all(sectors(folder.reopen().open("a", false), 0), 0);
        }
        assertTrue(sawLost);
    }

    @Test
    void realFilesOfTheCatalogAreSeen() throws Exception {
        SimulatedFolder folder = new SimulatedFolder(6, temp);
        folder.makeFolder("catalog");
        java.nio.file.Files.write(temp.resolve("catalog/data.mdb"), new byte[PAGE]);
        assertEquals(List.of("data.mdb"), folder.list("catalog"));
        assertEquals(List.of("catalog"), folder.list(""));
        assertTrue(folder.exists("catalog/data.mdb"));
        assertEquals(PAGE, folder.allocatedBytes("catalog"));
        folder.unlink("catalog/data.mdb");
        assertFalse(folder.exists("catalog/data.mdb"));
    }

    @Test
    void closingAFileWithTransfersInFlightIsAnError() {
        SimulatedFolder folder = folderWithFile(7);
        StorageFile file = folder.open("a", true);
        IoRing ring = folder.newRing(2);
        ring.read(file, 0, memory, 0, PAGE, 1);
        assertEquals(
                ErrorCode.BUG, assertThrows(OrbitKvException.class, file::close).code());
        ring.close();
        file.close();
    }
}
