package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.SaveResult.DropReason;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Promise 8: every queue, batch, budget and wait is bounded, and its bound is a setting with its unit in the name; over
 * budget means a miss, never a wait.
 */
class Promise08BoundsTest {
    private static final int BLOCK_BYTES = 4 << 10;
    private static final int BLOCKS = 8;
    private static final int LEASES = 64;

    /** What a number counts. */
    private static final Pattern UNIT = Pattern.compile(
            ".*(Bytes|BytesMax|BytesLargest|BytesPerSecond|Millis|MillisMax|Blocks|BlocksMax|Segments|leasesMax|ringDepth|admissionPrice)$");

    private static final int PRICE_MAX = 10; // in blocks

    private final TestFolders folders = new TestFolders();
    private static final int TURNS_MIN = 5;
    private static final int TURNS_MAX = 200;

    private final Gen gen = new Gen(Seed.of(Promise08BoundsTest.class));

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    @Test
    void eachSettingHasAUnitAndABound() throws ReflectiveOperationException {
        List<Method> settings = new ArrayList<>();
        for (Method method : StoreOptions.class.getMethods()) {
            if (method.getReturnType() == StoreOptions.class && method.getParameterCount() == 1) {
                settings.add(method);
            }
        }
        settings.sort(Comparator.comparing(Method::getName));
        int numbers = 0;
        for (Method setting : settings) {
            Class<?> type = setting.getParameterTypes()[0];
            if (!type.isPrimitive() || type == boolean.class) {
                continue; // an enum, a flag, a list: bounded by themselves
            }
            numbers++;
            assertTrue(UNIT.matcher(setting.getName()).matches(), setting.getName() + " names no unit");
            requireRefused(setting, type, -1);
            requireRefused(setting, type, type == int.class ? Integer.MAX_VALUE : Long.MAX_VALUE);
            requireRefused(setting, type, type == int.class ? Integer.MIN_VALUE : Long.MIN_VALUE);
        }
        assertTrue(numbers >= 14, numbers + " settings with a number");
    }

    private static void requireRefused(Method setting, Class<?> type, long value) throws ReflectiveOperationException {
        Object argument = type == int.class
                ? (Object) (int) value
                : type == double.class ? (Object) (double) value : (Object) value;
        try {
            setting.invoke(WholeStore.optionsIn(Path.of("nowhere")), argument);
        } catch (InvocationTargetException e) {
            OrbitKvException refusal = (OrbitKvException) e.getCause();
            assertEquals(ErrorCode.BAD_ARGUMENT, refusal.code(), setting.getName());
            assertTrue(refusal.getMessage().contains("from "), refusal.getMessage());
            return;
        }
        fail(setting.getName() + " takes " + value);
    }

