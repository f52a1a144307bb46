package io.orbitkv.index;

import io.orbitkv.nativeio.StorageFiles;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * What of the catalog the log can't tell, kept a second time in a plain file beside it: what the store is, its namespaces
 * with their epochs, and the counters. From it and the log a lost catalog is made again, and what was cleared stays so.
 *
 * <pre>
 * SPARE: 0 magic "OKVSPAR1" | 8 version u32 | 12 rows u32 | 16 bytes of the rows u64
 *        | rows, each: key bytes u16, value bytes u32, key, value as in the catalog | CRC32C of all before u32
 * </pre>
 *
 * <p>It is replaced, durably, before each commit that changes a namespace or the cap, or begins an epoch; so it is never behind such a
 * commit, and one whose epoch is older than the lock page's was written by a program that does not know it.
 */
final class CatalogSpare {
    static final String FILE_NAME = "SPARE";

    private static final byte[] MAGIC = "OKVSPAR1".getBytes(StandardCharsets.US_ASCII);
    private static final int VERSION = 1;
    private static final int HEADER_BYTES = 24;
    private static final int ROW_BYTES = 6;

    /** A small store may always have one page of them. */
    private static final long BYTES_MIN = 4096;

    /** A quarter of what a snapshot may take. */
    private static final int CAP_SHARE = 256;

    private CatalogSpare() {}

    static String file(String folder) {
        return folder + "/" + FILE_NAME;
    }

    /** Most bytes that it may have; a store with more namespaces than that has none. */
    static long bytesMax(CatalogIdentity identity) {
        return Math.max(BYTES_MIN, identity.capBytes() / identity.folders() / CAP_SHARE);
    }

    /** The file's bytes. */
    static byte[] encode(CatalogIdentity identity, Iterable<NamespaceRow> namespaces, long[] counters) {
        CatalogCodec codec = new CatalogCodec();
        List<byte[]> rows = new ArrayList<>();
        add(rows, codec.identity(identity));
        for (NamespaceRow row : namespaces) {
            add(rows, codec.namespace(row));
        }
        for (CatalogCounter counter : CatalogCounter.values()) {
            add(rows, codec.counter(counter, counters[counter.ordinal()]));
        }
        int bytes = rows.stream().mapToInt(row -> row.length).sum();
        ByteBuffer file =
                ByteBuffer.allocate(HEADER_BYTES + bytes + Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        file.put(MAGIC).putInt(VERSION).putInt(rows.size()).putLong(bytes);
        rows.forEach(file::put);
        file.putInt(checksum(file.array(), file.position()));
        return file.array();
    }

    private static void add(List<byte[]> rows, CatalogCodec row) {
        byte[] key = row.key();
        byte[] value = row.value();
        rows.add(ByteBuffer.allocate(ROW_BYTES + key.length + value.length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putShort((short) key.length)
                .putInt(value.length)
                .put(key)
                .put(value)
                .array());
    }

    /**
     * Reads the file of a folder.
     *
     * @return identity, namespaces and counters; no segments, nothing in quarantine
     * @throws io.orbitkv.nativeio.OrbitKvException with code CATALOG where it is missing or damaged
     */
    static CatalogContents read(String folder) {
        String path = file(folder);
        if (!StorageFiles.exists(path)) {
            throw Catalog.damaged(path, "it is missing");
        }
        byte[] bytes = StorageFiles.readAll(path);
        ByteBuffer file = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        int end = bytes.length - Integer.BYTES;
        if (end < HEADER_BYTES
                || !Arrays.equals(Arrays.copyOf(bytes, MAGIC.length), MAGIC)
                || file.getInt(end) != checksum(bytes, end)) {
            throw Catalog.damaged(path, "it does not match its checksum");
        }
        if (file.getInt(8) != VERSION || file.getLong(16) != end - HEADER_BYTES) {
            throw Catalog.damaged(path, "it has version " + file.getInt(8) + ", which this program does not know");
        }
        CatalogCodec.Reader reader = new CatalogCodec.Reader(path);
        file.position(HEADER_BYTES);
        for (int row = 0; row < file.getInt(12); row++) {
            byte[] key = new byte[file.getShort()];
            byte[] value = new byte[file.getInt()];
            file.get(key).get(value);
            reader.onRow(key, value);
        }
        return reader.contents(0);
    }

    private static int checksum(byte[] bytes, int length) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, 0, length);
        return (int) crc.getValue();
    }
}
