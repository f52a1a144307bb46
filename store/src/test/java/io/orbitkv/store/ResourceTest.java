package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.LeakCheck;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.tiers.AdmissionPolicy;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: an idle store costs next to nothing, its hot paths allocate nothing, and a life of it leaves nothing behind.
 * Method: CPU time of a child process that only has a store open; allocation counters of the calling thread and the
 * log's; descriptors and native bytes before and after many lives, good ones and failed ones.
 *
 * <p>{@code -Dorbitkv.idleSeconds=60} measures idling for as long as the promise says, {@code -Dorbitkv.cycles=1000}
 * opens and closes as often.
 */
class ResourceTest {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;
    private static final int WINDOWS_MAX = 12;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final double IDLE_SHARE_MAX = 0.005;
    private static final int IDLE_WINDOWS = 4;

    private final Gen gen = new Gen(5);
    private final TestFolders folders = new TestFolders();

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    // ---- idling ----

    /** The child: opens a store, uses it a little, and sleeps while the parent measures. */
    static final class Idler {
        private Idler() {}

        public static void main(String[] args) throws Exception {
            StoreOptions options = WholeStore.optionsIn(Path.of(args[0]))
                    .poolBytes(16 * MIB)
                    .capBytes(64 * MIB)
                    .admission(AdmissionPolicy.DUEL); // has every thread that there is
            try (KvStore store = WholeStore.open(options)) {
                ShardHandle shard =
                        store.openFamily(Modelled.family(8 * KIB).build()).shard(0);
                try (Modelled modelled = new Modelled(store, shard, new Modelled.Model(), 16)) {
                    Gen gen = new Gen(1);
                    Prompt prompt = Prompt.random(gen, 16);
                    modelled.saveAll(prompt, 0, 16);
                    modelled.restore(prompt, 0, 16, gen);
                    modelled.written();
                }
                while (store.stats().admission().historyBytes() == 0) {
                    Thread.sleep(100); // its start compiles classes
                }
                Thread.sleep(8_000); // the JIT compilers come to rest
                System.gc();
                Thread.sleep(500);
                System.out.println("idle");
                System.in.read();
            }
        }
    }

    @Test
    void anOpenStoreThatIdlesUsesUnderHalfAPercentOfACore() throws Exception {
        long seconds = Long.getLong("orbitkv.idleSeconds", 10);
        Process child = ChildJvm.start(Idler.class, folders.make("idle").toString());
        try {
            ChildJvm.awaitLine(child, "idle");
            // Neighbours can only add to it: the best of several windows is the store's own.
            double share = 1;
            for (int window = 0; window < IDLE_WINDOWS && share >= IDLE_SHARE_MAX; window++) {
                share = Math.min(share, idleShare(child.pid(), seconds));
            }
            assertTrue(share < IDLE_SHARE_MAX, "an idle store used " + share * 100 + " % of a core");
            child.outputWriter().close();
            assertTrue(child.waitFor(30, TimeUnit.SECONDS));
            assertEquals(0, child.exitValue());
        } finally {
            child.destroyForcibly();
        }
    }

    private static double idleShare(long pid, long seconds) throws Exception {
        long before = cpuNanos(pid);
        long start = System.nanoTime();
        Thread.sleep(seconds * 1_000);
        double share = (double) (cpuNanos(pid) - before) / (System.nanoTime() - start);
        System.out.printf("idle store: %.3f %% of a core over %d s%n", share * 100, seconds);
        return share;
    }

    /** Of all threads of a process, from the scheduler's own account in nanoseconds; ticks would be too coarse. */
    private static long cpuNanos(long pid) throws IOException {
        long sum = 0;
        try (var tasks = Files.newDirectoryStream(Path.of("/proc", Long.toString(pid), "task"))) {
            for (Path task : tasks) {
                sum += Long.parseLong(
                        Files.readString(task.resolve("schedstat")).split(" ")[0]);
            }
        }
        return sum;
    }

    // ---- allocation ----

