package io.orbitkv.store;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/** What time, hands and hardware do to the files of a store that is closed. */
final class Damage {
    static final int PAGE_BYTES = 4096;
    private static final int CRC = PAGE_BYTES - Integer.BYTES;

    private Damage() {}

    /** Flips the given bits of one byte. */
    static void flip(Path file, long at, int bits) {
        byte[] before = read(file, at, 1);
        write(file, at, new byte[] {(byte) (before[0] ^ bits)});
    }

    static byte[] read(Path file, long at, int bytes) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            ByteBuffer buffer = ByteBuffer.allocate(bytes);
            while (buffer.hasRemaining() && channel.read(buffer, at + buffer.position()) >= 0) {}
            return buffer.array();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void write(Path file, long at, byte[] bytes) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE, StandardOpenOption.CREATE)) {
            channel.write(ByteBuffer.wrap(bytes), at);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void truncate(Path file, long bytes) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.truncate(bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static long bytes(Path file) {
        try {
            return Files.size(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Sets a u32 of a page whose last four bytes are the CRC32C of the rest, and makes that right again. */
    static void patchPage(Path file, long pageAt, int offset, int value) {
        ByteBuffer page = ByteBuffer.wrap(read(file, pageAt, PAGE_BYTES)).order(ByteOrder.LITTLE_ENDIAN);
        page.putInt(offset, value);
        CRC32C crc = new CRC32C();
        crc.update(page.array(), 0, CRC);
        page.putInt(CRC, (int) crc.getValue());
        write(file, pageAt, page.array());
    }

    /** Name, length and SHA-256 of every file below a folder but the lock: its page names who looked last. */
    static Map<String, String> contents(Path folder) {
        Map<String, String> contents = new TreeMap<>();
        try (Stream<Path> walk = Files.walk(folder)) {
            for (Path path : walk.toList()) {
                String name = folder.relativize(path).toString();
                if (!name.equals("LOCK")) {
                    contents.put(name, Files.isRegularFile(path) ? digest(path) : "folder");
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return contents;
    }

    private static String digest(Path file) throws IOException {
        try {
            byte[] bytes = Files.readAllBytes(file);
            return bytes.length + " bytes "
                    + HexFormat.of()
                            .formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }

    /** Copies a folder with all in it. */
    static void copy(Path from, Path to) {
        try (Stream<Path> walk = Files.walk(from)) {
            for (Path path : walk.toList()) {
                Path target = to.resolve(from.relativize(path).toString());
                if (Files.isDirectory(path)) {
                    Files.createDirectories(target);
                } else {
                    Files.copy(path, target);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
