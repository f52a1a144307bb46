package io.orbitkv.nativeio;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Goal: bytes and descriptors pass over a Unix socket, and every wait can be ended. Method: both ends in this process. */
@Timeout(60)
class UnixSocketTest {
    private static final int BYTES = 4096;

    @TempDir
    Path folder;

    @Test
    void bytesAndMemoryArrive() {
        String path = folder.resolve("s").toString();
        try (UnixSocket listening = UnixSocket.listen(path, 4);
                UnixSocket client = UnixSocket.connect(path);
                UnixSocket server = listening.accept();
                MemoryRegion buffer = MemoryRegion.anonymous(2 * BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
                MemoryRegion shared = MemoryRegion.sealed("test", BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
                MemoryRegion staging = MemoryRegion.memfd("test", BYTES, PageKind.SMALL, MemoryPurpose.TOOL)) {
            assertEquals(ProcessHandle.current().pid(), server.peer().pid());
            assertEquals(PeerCredentials.ownUid(), server.peer().uid());
            shared.putLong(0, 42);
            buffer.putLong(0, 7);
            assertTrue(server.sendDescriptors(buffer, 0, 8, shared.fd(), staging.fd()));
            int[] descriptors = new int[3];
            assertEquals(8, client.receiveDescriptors(buffer, BYTES, BYTES, descriptors));
            assertEquals(7, buffer.getLong(BYTES));
            assertEquals(-1, descriptors[2]);
            try (MemoryRegion seen = MemoryRegion.ofDescriptor(descriptors[0], BYTES, false);
                    MemoryRegion writable = MemoryRegion.ofDescriptor(descriptors[1], BYTES, true)) {
                assertEquals(42, seen.getLong(0));
                shared.putLong(8, 43); // this side writes on, the other sees it
                assertEquals(43, seen.getLong(8));
                writable.putLong(0, 44);
                assertEquals(44, staging.getLong(0));
                assertThrows(
                        OrbitKvException.class, () -> MemoryRegion.ofDescriptor(descriptors[0], BYTES, true), "sealed");
            } finally {
                UnixSocket.closeDescriptor(descriptors[0]);
                UnixSocket.closeDescriptor(descriptors[1]);
            }
            assertEquals(-1, server.receiveNow(buffer, BYTES, BYTES), "nothing is there yet");
            assertTrue(client.send(buffer, 0, 8));
            assertEquals(8, server.receive(buffer, BYTES, BYTES));
            assertTrue(client.send(buffer, 0, 8));
            assertEquals(8, server.receiveNow(buffer, BYTES, BYTES));
            client.shutdown();
            assertEquals(0, server.receiveNow(buffer, BYTES, BYTES), "the connection is over");
        }
    }

    @Test
    void onlyItsUserMayConnect() throws Exception {
        Path path = folder.resolve("s");
        try (UnixSocket listening = UnixSocket.listen(path.toString(), 1)) {
            assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
        }
        assertNull(UnixSocket.connect(path.toString()), "nobody listens any more");
        assertNull(UnixSocket.connect(folder.resolve("none").toString()));
        assertThrows(OrbitKvException.class, () -> UnixSocket.listen(path.toString(), 1), "it is there already");
        assertThrows(OrbitKvException.class, () -> UnixSocket.listen("/" + "x".repeat(200), 1));
    }

    @Test
    void everyWaitEnds() throws Exception {
        String path = folder.resolve("s").toString();
        try (UnixSocket listening = UnixSocket.listen(path, 4);
                UnixSocket client = UnixSocket.connect(path);
                UnixSocket server = listening.accept();
                MemoryRegion buffer = MemoryRegion.anonymous(4 << 20, PageKind.SMALL, MemoryPurpose.TOOL)) {
            server.timeouts(20, 20);
            assertEquals(-1, server.receive(buffer, 0, 8), "the peer says nothing");
            assertFalse(server.send(buffer, 0, 4 << 20), "the peer reads nothing");
            CompletableFuture<Integer> waiting = CompletableFuture.supplyAsync(() -> {
                int got;
                do {
                    got = client.receive(buffer, 0, 1 << 20);
                } while (got > 0);
                return got;
            });
            client.shutdown();
            assertEquals(0, waiting.get(30, TimeUnit.SECONDS));
            assertFalse(client.send(buffer, 0, 8), "the connection is over");
            CompletableFuture<UnixSocket> accepting = CompletableFuture.supplyAsync(listening::accept);
            listening.shutdown();
            assertNull(accepting.get(30, TimeUnit.SECONDS));
        }
    }
}