    private KvStore open(long leaseMillis) {
        return KvStore.open(WholeStore.optionsIn(folders.make("bounds"))
                .poolBytes(4 << 20)
                .capBytes(64 << 20)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES)
                .leaseMillis(leaseMillis)
                .leasesMax(LEASES));
    }

    private static Modelled shard(KvStore store) {
        return new Modelled(
                store, store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0), new Modelled.Model(), BLOCKS);
    }

    /** LMCache 1034: a million look-ups without a restore, one in eight of which nobody ever closes. */
    @Test
    void reported_LMCache_1034_aMillionQueriesWithoutARestoreHoldNothing() {
        int queries = Integer.getInteger("orbitkv.queries", 1_000_000);
        try (KvStore store = open(20);
                Modelled shard = shard(store)) {
            long budget = (4L << 20) + (64L << 20);
            Prompt[] prompts = new Prompt[64];
            for (int i = 0; i < prompts.length; i++) {
                prompts[i] = Prompt.random(gen, BLOCKS);
                shard.saveAll(prompts[i], 0, BLOCKS);
            }
            int hits = 0;
            for (int i = 0; i < queries; i++) {
                Lease lease = store.query(shard.shard.family(), prompts[i % prompts.length].keys, 0, BLOCKS);
                hits += lease.blocks() > 0 ? 1 : 0;
                if (i % 8 != 0) {
                    lease.close();
                }
                if (i % 10_000 == 0) {
                    assertTrue(store.stats().leasedBytes() <= budget);
                    assertTrue(store.stats().leasesHeld() <= LEASES);
                }
            }
            assertTrue(hits > 0, "queries hit");
            requireSavesAsFastAsBesideNone(shard);
        }
    }

    /**
     * Beside a store that was never queried, in turns, for the machine has other work: what is held shows in each window of
     * the one, and in none of the other.
     */
    private void requireSavesAsFastAsBesideNone(Modelled queried) {
        try (KvStore store = open(20);
                Modelled calm = shard(store)) {
            double best = 0;
            double bestCalm = 0;
            for (int turn = 0; turn < TURNS_MIN || best < 0.9 * bestCalm; turn++) {
                assertTrue(turn < TURNS_MAX, "saves a second: " + best + ", without queries before " + bestCalm);
                best = Math.max(best, savesPerSecond(queried));
                bestCalm = Math.max(bestCalm, savesPerSecond(calm));
            }
            System.out.printf("saves a second after a million queries / after none: %.2f%n", best / bestCalm);
        }
    }

    /** The pool is written over twice, so that whatever is pinned shows. */
    private double savesPerSecond(Modelled shard) {
        int blocks = 2 * (4 << 20) / BLOCK_BYTES;
        Prompt[] fresh = new Prompt[blocks / BLOCKS];
        Arrays.setAll(fresh, i -> Prompt.random(gen, BLOCKS));
        long began = System.nanoTime();
        for (Prompt prompt : fresh) {
            shard.saveAll(prompt, 0, BLOCKS);
        }
        return blocks / ((System.nanoTime() - began) / 1e9);
    }

    /** LMCache 3855: restores that compete for host memory, a pool of one and a half requests and twelve clients. */
    @Test
    void reported_LMCache_3855_twelveClientsOverAPoolOfOneAndAHalfRequestsAllGetOn() throws Exception {
        int clients = 12;
        int blocks = 170; // of 4 KiB, where the pool has 256
        StoreOptions options = WholeStore.optionsIn(folders.make("crowd"))
                .poolBytes(1 << 20)
                .capBytes(64 << 20)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES);
        try (KvStore store = KvStore.open(options)) {
            ShardHandle handle =
                    store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0);
            Modelled.Model model = new Modelled.Model();
            ExecutorService pool = Executors.newFixedThreadPool(clients);
            try {
                List<Future<Integer>> all = new ArrayList<>();
                for (int client = 0; client < clients; client++) {
                    long seed = gen.nextLong();
                    all.add(pool.submit(() -> crowd(new Modelled(store, handle, model, blocks), seed, blocks)));
                }
                int restored = 0;
                for (Future<Integer> one : all) {
                    restored += one.get(120, TimeUnit.SECONDS);
                }
                assertTrue(restored > 0, "something was restored");
            } finally {
                pool.shutdownNow();
            }
            assertEquals(0, store.stats().corruptBlocks());
        }
    }

    private static int crowd(Modelled client, long seed, int blocks) {
        Gen mine = new Gen(seed);
        int restored = 0;
        try (client) {
            Prompt prompt = Prompt.random(mine, blocks);
            for (int round = 0; round < 20; round++) {
                SaveResult result = client.save(prompt, 0, blocks);
                assertTrue(result.dropped() == 0 || result.reason() != DropReason.NONE, result::toString);
                restored += client.restore(prompt, 0, blocks, mine);
                if (round % 4 == 3) {
                    prompt = Prompt.random(mine, blocks);
                }
            }
        }
        return restored;
    }

    @Test
    void aQueryOverAllBudgetsIsAMissAndNoWait() {
        try (KvStore store = open(60_000);
                Modelled shard = shard(store)) {
            Prompt prompt = Prompt.random(gen, BLOCKS);
            shard.saveAll(prompt, 0, BLOCKS);
            List<Lease> held = new ArrayList<>();
            for (int i = 0; i < LEASES; i++) {
                held.add(store.query(shard.shard.family(), prompt.keys, 0, BLOCKS));
            }
            try (Lease refused = store.query(shard.shard.family(), prompt.keys, 0, BLOCKS)) {
                assertEquals(0, refused.blocks());
                OrbitKvException misuse = assertThrows(
                        OrbitKvException.class,
                        () -> store.restore(refused, shard.shard, 0, 1, Blocks.of(new byte[1])));
                assertEquals(ErrorCode.BAD_ARGUMENT, misuse.code());
            }
            held.forEach(Lease::close);
        }
    }
}