    @ParameterizedTest
    @EnumSource
    void savesQueriesAndRestoresAllocateNothingOnceTheyAreWarm(AdmissionPolicy admission) {
        StoreOptions options = WholeStore.optionsIn(folders.make("allocation"))
                .poolBytes(4 * MIB)
                .capBytes(64 * MIB)
                .segmentBytes(256 * KIB)
                .blockBytesLargest(4 * KIB)
                .admission(admission);
        int blocks = 32;
        int prompts = 48; // 6 MiB: more than the pool, so that each round restores from both tiers
        try (KvStore store = WholeStore.open(options)) {
            FamilyHandle family = store.openFamily(Modelled.family(4 * KIB).build());
            MemoryRegion memory = store.allocate((long) blocks * 4 * KIB);
            byte[] array = new byte[blocks * 4 * KIB];
            Rounds rounds = new Rounds(store, family, prompts, blocks);
            Blocks direct = Blocks.of(memory);
            Blocks copied = Blocks.of(array);
            Thread log = threadOf("orbitkv-log-0");
            long mine = 1;
            long logs = 1;
            // The JIT compilers resolve string constants on the thread that asks for a compilation, which counts as its
            // own allocation: the first windows show some. A path of ours that allocates shows in every window.
            boolean allPaths = false;
            for (int window = 0; window < WINDOWS_MAX && (mine + logs > 0 || !allPaths); window++) {
                awaitUses(store);
                StoreStats before = store.stats();
                rounds.operations = 0;
                long logBefore = allocatedBytes(log);
                long mineBefore = allocatedBytes(Thread.currentThread());
                for (int i = 0; i < 10; i++) {
                    rounds.run(gen, direct, copied);
                }
                mine = allocatedBytes(Thread.currentThread()) - mineBefore;
                logs = allocatedBytes(log) - logBefore;
                allPaths = tookAllPaths(before, store.stats(), rounds.operations, mine, logs);
            }
            assertTrue(allPaths, () -> store.stats().toString());
            assertEquals(0, mine, "bytes allocated by the calling thread");
            assertEquals(0, logs, "bytes allocated by the log's thread");
        }
    }

