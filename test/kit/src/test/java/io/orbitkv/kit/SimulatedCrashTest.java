package io.orbitkv.kit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: whenever the machine dies, each page of the drive holds sectors that were written there, and whole what a flush
 * covered last or later; and two hundred such deaths take seconds.
 * Method: each page that is written carries its place and a version in every sector; a model notes per page the version
 * that a flush has covered. Crash at a seeded operation, power loss or kill, read everything back.
 */
class SimulatedCrashTest {
    private static final int PAGE = MemoryRegion.PAGE_BYTES;
    private static final int SECTOR = FileContent.SECTOR_BYTES;
    private static final int FILE_PAGES = 1_024;
    private static final int OPERATIONS = 2_000;
    private static final int DEPTH = 16;
    private static final int WRITE_PAGES_MAX = 16;

    @TempDir
    private Path temp;

    private final MemoryRegion memory =
            MemoryRegion.anonymous((long) (DEPTH + 1) * WRITE_PAGES_MAX * PAGE, PageKind.SMALL, MemoryPurpose.TOOL);

    @AfterEach
    void freeMemory() {
        memory.close();
    }

    @Test
    @Timeout(60)
    void whatAFlushCoveredSurvivesAnyDeath() {
        int torn = 0;
        for (long seed : Seed.many(1_000, 200)) {
            torn += new Life(seed).liveAndDie();
        }
        assertTrue(torn > 0 || Seed.isGiven(), "no page was ever torn");
    }

    @Test
    void theWindowOfACrashIsKnown() {
        SimulatedFolder folder = new SimulatedFolder(1, temp);
        folder.crashAfter(3);
        boolean died = false;
        try {
            folder.probe().enter(CrashWindow.SNAPSHOT);
            folder.makeFolder("a");
            folder.probe().leave(CrashWindow.SNAPSHOT);
        } catch (SimulatedCrash expected) {
            died = true;
        }
        assertTrue(died);
        assertEquals(Set.of(CrashWindow.SNAPSHOT), folder.crashedIn());
        folder.probe().leave(CrashWindow.SNAPSHOT); // unwinding passes
        folder.kill();
        assertFalse(folder.reopen().isCrashed());
    }

    /** One life of a machine, up to its death. */
    private final class Life {
        private final long seed;
        private final Gen gen;
        private final SimulatedFolder folder;

        /** By page: the last version that was submitted, completed, and covered by a flush. */
        private final int[] submitted = new int[FILE_PAGES];

        private final int[] completed = new int[FILE_PAGES];
        private final int[] durable = new int[FILE_PAGES];
        private final boolean[] busy = new boolean[FILE_PAGES];

        /** By slot of the ring: where its write goes, or what was completed when its flush was submitted. */
        private final int[] firstPage = new int[DEPTH];

        private final int[] pages = new int[DEPTH];
        private final int[][] covered = new int[DEPTH][];
        private final boolean[] slotBusy = new boolean[DEPTH];

        Life(long seed) {
            this.seed = seed;
            this.gen = new Gen(seed);
            this.folder = new SimulatedFolder(seed, temp);
        }

        int liveAndDie() {
            folder.lock("LOCK", 0);
            folder.create("a", (long) FILE_PAGES * PAGE).close();
            folder.syncFolder("");
            folder.crashAfter(gen.between(1, 2 * OPERATIONS));
            boolean powerLoss = gen.coin();
            try (StorageFile file = folder.open("a", true);
                    IoRing ring = folder.newRing(DEPTH)) {
                for (int i = 0; i < OPERATIONS; i++) {
                    step(file, ring);
                }
            } catch (SimulatedCrash expected) {
                assertTrue(folder.isCrashed());
            }
            if (powerLoss) {
                folder.powerLoss();
            } else {
                folder.kill();
            }
            SimulatedFolder next = folder.reopen();
            next.lock("LOCK", 0);
            return readBack(next.open("a", false), powerLoss ? durable : completed);
        }

        private void step(StorageFile file, IoRing ring) {
            int slot = freeSlot();
            if (slot < 0 || gen.below(3) == 0) {
                ring.await(gen.between(0, 500_000));
                ring.poll(this::completed, gen.between(1, DEPTH));
                return;
            }
            if (gen.below(12) == 0) {
                covered[slot] = completed.clone();
                slotBusy[slot] = true;
                assertTrue(ring.flush(file, slot));
                return;
            }
            int count = gen.size(1, WRITE_PAGES_MAX);
            int first = gen.between(0, FILE_PAGES - count);
            for (int page = first; page < first + count; page++) {
                if (busy[page]) { // overlapping writes in flight have no order, which this model could not follow
                    return;
                }
            }
            long at = (long) slot * WRITE_PAGES_MAX * PAGE;
            for (int i = 0; i < count; i++) {
                stamp(at + (long) i * PAGE, first + i, ++submitted[first + i]);
                busy[first + i] = true;
            }
            firstPage[slot] = first;
            pages[slot] = count;
            slotBusy[slot] = true;
            assertTrue(ring.write(file, (long) first * PAGE, memory, at, count * PAGE, slot));
        }

        private int freeSlot() {
            for (int slot = 0; slot < DEPTH; slot++) {
                if (!slotBusy[slot]) {
                    return slot;
                }
            }
            return -1;
        }

        private void completed(long token, int result) {
            int slot = (int) token;
            slotBusy[slot] = false;
            if (covered[slot] != null) {
                assertEquals(0, result);
                for (int page = 0; page < FILE_PAGES; page++) {
                    durable[page] = Math.max(durable[page], covered[slot][page]);
                }
                covered[slot] = null;
                return;
            }
            assertEquals(pages[slot] * PAGE, result);
            for (int page = firstPage[slot]; page < firstPage[slot] + pages[slot]; page++) {
                completed[page] = submitted[page];
                busy[page] = false;
            }
        }

        private void stamp(long at, int page, int version) {
            for (int sector = 0; sector < PAGE; sector += SECTOR) {
                memory.putInt(at + sector, page);
                memory.putInt(at + sector + 4, version);
                memory.putInt(at + sector + SECTOR - 4, version);
            }
        }

        private int readBack(StorageFile file, int[] least) {
            int torn = 0;
            for (int page = 0; page < FILE_PAGES; page++) {
                file.read((long) page * PAGE, memory, 0, PAGE);
                int first = memory.getInt(4);
                boolean mixed = false;
                for (int sector = 0; sector < PAGE; sector += SECTOR) {
                    int version = memory.getInt(sector + 4);
                    boolean good = version == memory.getInt(sector + SECTOR - 4)
                            && (version == 0 || memory.getInt(sector) == page)
                            && version >= least[page]
                            && version <= submitted[page];
                    if (!good) { // the message costs more than the check
                        fail("seed " + seed + " page " + page + " sector " + sector + ": version " + version
                                + " of page "
                                + memory.getInt(sector) + ", allowed " + least[page] + " to " + submitted[page] + "; "
                                + folder.history());
                    }
                    mixed |= version != first;
                }
                torn += mixed ? 1 : 0;
            }
            return torn;
        }
    }
}
