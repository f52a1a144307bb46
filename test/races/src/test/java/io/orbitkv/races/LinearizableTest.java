package io.orbitkv.races;

import static org.junit.jupiter.api.Assertions.assertThrows;

import io.orbitkv.index.Match;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.Tier;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.UnsafeBuffer;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.StressOptions;
import org.junit.jupiter.api.Test;

/**
 * Goal: publish, match, relocate, drop and reclaim happen at one moment each, whatever else happens meanwhile.
 * Method: Lincheck's stress strategy. Three threads do random operations on a chain of three blocks in two segments a tier,
 * those that need the writer lock under one; each answer must be explained by some order of the operations in {@link Model},
 * which is a table. A match is of one block: one of several looks at each in its own moment. Model checking is out of reach:
 * the index works on native memory, whose accesses it can't see.
 */
@Param(name = "block", gen = IntGen.class, conf = "0:2")
@Param(name = "segment", gen = IntGen.class, conf = "0:1")
public class LinearizableTest {
    private static final int BLOCKS = 3;
    private static final int SEGMENTS = 2;
    private static final UnsafeBuffer KEYS = keys();
    private static final Object WRITER = new Object();
    private static final Generations HOST = new Generations(SEGMENTS);
    private static final Generations NVME = new Generations(SEGMENTS);
    private static final PrefixIndex INDEX = new PrefixIndex(256, HOST, NVME);
    private static int namespaceBefore = -1;

    private final ThreadLocal<Match> matches = ThreadLocal.withInitial(() -> new Match(BLOCKS));
    private final int namespace;

    /** Native memory lives as long as the class, so each round gets a namespace of its own. */
    public LinearizableTest() {
        synchronized (WRITER) {
            if (namespaceBefore >= 0) {
                INDEX.retire(namespaceBefore);
            }
            while (INDEX.blocks() > 0) {
                INDEX.sweep(64);
            }
            INDEX.sweep(256);
            namespace = INDEX.newNamespace();
            namespaceBefore = namespace;
        }
    }

    @Test
    void operationsHappenAtOneMoment() {
        check(LinearizableTest.class);
    }

    private static void check(Class<?> operations) {
        new StressOptions()
                .threads(3)
                .actorsPerThread(3)
                .actorsBefore(2)
                .actorsAfter(2)
                .iterations(Integer.getInteger("orbitkv.lincheck.iterations", 150))
                .invocationsPerIteration(Integer.getInteger("orbitkv.lincheck.invocations", 300))
                .sequentialSpecification(Model.class)
                .check(operations);
    }

    /** Control: two looks are not one moment, and that must be seen. */
    @Test
    void twoLooksAreNoticed() {
        assertThrows(AssertionError.class, () -> check(TwoLooks.class));
    }

    /** Asks for the place in each tier by a match of its own; nothing else but what makes that show. */
    @Param(name = "segment", gen = IntGen.class, conf = "0:1")
    public static final class TwoLooks {
        private final LinearizableTest index = new LinearizableTest();

        @Operation
        public boolean publish(
                @Param(gen = IntGen.class, conf = "0:0") int block, @Param(name = "segment") int segment) {
            return index.publish(block, segment);
        }

        @Operation
        public boolean write(
                @Param(gen = IntGen.class, conf = "0:0") int block,
                @Param(name = "segment") int from,
                @Param(name = "segment") int to) {
            return index.write(block, from, to);
        }

        @Operation
        public int where(@Param(gen = IntGen.class, conf = "0:0") int block) {
            int host = index.where(block) % 10;
            LockSupport.parkNanos(20_000);
            return host + index.where(block) / 10 * 10;
        }
    }

    /** Lies in host memory from now on, unless it is live already. */
    @Operation
    public boolean publish(@Param(name = "block") int block, @Param(name = "segment") int segment) {
        synchronized (WRITER) {
            return INDEX.publish(
                            namespace,
                            block == 0 ? null : KEYS,
                            Math.max(0, block - 1) * PrefixIndex.KEY_BYTES,
                            KEYS,
                            offset(block),
                            1,
                            block,
                            Tier.HOST,
                            Extent.pack(segment, block, HOST.current(segment)))
                    == PrefixIndex.Publication.PUBLISHED;
        }
    }

