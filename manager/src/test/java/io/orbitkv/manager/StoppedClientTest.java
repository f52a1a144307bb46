package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.nativeio.Machine;
import io.orbitkv.store.StoreOptions;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: a client that is stopped while its manager is killed doesn't make memory hold two pools, and costs no more than a part of
 * the next manager's until it goes on. Method: real processes; the kernel says what each pool takes.
 */
@Timeout(300)
class StoppedClientTest {
    private static final int POOL_MIB = 128;
    private static final long POOL_BYTES = (long) POOL_MIB << 20;
    private static final int BLOCK_BYTES = 65_536;
    private static final int BLOCKS = 16;

    @TempDir
    Path folder;

    private final Gen gen = new Gen(Seed.of(StoppedClientTest.class));
    private final List<Process> children = new ArrayList<>();

    @AfterEach
    void endChildren() throws InterruptedException {
        for (Process child : children) {
            child.destroyForcibly().waitFor();
        }
    }

    @Test
    void aStoppedClientsPoolAndTheNextOneTakeTheMemoryOfOne() throws Exception {
        String socket = folder.resolve("m.sock").toString();
        String data = folder.resolve("data").toString();
        Process killed = start("serving ", ManagerChild.class, socket, data, Integer.toString(POOL_MIB));
        Process stopped = start("connected ", ClientChild.class, socket);
        byte[] saved = saveMuch(socket);
        FormerPools first = new FormerPools(Path.of("/proc"), poolName(killed), -1);
        assertEquals(
                0,
                new ProcessBuilder("kill", "-STOP", Long.toString(stopped.pid()))
                        .start()
                        .waitFor());
        killed.destroyForcibly().waitFor();
        first.look();
        assertEquals(POOL_BYTES, first.bytes(), "the stopped client keeps all of it");

        long began = System.nanoTime();
        try (Manager manager = Manager.start(options(socket, data))) {
            long startMillis = (System.nanoTime() - began) / 1_000_000;
            await(() -> manager.pool().condition() == PoolCondition.FORMER_POOL, "it does not see the former pool");
            assertEquals(stopped.pid(), manager.pool().formerPid());
            assertEquals(POOL_BYTES / 16, manager.store().usablePoolBytes());
            try (JavaClient client = new JavaClient(socket, "old")) {
                int family = client.open(ManagerTest.family(BLOCK_BYTES));
                await(() -> client.query(family, saved, 1) == BLOCKS, "what was saved before the kill is not found");
                assertArrayEquals(payload(saved), client.restore(family, saved, BLOCK_BYTES));
            }
            saveMuch(socket);
            long both = taken(manager) + manager.pool().formerBytes();
            assertTrue(both <= POOL_BYTES * 11 / 10, both + " bytes in two pools of " + POOL_BYTES);
            assertEquals(manager.store().usablePoolBytes(), taken(manager));
            String ready = get(manager, "/ready");
            assertTrue(ready.startsWith("{\"ready\":true,\"pool_bytes\":" + POOL_BYTES + ","), ready);
            assertTrue(ready.contains("\"usable_pool_bytes\":" + POOL_BYTES / 16 + ","), ready);
            assertTrue(ready.contains("\"pool_condition\":\"FORMER_POOL\","), ready);
            assertTrue(ready.contains("\"former_pool_pid\":" + stopped.pid()), ready);
            assertTrue(manager.statsJson().contains("\"pool_condition\":\"FORMER_POOL\""), manager.statsJson());
            String metrics = get(manager, "/metrics");
            assertTrue(metrics.contains("orbitkv_pool_condition{condition=\"FORMER_POOL\"} 1"), metrics);
            assertTrue(metrics.contains("orbitkv_pool_condition{condition=\"WHOLE\"} 0"), metrics);

            long gone = System.nanoTime();
            stopped.destroyForcibly().waitFor();
            await(() -> manager.pool().condition() == PoolCondition.WHOLE, "it does not grow");
            System.out.println("served after " + startMillis + " ms, whole " + (System.nanoTime() - gone) / 1_000_000
                    + " ms after the client has gone");
            assertEquals(POOL_BYTES, manager.store().usablePoolBytes());
            assertEquals(0, manager.pool().formerBytes());
            saveMuch(socket);
            assertEquals(POOL_BYTES, taken(manager));
        }
    }

    private static StoreOptions storeOptions(String data) {
        return StoreOptions.in(Path.of(data))
                .driveTimeoutMillis(60_000)
                .poolBytes(POOL_BYTES)
                .capBytes(256L << 20);
    }

    private static ManagerOptions options(String socket, String data) {
        return ManagerOptions.of(Path.of(socket), storeOptions(data))
                .http(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    }

    private static long taken(Manager manager) {
        return Machine.takenBytes(
                Path.of("/proc/self/fd/" + manager.arena().pool().fd()));
    }

    /** As the manager's process maps it. */
    private static String poolName(Process manager) throws IOException {
        for (String line : java.nio.file.Files.readAllLines(
                Path.of("/proc/" + manager.pid() + "/maps"), StandardCharsets.ISO_8859_1)) {
            int at = line.indexOf("orbitkv-pool-");
            if (at >= 0) {
                return line.substring(at, line.indexOf(' ', at));
            }
        }
        throw new AssertionError("it maps no pool");
    }

    /** One and a half pools of prompts; the keys of the last. */
    private byte[] saveMuch(String socket) {
        byte[] keys = new byte[BLOCKS * Wire.KEY_BYTES];
        try (JavaClient client = new JavaClient(socket, "saves")) {
            int family = client.open(ManagerTest.family(BLOCK_BYTES));
            for (long bytes = 0; bytes < POOL_BYTES * 3 / 2; bytes += BLOCKS * BLOCK_BYTES) {
                for (int i = 0; i < keys.length; i++) {
                    keys[i] = (byte) gen.nextLong();
                }
                assertEquals(BLOCKS, client.save(family, keys, payload(keys), BLOCK_BYTES));
            }
        }
        return keys;
    }

    private static byte[] payload(byte[] keys) {
        byte[] bytes = new byte[keys.length / Wire.KEY_BYTES * BLOCK_BYTES];
        for (int at = 0; at < bytes.length; at++) {
            bytes[at] = (byte) (keys[at / BLOCK_BYTES * Wire.KEY_BYTES + at % Wire.KEY_BYTES] + at / 4096);
        }
        return bytes;
    }

    private static String get(Manager manager, String page) throws Exception {
        URI uri = URI.create("http://127.0.0.1:" + manager.httpPort() + page);
        return HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString())
                .body();
    }

    private Process start(String says, Class<?> main, String... arguments) throws IOException {
        Process child = JavaChild.start(says, main, arguments);
        children.add(child);
        return child;
    }

    private static void await(BooleanSupplier condition, String what) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - deadline < 0, what);
            Thread.onSpinWait();
        }
    }
}
