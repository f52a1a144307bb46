package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: a manager uses what there is memory for, beside a former pool what both together may have, and says which of the two it
 * is. Method: a pool that notes what it is let use, and a /proc written here; only the look at real memory is real.
 */
class PoolGrowthTest {
    private static final long GIB = 1L << 30;
    private static final String NAME = "orbitkv-pool-00c0ffee00c0ffee";

    @TempDir
    Path processes;

    /** A pool in whole MiB. */
    private static final class NotedPool implements GrowingPool {
        private final long bytes;
        private final List<Long> pieces = new ArrayList<>();
        private long usable;
        private long taken;

        NotedPool(long bytes) {
            this.bytes = bytes;
            usable = PoolGrowth.bytesMin(bytes);
        }

        @Override
        public long bytes() {
            return bytes;
        }

        @Override
        public long usableBytes() {
            return usable;
        }

        @Override
        public long takenBytes() {
            return taken;
        }

        @Override
        public void use(long wanted) {
            long whole = Math.min(wanted, bytes) >> 20 << 20;
            if (whole > usable) {
                pieces.add(whole - usable);
                usable = whole;
            }
        }
    }

    private FormerPools former() {
        return new FormerPools(processes, NAME, 7);
    }

    private void process(long pid, String... maps) throws IOException {
        Path process = Files.createDirectories(processes.resolve(Long.toString(pid)));
        Files.write(process.resolve("maps"), List.of(maps));
    }

    private static String mapping(String name, long inode, long mib) {
        return String.format(
                "7f0000000000-%x r--s 00000000 00:01 %d                      /memfd:%s (deleted)",
                0x7f0000000000L + (mib << 20), inode, name);
    }

    @Test
    void withMemoryForAllItGrowsInPieces() {
        NotedPool pool = new NotedPool(16 * GIB);
        PoolGrowth growth = new PoolGrowth(pool, former(), () -> 100 * GIB);
        assertEquals(PoolCondition.GROWING, growth.standing().condition());
        assertTrue(growth.look());
        assertEquals(new PoolGrowth.Standing(PoolCondition.WHOLE, 0, 0), growth.standing());
        assertEquals(15, pool.pieces.size());
        assertTrue(pool.pieces.stream().allMatch(piece -> piece == PoolGrowth.PIECE_BYTES), pool.pieces::toString);
    }

    /** What the pool has taken by itself must not keep it from what is left. */
    @Test
    void itGrowsIntoMemoryThatThereIsOnly() {
        NotedPool pool = new NotedPool(16 * GIB);
        long[] headroom = {3 * GIB};
        PoolGrowth growth = new PoolGrowth(pool, former(), () -> headroom[0]);
        assertFalse(growth.look());
        assertEquals(3 * GIB, pool.usable);
        assertEquals(PoolCondition.MEMORY, growth.standing().condition());
        pool.taken = 2 * GIB;
        headroom[0] = 1 * GIB;
        assertFalse(growth.look());
        assertEquals(3 * GIB, pool.usable, "it has filled up, nothing else has changed");
        headroom[0] = -GIB;
        assertFalse(growth.look());
        assertEquals(3 * GIB, pool.usable, "never less");
        headroom[0] = 5 * GIB;
        assertFalse(growth.look());
        assertEquals(7 * GIB, pool.usable);
        headroom[0] = 1L << 60;
        assertTrue(growth.look());
    }

    @Test
    void aFormerPoolAndThisOneStayWithinOneTogether() throws IOException {
        process(
                1,
                "no such line",
                mapping("orbitkv-generations", 40, 1),
                mapping("orbitkv-pool-00c0ffee00c0ffe", 41, 900));
        process(22, mapping(NAME, 50, 600), mapping(NAME, 7, 1024), mapping(NAME + "0", 51, 900));
        process(23, mapping(NAME, 50, 600), mapping(NAME, 60, 100));
        NotedPool pool = new NotedPool(GIB);
        PoolGrowth growth = new PoolGrowth(pool, former(), () -> 100 * GIB);
        assertFalse(growth.look());
        assertEquals(PoolCondition.FORMER_POOL, growth.standing().condition());
        assertEquals(700L << 20, growth.standing().formerBytes(), "each once, its own not, nor others'");
        assertEquals(324L << 20, pool.usable);
        long first = growth.standing().formerPid();
        assertTrue(first == 22 || first == 23, "pid " + first);

        process(first, "it lets go"); // the other one still holds it
        assertFalse(growth.look());
        assertEquals(45 - first, growth.standing().formerPid());
        assertEquals(first == 22 ? 700L << 20 : 600L << 20, growth.standing().formerBytes());
        Files.delete(processes.resolve((45 - first) + "/maps"));
        assertTrue(growth.look());
        assertEquals(new PoolGrowth.Standing(PoolCondition.WHOLE, 0, 0), growth.standing());
    }

    @Test
    void aFullFormerPoolLeavesThePartThatAManagerNeeds() throws IOException {
        process(22, mapping(NAME, 50, 1024));
        NotedPool pool = new NotedPool(GIB);
        PoolGrowth growth = new PoolGrowth(pool, former(), () -> 100 * GIB);
        assertFalse(growth.look());
        assertEquals(new PoolGrowth.Standing(PoolCondition.FORMER_POOL, GIB, 22), growth.standing());
        assertEquals(GIB / 16, pool.usable);
        assertEquals(List.of(), pool.pieces);
    }

    @Test
    void whateverStandsInProcItNeverGoesBeyondItsBounds() throws IOException {
        Gen gen = new Gen(Seed.of(PoolGrowthTest.class));
        for (int round = 0; round < 200; round++) {
            int holders = gen.below(4);
            long formerBytes = 0;
            for (int pid = 1; pid <= 4; pid++) {
                long mib = gen.below(2_000);
                process(pid, pid <= holders ? mapping(NAME, 100 + pid, mib) : "");
                formerBytes += pid <= holders ? mib << 20 : 0;
            }
            NotedPool pool = new NotedPool((1 + gen.below(4_000)) * (16L << 20));
            long headroom = (gen.below(8_000) - 1_000L) << 20;
            boolean whole = new PoolGrowth(pool, former(), () -> headroom).look();
            assertEquals(whole, pool.usable == pool.bytes);
            long most = Math.min(pool.bytes - formerBytes, headroom);
            assertEquals(Math.max(pool.bytes / 16, Math.min(pool.bytes, most)), pool.usable, "round " + round);
        }
    }

    /** This process holds it, and the kernel says what was touched. */
    @Test
    void aFormerPoolCountsWithWhatWasTouchedOfIt() {
        try (MemoryRegion pool = MemoryRegion.sealed(NAME, 8 << 20, PageKind.SMALL, MemoryPurpose.TOOL)) {
            pool.fill(1 << 20, 3 << 20, (byte) 1);
            Path descriptor = Path.of("/proc/self/fd/" + pool.fd());
            FormerPools found = new FormerPools(Path.of("/proc"), NAME, -1);
            found.look();
            assertEquals(3 << 20, found.bytes());
            assertEquals(ProcessHandle.current().pid(), found.pid());
            pool.fill(0, 1 << 20, (byte) 1);
            found.look();
            assertEquals(4 << 20, found.bytes());
            FormerPools own = new FormerPools(Path.of("/proc"), NAME, FormerPools.inode(descriptor));
            own.look();
            assertEquals(0, own.bytes());
            assertEquals(0, own.pid());
        }
    }
}
