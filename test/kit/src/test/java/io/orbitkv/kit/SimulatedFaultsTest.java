package io.orbitkv.kit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: a simulated drive lies in each way that it is asked to, says where, counts it, and does nothing of the kind otherwise.
 *
 * <p>Method: a file of pages that each hold their number, and one fault with certainty at a time.
 */
class SimulatedFaultsTest {
    private static final int PAGE = MemoryRegion.PAGE_BYTES;
    private static final int PAGES = 8;

    @TempDir
    Path temp;

    private final MemoryRegion memory = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL);

    @AfterEach
    void free() {
        memory.close();
    }

    @Test
    void aMisdirectedReadDeliversAnotherPage() {
        SimulatedFolder folder = filled(3);
        StorageFile file = folder.open("a", false);
        folder.faults().set(Fault.MISDIRECTED_READ, 1);
        for (int page = 0; page < PAGES; page++) {
            int delivered = read(file, page);
            assertTrue(delivered >= 1 && delivered <= PAGES, () -> "no page of the file: " + delivered);
        }
        assertEquals(PAGES, folder.faults().count(Fault.MISDIRECTED_READ));
        assertEquals(PAGES, folder.harms("a").size());
        folder.faults().pause(true);
        assertEquals(1, read(file, 0), "where it lies it is whole");
    }

    @Test
    void aMisdirectedWriteLandsOnAnotherPage() {
        SimulatedFolder folder = filled(4);
        StorageFile file = folder.open("a", true);
        folder.faults().set(Fault.MISDIRECTED_WRITE, 1);
        write(file, 2, 100);
        folder.faults().set(Fault.MISDIRECTED_WRITE, 0);
        int[] now = new int[PAGES];
        int found = -1;
        for (int page = 0; page < PAGES; page++) {
            now[page] = read(file, page);
            found = now[page] == 100 ? page : found;
        }
        int victim = found;
        assertNotEquals(-1, victim, "the write is somewhere");
        assertTrue(
                folder.harms("a").stream().anyMatch(harm -> harm.page() == 2 && harm.was() == 100),
                () -> "the page that was meant: " + folder.harms("a"));
        assertTrue(
                folder.harms("a").stream().anyMatch(harm -> harm.page() == victim && harm.first() == 100),
                () -> "the page that was hit: " + folder.harms("a"));
        assertEquals(3, now[2]);
        write(file, 2, 7);
        assertTrue(folder.harms("a").stream().noneMatch(harm -> harm.page() == 2), "a good write heals");
    }

    @Test
    void aLostWriteIsAcknowledgedAndNeverHappens() {
        SimulatedFolder folder = filled(5);
        StorageFile file = folder.open("a", true);
        folder.faults().set(Fault.LOST_WRITE, 1);
        write(file, 1, 50);
        assertEquals(2, read(file, 1));
        assertEquals(1, folder.harms("a").size());
        assertEquals(50, folder.harms("a").get(0).was());
    }

    @Test
    void rotAtRestFlipsOneBitForGood() {
        SimulatedFolder folder = filled(6);
        StorageFile file = folder.open("a", true);
        folder.faults().set(Fault.ROT_AT_REST, 1);
        read(file, 0);
        folder.faults().set(Fault.ROT_AT_REST, 0);
        assertEquals(1, folder.faults().count(Fault.ROT_AT_REST));
        int rotten = folder.harms("a").get(0).page();
        assertEquals(1, bitsChanged(file, rotten), "bits of the page that it names");
        folder.powerLoss();
        StorageFile after = folder.reopen().open("a", false);
        assertEquals(1, bitsChanged(after, rotten), "it lasts");
    }

    @Test
    void aFlushThatLiesHarmsAtTheNextPowerLossOnly() {
        int lost = 0;
        for (long seed = 0; seed < 40; seed++) {
            SimulatedFolder folder = filled(seed);
            StorageFile file = folder.open("a", true);
            write(file, 0, 99);
            folder.faults().set(Fault.LYING_FLUSH, 1);
            file.flush();
            assertEquals(99, read(file, 0));
            assertTrue(folder.harms("a").isEmpty(), "nothing is harmed before the power goes");
            folder.powerLoss();
            SimulatedFolder after = folder.reopen();
            boolean kept = read(after.open("a", false), 0) == 99 && bitsDiffering(99) == 0;
            assertEquals(kept, after.harms("a").isEmpty());
            lost += kept ? 0 : 1;
        }
        assertTrue(lost > 0, "no lying flush has cost anything");
    }

    @Test
    void aHangTakesLongOnTheSimulatedClock() {
        SimulatedFolder folder = filled(8);
        StorageFile file = folder.open("a", false);
        folder.faults().set(Fault.HANG, 1);
        IoRing ring = folder.newRing(2);
        ring.read(file, 0, memory, 0, PAGE, 1);
        long start = folder.clock().nanoTime();
        for (int ended = 0; ended == 0; ended = ring.poll((token, result) -> assertEquals(PAGE, result), 1)) {
            ring.await(Long.MAX_VALUE);
        }
        assertTrue(folder.clock().nanoTime() - start >= 50_000_000, "a hang of less than 50 ms");
        ring.close();
    }

    /** Leaving one kind out changes nothing of when another strikes: a failing case can be made smaller. */
    @Test
    void kindsStrikeIndependently() {
        Faults alone = new Faults(9);
        Faults beside = new Faults(9);
        alone.set(Fault.READ_ERROR, 0.3);
        beside.set(Fault.READ_ERROR, 0.3).set(Fault.LOST_WRITE, 0.5);
        for (int i = 0; i < 1000; i++) {
            beside.strikes(Fault.LOST_WRITE);
            assertEquals(alone.strikes(Fault.READ_ERROR), beside.strikes(Fault.READ_ERROR));
        }
        assertTrue(beside.count(Fault.READ_ERROR) > 100);
    }

    @Test
    void windowsAreCountedAndForgottenWithTheirProcess() {
        SimulatedFolder folder = filled(10);
        folder.probe().enter(CrashWindow.REAPPEND);
        long before = folder.operations();
        folder.probe().enter(CrashWindow.SEAL);
        assertEquals(before + 1, folder.operations(), "an edge is an operation where the window has none of its own");
        assertEquals(2, folder.crashedIn().size());
        folder.kill();
        SimulatedFolder after = folder.reopen();
        assertTrue(after.crashedIn().isEmpty());
        Map<CrashWindow, Long> entered = after.windowsEntered();
        assertEquals(1, entered.get(CrashWindow.REAPPEND));
        assertEquals(1, entered.get(CrashWindow.SEAL));
        assertEquals(0, entered.get(CrashWindow.CLEAR));
    }

    private SimulatedFolder filled(long seed) {
        SimulatedFolder folder = new SimulatedFolder(seed, temp);
        try (StorageFile file = folder.create("a", (long) PAGES * PAGE)) {
            for (int page = 0; page < PAGES; page++) {
                write(file, page, page + 1);
            }
            file.flush();
        }
        folder.syncFolder("");
        return folder;
    }

    private void write(StorageFile file, int page, int value) {
        for (int i = 0; i < PAGE; i += Long.BYTES) {
            memory.putLong(i, value);
        }
        file.write((long) page * PAGE, memory, 0, PAGE);
    }

    private int read(StorageFile file, int page) {
        file.read((long) page * PAGE, memory, 0, PAGE);
        return (int) memory.getLong(0);
    }

    private int bitsChanged(StorageFile file, int page) {
        read(file, page);
        return bitsDiffering(page + 1);
    }

    /** Bits of what was read last that are not those of a page full of a number. */
    private int bitsDiffering(int value) {
        int bits = 0;
        for (int i = 0; i < PAGE; i += Long.BYTES) {
            bits += Long.bitCount(memory.getLong(i) ^ value);
        }
        return bits;
    }
}
