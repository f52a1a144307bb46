package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Family;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.UnixSocket;
import io.orbitkv.store.StoreOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Goal: a manager keeps its bounds and leaves nothing behind. Method: managers in this process, clients over the socket. */
@Timeout(120)
class ManagerTest {
    private static final int BLOCK_BYTES = 4096;

    @TempDir
    Path folder;

    private ManagerOptions options(String store) {
        StoreOptions options = StoreOptions.in(folder.resolve(store))
                .poolBytes(2 << 20)
                .capBytes(16 << 20)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES);
        return ManagerOptions.of(folder.resolve("m.sock"), options).stagingBytes(1 << 20);
    }

    private String socket() {
        return folder.resolve("m.sock").toString();
    }

    private static Family family(int blockBytes) {
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
}
