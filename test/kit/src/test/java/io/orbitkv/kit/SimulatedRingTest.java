package io.orbitkv.kit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: the simulated ring keeps the contract of rings, and uses the freedom that the contract leaves.
 * Method: the shared suite; then transfers in flight whose order and bytes must vary.
 */
class SimulatedRingTest extends IoRingContract {
    private static final int PAGE = MemoryRegion.PAGE_BYTES;

    @TempDir
    private Path temp;

    @Override
    protected DataFolder openFolder() {
        return new SimulatedFolder(Seed.of(getClass()), temp);
    }

    @Override
    protected IoRing.Kind kind() {
        return IoRing.Kind.SIMULATED;
    }

    @Override
    protected boolean takesRealTime() {
        return false;
    }

    @Override
    protected boolean allocatesNothing() {
        return false;
    }

    @Test
    void completionsOvertakeEachOther() {
        SimulatedFolder folder = new SimulatedFolder(1, temp);
        try (MemoryRegion memory = MemoryRegion.anonymous(32L * PAGE, PageKind.SMALL, MemoryPurpose.TOOL);
                StorageFile file = folder.create("a", 32L * PAGE);
                IoRing ring = folder.newRing(32)) {
            for (int i = 0; i < 32; i++) {
                assertTrue(ring.write(file, (long) i * PAGE, memory, (long) i * PAGE, PAGE, i));
            }
            List<Long> order = new ArrayList<>();
            while (ring.inFlight() > 0) {
                ring.poll((token, result) -> order.add(token), 1); // polling alone makes progress too
            }
            assertEquals(32, order.size());
            int overtakings = 0;
            for (int i = 1; i < 32; i++) {
                overtakings += order.get(i) < order.get(i - 1) ? 1 : 0;
            }
            assertTrue(overtakings > 5, () -> "in order: " + order);
        }
    }

    @Test
    void readersSeeWritesInFlightBySector() {
        boolean sawMixed = false;
        for (long seed = 0; seed < 50; seed++) {
            SimulatedFolder folder = new SimulatedFolder(seed, temp);
            try (MemoryRegion memory = MemoryRegion.anonymous(2L * PAGE, PageKind.SMALL, MemoryPurpose.TOOL);
                    StorageFile file = folder.create("a", PAGE);
                    IoRing ring = folder.newRing(2)) {
                memory.fill(0, PAGE, (byte) 1);
                assertTrue(ring.write(file, 0, memory, 0, PAGE, 1));
                file.read(0, memory, PAGE, PAGE);
                sawMixed |= memory.getByte(PAGE) != memory.getByte(PAGE + 512);
                ring.close();
                file.read(0, memory, PAGE, PAGE);
                assertTrue(memory.sameBytes(0, memory, PAGE, PAGE));
            }
        }
        assertTrue(sawMixed);
    }

    @Test
    void memoryChangedInFlightTearsTheWrite() {
        boolean sawMixed = false;
        for (long seed = 0; seed < 50; seed++) {
            SimulatedFolder folder = new SimulatedFolder(seed, temp);
            try (MemoryRegion memory = MemoryRegion.anonymous(PAGE, PageKind.SMALL, MemoryPurpose.TOOL);
                    StorageFile file = folder.create("a", PAGE);
                    IoRing ring = folder.newRing(2)) {
                memory.fill(0, PAGE, (byte) 1);
                assertTrue(ring.write(file, 0, memory, 0, PAGE, 1));
                memory.fill(0, PAGE, (byte) 2);
                ring.close();
                file.read(0, memory, 0, PAGE);
                sawMixed |= memory.getByte(0) != memory.getByte(512);
            }
        }
        assertTrue(sawMixed);
    }
}
