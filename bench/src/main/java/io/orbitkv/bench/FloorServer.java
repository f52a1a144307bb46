package io.orbitkv.bench;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;

/**
 * Question: what is the least that a round trip between Python and Java costs, and a save for the core that does it?
 *
 * <p>The other side of {@code python -m orbitkv.bench}: 64 bytes come back as they are, by blocking reads and writes of the
 * JDK. Where they start with a number that is not 0, so many bytes are copied and checksummed first, as a save does it, and
 * the nanoseconds that this took stand in its place.
 */
public final class FloorServer {
    /** Bytes of a message, in both directions. */
    public static final int MESSAGE_BYTES = 64;

    private static final long BYTES_MAX = 1L << 30;

    /** As the store does it: the checksum reads what the copy has just put into the cache. */
    private static final int PIECE_BYTES = 128 << 10;

    /** So many destinations take turns, so that what is written to has left the caches. */
    private static final int PLACES = 4;

    private final BlockChecksum checksum = new BlockChecksum();
    private MemoryRegion from;
    private MemoryRegion to;
    private int place;
    private int sink;

    private FloorServer() {}

    /** Serves one connection, and ends with it. */
    public static void serve(Path socket) {
        FloorServer server = new FloorServer();
        try (ServerSocketChannel listening = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            listening.bind(UnixDomainSocketAddress.of(socket));
            try (SocketChannel peer = listening.accept()) {
                server.answer(peer);
            }
        } catch (IOException e) {
            throw new OrbitKvException(ErrorCode.SOCKET, "cannot serve on " + socket + ": " + e.getMessage(), e);
        } finally {
            server.close();
        }
    }

    private void answer(SocketChannel peer) throws IOException {
        ByteBuffer message = ByteBuffer.allocateDirect(MESSAGE_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        while (true) {
            message.clear();
            while (message.hasRemaining()) {
                if (peer.read(message) < 0) {
                    return;
                }
            }
            long bytes = message.getLong(0);
            if (bytes != 0) {
                message.putLong(0, copyAndChecksum(bytes));
            }
            message.flip();
            while (message.hasRemaining()) {
                peer.write(message);
            }
        }
    }

    private long copyAndChecksum(long bytes) {
        if (bytes < 0 || bytes > BYTES_MAX) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "copies 1 to " + BYTES_MAX + " bytes, was asked for " + bytes);
        }
        if (from == null || from.bytes() < bytes) {
            close();
            // Shared memory, as staging and pool are: both sides of a save have small pages on most machines.
            from = MemoryRegion.memfd("orbitkv-floor", bytes, PageKind.SMALL, MemoryPurpose.TOOL);
            to = MemoryRegion.memfd("orbitkv-floor", PLACES * bytes, PageKind.SMALL, MemoryPurpose.TOOL);
            from.fill(0, from.bytes(), (byte) 7);
            to.fill(0, to.bytes(), (byte) 9);
        }
        place = (place + 1) % PLACES;
        long at = place * bytes;
        long began = System.nanoTime();
        checksum.reset();
        for (long done = 0; done < bytes; done += PIECE_BYTES) {
            int piece = (int) Math.min(PIECE_BYTES, bytes - done);
            to.copyFrom(at + done, from, done, piece);
            checksum.update(to, at + done, piece);
        }
        sink ^= checksum.value();
        return System.nanoTime() - began;
    }

    private void close() {
        if (from != null) {
            from.close();
        }
        if (to != null) {
            to.close();
        }
    }

    /** Keeps the checksums from being optimised away. */
    int sink() {
        return sink;
    }
}