    /** The log has written it: it lies on NVMe too, if host memory still has it. */
    @Operation
    public boolean write(
            @Param(name = "block") int block, @Param(name = "segment") int from, @Param(name = "segment") int to) {
        synchronized (WRITER) {
            long held = Extent.pack(from, block, HOST.current(from));
            return INDEX.place(
                    namespace,
                    KEYS,
                    offset(block),
                    Tier.HOST,
                    held,
                    Tier.NVME,
                    Extent.pack(to, block, NVME.current(to)));
        }
    }

    /** Quarantine. */
    @Operation
    public boolean forget(@Param(name = "block") int block, @Param(name = "segment") int segment) {
        synchronized (WRITER) {
            return INDEX.forget(
                    namespace, KEYS, offset(block), Tier.NVME, Extent.pack(segment, block, NVME.current(segment)));
        }
    }

    @Operation
    public void reclaimHost(@Param(name = "segment") int segment) {
        synchronized (WRITER) {
            HOST.raise(segment);
        }
    }

    @Operation
    public void reclaimNvme(@Param(name = "segment") int segment) {
        synchronized (WRITER) {
            NVME.raise(segment);
        }
    }

    @Operation
    public void sweep() {
        synchronized (WRITER) {
            INDEX.sweep(8);
        }
    }

    /** Without the lock: where one block lies, as {@link Model#where}. */
    @Operation
    public int where(@Param(name = "block") int block) {
        Match match = matches.get();
        if (INDEX.match(namespace, KEYS, offset(block), 1, match) == 0) {
            return 0;
        }
        return where(match, 0);
    }

    @Operation
    public boolean contains(@Param(name = "block") int block) {
        return INDEX.contains(namespace, KEYS, offset(block));
    }

    private static int where(Match match, int i) {
        return place(match.extent(Tier.HOST, i)) + 10 * place(match.extent(Tier.NVME, i));
    }

    private static int place(long extent) {
        return extent == Extent.NONE ? 0 : 1 + Extent.segment(extent);
    }

    private static int offset(int block) {
        return block * PrefixIndex.KEY_BYTES;
    }

    private static UnsafeBuffer keys() {
        UnsafeBuffer keys = new UnsafeBuffer(new byte[BLOCKS * PrefixIndex.KEY_BYTES]);
        for (int i = 0; i < keys.capacity(); i += Long.BYTES) {
            keys.putLong(i, (i + 1) * 0x9E3779B97F4A7C15L);
        }
        return keys;
    }

    /** The index as a table: for each block and tier 0, or 1 and its segment. */
    public static final class Model {
        private final int[] host = new int[BLOCKS];
        private final int[] nvme = new int[BLOCKS];

        public boolean publish(int block, int segment) {
            if (contains(block)) {
                return false;
            }
            host[block] = 1 + segment;
            return true;
        }

        public boolean write(int block, int from, int to) {
            boolean held = host[block] == 1 + from;
            nvme[block] = held ? 1 + to : nvme[block];
            return held;
        }

        public boolean forget(int block, int segment) {
            boolean held = nvme[block] == 1 + segment;
            nvme[block] = held ? 0 : nvme[block];
            return held;
        }

        public void reclaimHost(int segment) {
            reclaim(host, segment);
        }

        public void reclaimNvme(int segment) {
            reclaim(nvme, segment);
        }

        public void sweep() {
            // Frees places of dead blocks, which nobody can tell from blocks that never were.
        }

        /** 0, or 1 and the segment in host memory, and ten times the same of NVMe. */
        public int where(int block) {
            return host[block] + 10 * nvme[block];
        }

        public boolean contains(int block) {
            return where(block) > 0;
        }

        private static void reclaim(int[] tier, int segment) {
            for (int block = 0; block < BLOCKS; block++) {
                tier[block] = tier[block] == 1 + segment ? 0 : tier[block];
            }
        }
    }
}
