package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Family;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.Machine;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.UnixSocket;
import io.orbitkv.recovery.FillState;
import io.orbitkv.store.StoreOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Goal: a manager keeps its bounds and leaves nothing behind. Method: managers in this process, clients over the socket. */
@Timeout(120)
class ManagerTest {
    private static final int BLOCK_BYTES = 4096;
    private static final int CAP_BLOCKS = (16 << 20) / BLOCK_BYTES;

    @TempDir
    Path folder;

    private ManagerOptions options(String store) {
        StoreOptions options = StoreOptions.in(folder.resolve(store))
                .driveTimeoutMillis(60_000)
                .poolBytes(2 << 20)
                .capBytes(16 << 20)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES);
        return ManagerOptions.of(folder.resolve("m.sock"), options).stagingBytes(1 << 20);
    }

    private String socket() {
        return folder.resolve("m.sock").toString();
    }

    static Family family(int blockBytes) {
        return Family.builder()
                .modelId("test")
                .fingerprint("test")
                .tokenizerDigest(new byte[] {1})
                .kvDtype("bf16")
                .layout(new byte[] {1})
                .blockBytes(blockBytes)
                .blockTokens(16)
                .engine("test")
                .hash("test", "")
                .build();
    }

    private static void await(BooleanSupplier condition, String what) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - deadline < 0, what);
            Thread.onSpinWait();
        }
    }

    @Test
    void oneManagerServesASocket() throws Exception {
        try (Manager manager = Manager.start(options("one"))) {
            OrbitKvException refused = assertThrows(
                    OrbitKvException.class, () -> Manager.start(options("two")).close());
            assertEquals(ErrorCode.SOCKET, refused.code());
            try (JavaClient client = new JavaClient(socket(), "test")) {
                assertEquals(manager.epoch(), client.epoch());
            }
        }
        assertFalse(Files.exists(folder.resolve("m.sock")));
        UnixSocket.listen(socket(), 1).close(); // one that a killed manager left behind
        try (Manager manager = Manager.start(options("one"))) {
            assertEquals("", manager.whyNotReady());
            manager.close();
            assertEquals("the manager is stopping", manager.whyNotReady());
        }
        Files.writeString(folder.resolve("m.sock"), "somebody's file");
        OrbitKvException refused = assertThrows(
                OrbitKvException.class, () -> Manager.start(options("one")).close());
        assertEquals(ErrorCode.SOCKET, refused.code());
        assertEquals("somebody's file", Files.readString(folder.resolve("m.sock")));
    }

    @Test
    void sessionsAreBoundedAndGiveEverythingBack() {
        long before = MemoryPurpose.totalBytes();
        try (Manager manager = Manager.start(options("one").sessionsMax(2))) {
            try (JavaClient first = new JavaClient(socket(), "a");
                    JavaClient second = new JavaClient(socket(), "b")) {
                assertEquals(2, manager.sessions());
                JavaClient.Refused refused =
                        assertThrows(JavaClient.Refused.class, () -> new JavaClient(socket(), "c").close());
                assertEquals(ErrorCode.BUSY.number(), refused.code);
                assertEquals(0, first.open(family(BLOCK_BYTES)));
                assertEquals(0, second.open(family(BLOCK_BYTES)), "numbers count in a session");
                refused = assertThrows(JavaClient.Refused.class, () -> first.open(family(1 << 20)));
                assertEquals(ErrorCode.BLOCK_TOO_LARGE.number(), refused.code);
                assertEquals(2, manager.leases().instances());
            }
            await(() -> manager.sessions() == 0, "sessions outlive their connections");
            assertEquals(0, manager.leases().instances());
            assertEquals(0, MemoryPurpose.SESSION.bytes());
            try (JavaClient again = new JavaClient(socket(), "d")) {
                assertEquals(manager.epoch(), again.epoch());
            }
        }
        assertEquals(before, MemoryPurpose.totalBytes());
    }

    @Test
    void leasesKeepTheBudgetOfTheirInstance() {
        byte[] keys = new byte[4 * Wire.KEY_BYTES];
        for (int i = 0; i < keys.length; i++) {
            keys[i] = (byte) (i * 7 + i / 32);
        }
        try (Manager manager = Manager.start(options("one").instanceLeaseBytesMax(6 * BLOCK_BYTES));
                JavaClient client = new JavaClient(socket(), "a");
                JavaClient other = new JavaClient(socket(), "b")) {
            int family = client.open(family(BLOCK_BYTES));
            assertEquals(4, client.save(family, keys, new byte[4 * BLOCK_BYTES], BLOCK_BYTES));
            assertEquals(4, client.query(family, keys, 1));
            assertEquals(0, client.query(family, keys, 2), "8 blocks are over the budget");
            assertEquals(1, manager.leases().refused());
            assertEquals(4, client.query(family, keys, 1), "it takes the place of the one before");
            assertEquals(4, other.query(other.open(family(BLOCK_BYTES)), keys, 2), "another instance has its own");
            assertEquals(8L * BLOCK_BYTES, manager.leases().leasedBytes());
        }
    }

    /** A kernel that is told of memory for its transfers takes all of it: it must not be told too early. */
    @Test
    void aPoolTakesMemoryAsItFills() {
        byte[] keys = new byte[16 * Wire.KEY_BYTES];
        new Random(6).nextBytes(keys);
        try (Manager manager = Manager.start(options("one"));
                JavaClient client = new JavaClient(socket(), "a")) {
            Path descriptor = Path.of("/proc/self/fd/" + manager.arena().pool().fd());
            await(() -> manager.pool().condition() == PoolCondition.WHOLE, "the pool does not grow");
            assertEquals(0, Machine.takenBytes(descriptor));
            assertEquals(
                    16, client.save(client.open(family(BLOCK_BYTES)), keys, new byte[16 * BLOCK_BYTES], BLOCK_BYTES));
            assertEquals(16 * BLOCK_BYTES, Machine.takenBytes(descriptor));
        }
    }

    @Test
    void whatAManagerHeldInMemoryIsThereAgainBehindTheNextStart() {
        byte[] keys = new byte[32 * Wire.KEY_BYTES];
        new Random(5).nextBytes(keys);
        try (Manager manager = Manager.start(options("one"));
                JavaClient client = new JavaClient(socket(), "a")) {
            await(() -> manager.pool().condition() == PoolCondition.WHOLE, "the pool does not grow");
            assertEquals(
                    32, client.save(client.open(family(BLOCK_BYTES)), keys, new byte[32 * BLOCK_BYTES], BLOCK_BYTES));
        }
        try (Manager manager = Manager.start(options("one"))) {
            await(() -> manager.store().stats().promotedBlocks() == 32, "they stay on the drive");
        }
        Manager.start(options("one")).close(); // while they are being brought back
    }

    /** vllm 45174, llm-d-router 2853: blocks that had gone stayed indexed for good. */
    @Test
    void reported_vllm_45174_whatAListenerKeepsIsWhatTheManagerHolds() {
        List<byte[]> prompts = new ArrayList<>();
        Random keysOf = new Random(45174);
        Set<String> kept = new HashSet<>();
        try (Manager manager = Manager.start(options("one"));
                JavaClient saver = new JavaClient(socket(), "saver");
                JavaClient router = new JavaClient(socket(), "router")) {
            await(() -> manager.store().openReport().fill() == FillState.WHOLE, "the index is not whole");
            int family = saver.open(family(BLOCK_BYTES));
            long next = router.events(0, kept)[1];
            router.listBlocks(kept);
            assertEquals(Set.of(), kept);
            for (int prompt = 0; prompt < 2 * CAP_BLOCKS / 32; prompt++) { // twice what the drive holds
                byte[] keys = new byte[32 * Wire.KEY_BYTES];
                keysOf.nextBytes(keys);
                prompts.add(keys);
                saver.save(family, keys, new byte[32 * BLOCK_BYTES], BLOCK_BYTES);
                saver.save(
                        family, prompts.get(keysOf.nextInt(prompts.size())), new byte[32 * BLOCK_BYTES], BLOCK_BYTES);
            }
            next = awaitAsHeld(saver, family, prompts, router, next, kept);
            assertTrue(kept.size() > CAP_BLOCKS / 4 && kept.size() < 3 * CAP_BLOCKS / 2, kept.size() + " blocks");
            Set<String> listed = new HashSet<>();
            router.listBlocks(listed);
            assertEquals(kept, listed);
            manager.store().clear(manager.store().openFamily(family(BLOCK_BYTES)));
            router.events(next, kept);
            assertEquals(Set.of(), kept);
            saver.save(family, prompts.get(0), new byte[32 * BLOCK_BYTES], BLOCK_BYTES);
        }
        Set<String> again = new HashSet<>();
        try (Manager manager = Manager.start(options("one"));
                JavaClient router = new JavaClient(socket(), "router")) {
            await(() -> manager.store().openReport().fill() == FillState.WHOLE, "the index is not whole");
            router.listBlocks(again);
            assertEquals(32, again.size(), "blocks of an earlier life are listed");
        }
    }

    /** Follows events until what is kept is what queries find, block by block; the next sequence. */
    private static long awaitAsHeld(
            JavaClient saver, int family, List<byte[]> prompts, JavaClient router, long from, Set<String> kept) {
        long[] next = {from};
        await(
                () -> {
                    long[] answer;
                    do {
                        answer = router.events(next[0], kept);
                        assertEquals(next[0], answer[0], "events are missing");
                        next[0] = answer[1];
                    } while (answer[1] > answer[0]);
                    for (byte[] keys : prompts) {
                        for (int at = 0; at < keys.length; at += Wire.KEY_BYTES) {
                            byte[] key = Arrays.copyOfRange(keys, at, at + Wire.KEY_BYTES);
                            String head = HexFormat.of().formatHex(key, 0, Wire.HEAD_BYTES);
                            if ((saver.query(family, key, 1) == 1) != kept.contains(head)) {
                                return false;
                            }
                        }
                    }
                    return true;
                },
                "what is kept is not what is held");
        return next[0];
    }

    /** Together they save more than twice the cap; each has a family of its own as workers of one engine have. */
    @Test
    void reported_LMCache_1399_eightClientsShareOneBudget() throws Exception {
        int blocks = 64;
        byte[] payload = new byte[blocks * BLOCK_BYTES];
        try (Manager manager = Manager.start(options("one"));
                HostFolder seen = HostFolder.open(folder.resolve("one"))) {
            await(() -> manager.pool().condition() == PoolCondition.WHOLE, "the pool does not grow");
            ExecutorService clients = Executors.newFixedThreadPool(8);
            List<Future<Integer>> saved = new ArrayList<>();
            for (int client = 0; client < 8; client++) {
                int number = client;
                saved.add(clients.submit(() -> saveMuch(number, blocks, payload)));
            }
            clients.shutdown();
            long most = 0;
            while (!clients.awaitTermination(5, TimeUnit.MILLISECONDS)) {
                most = Math.max(most, seen.allocatedBytes(""));
            }
            most = Math.max(most, seen.allocatedBytes(""));
            for (Future<Integer> blocksOfOne : saved) {
                assertTrue(blocksOfOne.get() > CAP_BLOCKS / 4, "it saved little: " + blocksOfOne.get());
            }
            assertEquals(2 << 20, MemoryPurpose.HOST_POOL.bytes(), "one pool");
            assertTrue(most <= 16 << 20, most + " bytes of eight clients in a folder with a cap of 16 MiB");
            assertTrue(most > 12 << 20, "the folder never filled: " + most);
        }
    }

    private int saveMuch(int number, int blocks, byte[] payload) {
        int saved = 0;
        byte[] keys = new byte[blocks * Wire.KEY_BYTES];
        Random keysOf = new Random(number);
        try (JavaClient client = new JavaClient(socket(), "worker " + number)) {
            int family = client.open(family(BLOCK_BYTES - number));
            for (int prompt = 0; prompt < 20_000 && saved <= CAP_BLOCKS / 4; prompt++) {
                keysOf.nextBytes(keys);
                saved += client.save(family, keys, payload, BLOCK_BYTES - number);
            }
        }
        return saved;
    }
}