    /** An admission that chooses learns beside the saves: nothing is admitted before it has got so far. */
    private static void awaitUses(KvStore store) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (store.stats().admission().usesWaitingBytes() > 0) {
            assertTrue(System.nanoTime() - deadline < 0, () -> "uses wait: " + store.stats());
            LockSupport.parkNanos(1_000_000);
        }
    }

    private static boolean tookAllPaths(StoreStats before, StoreStats after, long calls, long mine, long logs) {
        long saved = after.savedBlocks() - before.savedBlocks();
        long fromHost = after.restoredHostBlocks() - before.restoredHostBlocks();
        long fromDrive = after.restoredNvmeBlocks() - before.restoredNvmeBlocks();
        System.out.printf(
                "allocated over %d calls (%d blocks saved, %d restored from memory, %d from the drive): %d bytes by the"
                        + " caller, %d by the log%n",
                calls, saved, fromHost, fromDrive, mine, logs);
        long promoted = after.promotedBlocks() - before.promotedBlocks();
        return calls > 1_000 && saved > 1_000 && fromHost > 1_000 && fromDrive > 1_000 && promoted > 1_000;
    }

    /** The same work again and again, in small and large batches, with what it needs made beforehand. */
    private static final class Rounds {
        private final KvStore store;
        private final FamilyHandle family;
        private final Prompt[] prompts;
        private final Prompt[] fresh;
        private final int blocks;
        private final SaveResult result = new SaveResult();
        private int next;
        long operations;

        Rounds(KvStore store, FamilyHandle family, int prompts, int blocks) {
            this.store = store;
            this.family = family;
            this.blocks = blocks;
            this.prompts = new Prompt[prompts];
            this.fresh = new Prompt[1_000];
            Gen gen = new Gen(9);
            for (int i = 0; i < prompts; i++) {
                this.prompts[i] = Prompt.random(gen, blocks);
            }
            for (int i = 0; i < fresh.length; i++) {
                fresh[i] = Prompt.random(gen, blocks);
            }
        }

        void run(Gen gen, Blocks direct, Blocks copied) {
            for (int i = 0; i < prompts.length; i++) {
                save(prompts[i], 0, blocks, direct);
                restore(prompts[gen.below(prompts.length)], blocks, direct);
                restore(prompts[gen.below(prompts.length)], blocks, copied);
                restore(prompts[gen.below(prompts.length)], 1, direct);
                restore(prompts[gen.below(prompts.length)], 2, copied);
                restore(prompts[i], blocks, copied);
            }
            for (int i = 0; i < 8; i++) {
                Prompt prompt = fresh[next++ % fresh.length];
                save(prompt, 0, 1, direct);
                save(prompt, 1, 1, copied);
                save(prompt, 2, blocks - 2, copied);
                restore(prompt, blocks, direct); // from memory
                restore(prompt, 1, copied);
            }
        }

        private void save(Prompt prompt, int from, int count, Blocks source) {
            store.save(
                    family.shard(0),
                    from == 0 ? null : prompt.keys,
                    from == 0 ? 0 : Prompt.keyOffset(from - 1),
                    prompt.keys,
                    Prompt.keyOffset(from),
                    count,
                    source,
                    result);
            store.sync(store.acceptedPosition(), Level.WRITTEN, 10_000);
            operations++;
        }

        private void restore(Prompt prompt, int count, Blocks destination) {
            try (Lease lease = store.query(family, prompt.keys, 0, count)) {
                store.restore(lease, family.shard(0), 0, lease.blocks(), destination);
            }
            operations += 2;
        }
    }

    private static Thread threadOf(String name) {
        List<Thread> found = new ArrayList<>();
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().equals(name)) {
                found.add(thread);
            }
        }
        assertEquals(1, found.size(), "threads called " + name);
        return found.get(0);
    }

    private static long allocatedBytes(Thread thread) {
        return THREADS.getThreadAllocatedBytes(thread.getId());
    }

    // ---- leaks ----

    private static StoreOptions small(Path folder) {
        return WholeStore.optionsIn(folder)
                .poolBytes(MIB)
                .capBytes(2 * MIB)
                .segmentBytes(64 * KIB)
                .blockBytesLargest(8 * KIB)
                .openSegments(2);
    }

    @Test
    void openingAndClosingAgainAndAgainLeaksNothing() {
        int cycles = Integer.getInteger("orbitkv.cycles", 100);
        Path folder = folders.make("cycles");
        cycle(folder, 0); // libraries keep descriptors of their own
        LeakCheck leaks = LeakCheck.take();
        long start = System.nanoTime();
        for (int i = 1; i <= cycles; i++) {
            cycle(folder, i);
        }
        System.out.printf(
                "open and close: %.1f ms a cycle, %d cycles%n", (System.nanoTime() - start) / 1e6 / cycles, cycles);
        leaks.assertNothingLeaked();
    }

    private void cycle(Path folder, int number) {
        try (KvStore store = WholeStore.open(small(folder))) {
            ShardHandle shard =
                    store.openFamily(Modelled.family(8 * KIB).build()).shard(0);
            if (number % 4 == 0) { // some lives use all there is, most of them nothing
                try (Modelled modelled = new Modelled(store, shard, new Modelled.Model(), 4)) {
                    Prompt prompt = Prompt.random(gen, 4);
                    modelled.saveAll(prompt, 0, 4);
                    assertEquals(4, modelled.restore(prompt, 0, 4, gen));
                    store.allocate(4096);
                    store.query(shard.family(), prompt.keys, 0, 4); // never closed
                }
            }
        }
    }

    @Test
    void anOpeningThatFailsLeaksNothingWhateverItFailsAt() {
        Path folder = folders.make("good");
        cycle(folder, 0);
        Path damaged = folders.make("damaged");
        cycle(damaged, 0);
        Damage.flip(damaged.resolve("catalog").resolve("data.mdb"), 16, 1);
        Path otherVersion = folders.make("other-version");
        cycle(otherVersion, 0);
        Damage.patchPage(otherVersion.resolve("segments").resolve("000000000000.seg"), 0, 8, 9);
        Path shorter = folders.make("shorter");
        cycle(shorter, 0);
        Damage.truncate(shorter.resolve("segments").resolve("000000000000.seg"), 4096);
        Path foreign = folders.make("foreign");
        Damage.write(foreign.resolve("somebody's"), 0, new byte[1]);
        Map<StoreOptions, ErrorCode> failing = Map.of(
                small(folder.resolve("catalog").resolve("data.mdb")), ErrorCode.FOLDER_UNUSABLE,
                small(folder).capBytes(MIB), ErrorCode.CAP_TOO_SMALL,
                small(folder).poolBytes(MIB).segmentBytes(MIB), ErrorCode.POOL_TOO_SMALL,
                small(folders.make("tiny")).capBytes(1), ErrorCode.CAP_TOO_SMALL,
                small(folders.make("huge"))
                                .capBytes(1L << 55)
                                .segmentBytes(64 * MIB)
                                .poolBytes(256 * MIB),
                        ErrorCode.NO_SPACE,
                small(damaged), ErrorCode.CATALOG,
                small(otherVersion), ErrorCode.OTHER_VERSION,
                small(shorter), ErrorCode.SEGMENT_FILE,
                small(foreign), ErrorCode.FOREIGN_FILE);
        LeakCheck leaks = null;
        for (int round = 0; round < 4; round++) {
            failing.forEach((options, code) -> Refusals.refused(code, () -> KvStore.open(options)));
            try (KvStore store = WholeStore.open(small(folder))) {
                OrbitKvException inUse = Refusals.refused(ErrorCode.FOLDER_IN_USE, () -> KvStore.open(small(folder)));
                assertTrue(inUse.getMessage().contains(folder.toString()), inUse::getMessage);
                assertTrue(store.stats().ownBytes() > 0);
            }
            leaks = round == 0 ? LeakCheck.take() : leaks;
        }
        leaks.assertNothingLeaked();
    }
}
