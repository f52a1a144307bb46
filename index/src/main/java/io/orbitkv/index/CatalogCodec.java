package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * Rows of the catalog as bytes. A key is one byte that names the table, then numbers in big-endian order; a value is
 * little-endian and ends with the CRC32C of key and value.
 *
 * <pre>
 * table          key                                            value
 * M identity     -                                              format u32, store id 16, segment bytes u64, segments u32, cap u64, created u64 (ms);
 *                                                               where the format is 2 also folders u32, folder u32
 * N namespaces   id64 u64                                       id 32, epoch u32, definition bytes u32, definition
 * S segments     segment u32                                    use-sequence u64, state u32, blocks u32, payload pages u32, overhead pages u32
 * Q quarantine   segment u32, use-sequence u64, page u32        first 8 bytes of the key u64, found u64 (ms)
 * C counters     number u8                                      u64; number 255 holds the transaction that wrote last
 * </pre>
 */
final class CatalogCodec {
    static final int FORMAT_VERSION = 1;

    /** A store of several folders, which programs that know one only must not open. */
    static final int FORMAT_VERSION_FOLDERS = 2;

    static final int KEY_BYTES_MAX = 17;
    static final int VALUE_BYTES_MAX = NamespaceRow.DEFINITION_BYTES_MAX + 64;

    private static final byte IDENTITY = 'M';
    private static final byte NAMESPACE = 'N';
    private static final byte SEGMENT = 'S';
    private static final byte QUARANTINE = 'Q';
    private static final byte COUNTER = 'C';
    private static final int TRANSACTION_NUMBER = 255;
    private static final CatalogCounter[] COUNTERS = CatalogCounter.values();
    private static final SegmentRow.State[] STATES = SegmentRow.State.values();

    private final ByteBuffer key = ByteBuffer.allocate(KEY_BYTES_MAX).order(ByteOrder.BIG_ENDIAN);
    private final ByteBuffer value = ByteBuffer.allocate(VALUE_BYTES_MAX).order(ByteOrder.LITTLE_ENDIAN);
    private final CRC32C crc = new CRC32C();

    /** Of the row that was encoded last. */
    byte[] key() {
        return Arrays.copyOf(key.array(), key.position());
    }

    /** Of the row that was encoded last; empty when only its key was. */
    byte[] value() {
        return Arrays.copyOf(value.array(), value.position());
    }

    CatalogCodec identity(CatalogIdentity identity) {
        start(IDENTITY);
        value.putInt(identity.formatVersion()).order(ByteOrder.BIG_ENDIAN);
        value.putLong(identity.storeIdHigh()).putLong(identity.storeIdLow()).order(ByteOrder.LITTLE_ENDIAN);
        value.putLong(identity.segmentBytes()).putInt(identity.segments());
        value.putLong(identity.capBytes()).putLong(identity.createdMillis());
        if (identity.formatVersion() == FORMAT_VERSION_FOLDERS) {
            value.putInt(identity.folders()).putInt(identity.folder());
        }
        return seal();
    }

    CatalogCodec namespaceKey(long id64) {
        start(NAMESPACE);
        key.putLong(id64);
        return this;
    }

    CatalogCodec namespace(NamespaceRow row) {
        namespaceKey(row.id64());
        value.put(row.id()).putInt(row.epoch()).putInt(row.definition().length).put(row.definition());
        return seal();
    }

    CatalogCodec segment(SegmentRow row) {
        start(SEGMENT);
        key.putInt(row.segment());
        value.putLong(row.useSequence()).putInt(row.state().ordinal()).putInt(row.blocks());
        value.putInt(row.payloadPages()).putInt(row.overheadPages());
        return seal();
    }

    CatalogCodec quarantineKey(int segment, long useSequence, int page) {
        start(QUARANTINE);
        key.putInt(segment).putLong(useSequence).putInt(page);
        return this;
    }

    CatalogCodec quarantine(QuarantineRow row) {
        quarantineKey(row.segment(), row.useSequence(), row.page());
        value.putLong(row.key0()).putLong(row.atMillis());
        return seal();
    }

    CatalogCodec counter(CatalogCounter counter, long number) {
        start(COUNTER);
        key.put((byte) counter.ordinal());
        value.putLong(number);
        return seal();
    }

    CatalogCodec transaction(long transaction) {
        start(COUNTER);
        key.put((byte) TRANSACTION_NUMBER);
        value.putLong(transaction);
        return seal();
    }

    private void start(byte table) {
        key.clear();
        value.clear();
        key.put(table);
    }

    private CatalogCodec seal() {
        value.putInt(checksum(key.array(), key.position(), value.array(), value.position()));
        return this;
    }

    private int checksum(byte[] keyArray, int keyBytes, byte[] valueArray, int valueBytes) {
        crc.reset();
        crc.update(keyArray, 0, keyBytes);
        crc.update(valueArray, 0, valueBytes);
        return (int) crc.getValue();
    }

    /** Collects the rows of a walk. */
    static final class Reader implements CatalogFile.RowVisitor {
        private final String path;
        private final CatalogCodec codec = new CatalogCodec();
        private final List<NamespaceRow> namespaces = new ArrayList<>();
        private final List<SegmentRow> segments = new ArrayList<>();
        private final List<QuarantineRow> quarantine = new ArrayList<>();
        private final Long[] counters = new Long[COUNTERS.length];
        private CatalogIdentity identity;
        private long transaction = -1;

        Reader(String path) {
            this.path = path;
            Arrays.fill(counters, 0L);
        }

        /** The transaction that wrote the rows, as they say themselves; -1 when there are none. */
        long transaction() {
            return transaction;
        }

        CatalogContents contents(long mapBytes) {
            if (identity == null) {
                throw Catalog.damaged(path, "it holds no store");
            }
            return new CatalogContents(
                    identity, transaction, mapBytes, List.of(counters), namespaces, segments, quarantine);
        }

        @Override
        public void onRow(byte[] keyArray, byte[] valueArray) {
            int bytes = valueArray.length - Integer.BYTES;
            ByteBuffer key = ByteBuffer.wrap(keyArray).order(ByteOrder.BIG_ENDIAN);
            ByteBuffer value = ByteBuffer.wrap(valueArray).order(ByteOrder.LITTLE_ENDIAN);
            if (bytes < 0
                    || keyArray.length == 0
                    || codec.checksum(keyArray, keyArray.length, valueArray, bytes) != value.getInt(bytes)) {
                throw Catalog.damaged(path, "a row does not match its checksum");
            }
            value.limit(bytes);
            try {
                decode(key.get(), key, value);
            } catch (java.nio.BufferUnderflowException | IndexOutOfBoundsException e) {
                throw new OrbitKvException(
                        ErrorCode.CATALOG, "a row of the catalog " + path + " is too short for its table", e);
            }
        }

        private void decode(byte table, ByteBuffer key, ByteBuffer value) {
            switch (table) {
                case IDENTITY:
                    decodeIdentity(value);
                    break;
                case NAMESPACE:
                    long id64 = key.getLong();
                    byte[] id = new byte[NamespaceRow.ID_BYTES];
                    value.get(id);
                    int epoch = value.getInt();
                    byte[] definition = new byte[Math.min(value.getInt(), value.remaining())];
                    value.get(definition);
                    namespaces.add(new NamespaceRow(id64, id, epoch, definition));
                    break;
                case SEGMENT:
                    segments.add(new SegmentRow(
                            key.getInt(),
                            value.getLong(),
                            STATES[value.getInt()],
                            value.getInt(),
                            value.getInt(),
                            value.getInt()));
                    break;
                case QUARANTINE:
                    quarantine.add(new QuarantineRow(
                            key.getInt(), key.getLong(), key.getInt(), value.getLong(), value.getLong()));
                    break;
                case COUNTER:
                    int number = key.get() & 0xFF;
                    if (number == TRANSACTION_NUMBER) {
                        transaction = value.getLong();
                    } else if (number < counters.length) {
                        counters[number] = value.getLong();
                    }
                    break;
                default:
                    throw Catalog.damaged(path, "it has a table " + table + ", which this version does not know");
            }
        }

        private void decodeIdentity(ByteBuffer value) {
            int version = value.getInt();
            if (version != FORMAT_VERSION && version != FORMAT_VERSION_FOLDERS) {
                throw new OrbitKvException(
                        ErrorCode.OTHER_VERSION,
                        "the store of catalog " + path + " has format version " + version + ", and this program knows "
                                + FORMAT_VERSION + " and " + FORMAT_VERSION_FOLDERS
                                + "; open it with the program that wrote it");
            }
            value.order(ByteOrder.BIG_ENDIAN);
            long high = value.getLong();
            long low = value.getLong();
            value.order(ByteOrder.LITTLE_ENDIAN);
            identity = new CatalogIdentity(
                    version, high, low, value.getLong(), value.getInt(), value.getLong(), value.getLong());
            if (version == FORMAT_VERSION_FOLDERS) {
                identity = spread(identity, value.getInt(), value.getInt());
            }
        }

        private CatalogIdentity spread(CatalogIdentity one, int folders, int folder) {
            if (folders < 2 || folder < 0 || folder >= folders || one.segments() % folders != 0) {
                throw Catalog.damaged(path, "it says that it is folder " + folder + " of " + folders);
            }
            return one.inFolder(folder, folders);
        }
    }
}
