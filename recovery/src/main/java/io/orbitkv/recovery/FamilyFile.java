package io.orbitkv.recovery;

import io.orbitkv.index.CatalogIdentity;
import io.orbitkv.index.Family;
import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32C;

/**
 * A family's blocks in one stream of bytes; docs/format.md draws it. Each part has a checksum of its own, and the end says
 * how many blocks came, so that a file that was cut off is found out.
 */
public final class FamilyFile {
    private static final byte[] MAGIC = "OKVEXPT1".getBytes(StandardCharsets.US_ASCII);
    private static final int VERSION = 1;
    private static final int HEADER_BYTES = 48;
    private static final int BLOCK = 0x314B4C42; // "BLK1", read little-endian
    private static final int END = 0x31444E45; // "END1"
    private static final int LISTING_BYTES = 88;
    private static final int KEY_BYTES = 32;
    private static final int END_BYTES = 24;
    private static final int FAMILY_BYTES_MAX = 1 << 20;

    private FamilyFile() {}

    /** One block, as the file has it. The arrays are reused from block to block. */
    public static final class Block {
        private int shard;
        private boolean hasParent;
        private int checksum;
        private final byte[] key = new byte[KEY_BYTES];
        private final byte[] parent = new byte[KEY_BYTES];
        private byte[] bytes = new byte[0];

        /** Its shard's number. */
        public int shard() {
            return shard;
        }

        /** Whether it has a parent; otherwise it is a prompt's first. */
        public boolean hasParent() {
            return hasParent;
        }

        /** Its key, 32 bytes. */
        public byte[] key() {
            return key;
        }

        /** The key before it, 32 bytes; zero without a parent. */
        public byte[] parent() {
            return parent;
        }

        /** Its bytes, as many as a block of the family has. */
        public byte[] bytes() {
            return bytes;
        }

        /** Whether the bytes are those that were saved under the key. */
        public boolean matches() {
            return new BlockChecksum()
                            .update(key, 0, KEY_BYTES)
                            .update(bytes, 0, bytes.length)
                            .value()
                    == checksum;
        }
    }

    /** Writes a file from its start to its end. */
    static final class Writer {
        private final OutputStream out;
        private final ByteBuffer listing =
                ByteBuffer.allocate(LISTING_BYTES + 4).order(ByteOrder.LITTLE_ENDIAN);
        private long blocks;
        private long bytes;

        Writer(OutputStream out, Family family, CatalogIdentity store, long epoch, long atMillis) throws IOException {
            this.out = out;
            byte[] encoded = family.encoded();
            ByteBuffer header = ByteBuffer.allocate(HEADER_BYTES + encoded.length + 4)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .put(MAGIC)
                    .putInt(VERSION)
                    .putInt(encoded.length)
                    .order(ByteOrder.BIG_ENDIAN)
                    .putLong(store.storeIdHigh())
                    .putLong(store.storeIdLow())
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putLong(epoch)
                    .putLong(atMillis)
                    .put(encoded);
            write(header);
        }

        private void write(ByteBuffer part) throws IOException {
            part.putInt(crc(part.array(), part.position()));
            out.write(part.array(), 0, part.position());
        }

        void block(int shard, BlockPlace place, byte[] key, byte[] parent, byte[] payload) throws IOException {
            listing.clear();
            listing.putInt(BLOCK)
                    .putInt(shard)
                    .putInt(place.storedBytes())
                    .putInt(place.logicalBytes())
                    .putInt(place.checksum())
                    .put((byte) place.codec())
                    .put((byte) (place.parent().isEmpty() ? 0 : 1))
                    .putShort((short) 0)
                    .put(key)
                    .put(parent);
            write(listing);
            out.write(payload);
            blocks++;
            bytes += payload.length;
        }

        void end() throws IOException {
            ByteBuffer end = ByteBuffer.allocate(END_BYTES + 4).order(ByteOrder.LITTLE_ENDIAN);
            write(end.putInt(END).putInt(0).putLong(blocks).putLong(bytes));
        }

        long blocks() {
            return blocks;
        }

        long bytes() {
            return bytes;
        }
    }

    /** Reads a file from its start to its end. Not thread-safe. */
    public static final class Reader {
        private final InputStream in;
        private final String name;
        private final Family family;
        private final Block block = new Block();
        private long blocks;
        private long bytes;

        /**
         * Reads the head of a file.
         *
         * @param in its bytes; stays the caller's
         * @param name for messages
         * @throws OrbitKvException {@link ErrorCode#BAD_INPUT_LINE} where it is none, or damaged; {@link
         *     ErrorCode#OTHER_VERSION}
         */
        public Reader(InputStream in, String name) {
            this.in = in;
            this.name = name;
            ByteBuffer head = read(HEADER_BYTES);
            for (byte b : MAGIC) {
                if (head.get() != b) {
                    throw bad("it does not begin with OKVEXPT1, so 'orbitkv export' did not write it");
                }
            }
            int version = head.getInt();
            int familyBytes = head.getInt();
            if (version != VERSION) {
                throw new OrbitKvException(
                        ErrorCode.OTHER_VERSION,
                        name + " has format version " + version + ", and this program knows " + VERSION
                                + "; import it with the program that wrote it");
            }
            if (familyBytes < 1 || familyBytes > FAMILY_BYTES_MAX) {
                throw bad("its head claims a family of " + familyBytes + " bytes");
            }
            ByteBuffer rest = read(familyBytes + 4);
            byte[] all = new byte[HEADER_BYTES + familyBytes];
            System.arraycopy(head.array(), 0, all, 0, HEADER_BYTES);
            System.arraycopy(rest.array(), 0, all, HEADER_BYTES, familyBytes);
            if (rest.getInt(familyBytes) != crc(all, all.length)) {
                throw bad("its head does not match its checksum");
            }
            family = Family.decode(java.util.Arrays.copyOf(rest.array(), familyBytes));
            block.bytes = new byte[family.blockBytes()];
        }

        /** The family that all its blocks belong to. */
        public Family family() {
            return family;
        }

        /**
         * Reads the next block.
         *
         * @return the block, the same object each time; null at the end
         * @throws OrbitKvException {@link ErrorCode#BAD_INPUT_LINE} where the file is damaged or was cut off
         */
        public Block next() {
            ByteBuffer mark = read(4);
            if (mark.getInt(0) == END) {
                ByteBuffer end = part(mark, END_BYTES);
                if (end.getLong(8) != blocks || end.getLong(16) != bytes) {
                    throw bad("it says that it has " + end.getLong(8) + " blocks, and has " + blocks);
                }
                return null;
            }
            if (mark.getInt(0) != BLOCK) {
                throw bad("neither a block nor the end comes behind block " + blocks);
            }
            ByteBuffer listing = part(mark, LISTING_BYTES);
            block.shard = listing.getInt(4);
            block.checksum = listing.getInt(16);
            block.hasParent = listing.get(21) == 1;
            boolean sound = block.shard >= 0
                    && block.shard < family.shards()
                    && listing.getInt(8) == family.blockBytes()
                    && listing.getInt(12) == family.blockBytes()
                    && listing.get(20) == 0;
            if (!sound) {
                throw bad("block " + blocks + " has another layout than its family: " + listing.getInt(8)
                        + " bytes, codec " + listing.get(20) + ", shard " + block.shard);
            }
            listing.position(24);
            listing.get(block.key).get(block.parent);
            fill(block.bytes, block.bytes.length);
            blocks++;
            bytes += block.bytes.length;
            return block;
        }

        /** The rest of a part whose mark was read, with its checksum checked. */
        private ByteBuffer part(ByteBuffer mark, int length) {
            ByteBuffer part = ByteBuffer.allocate(length + 4).order(ByteOrder.LITTLE_ENDIAN);
            part.put(mark.array(), 0, 4);
            ByteBuffer rest = read(length);
            part.put(rest.array(), 0, length);
            if (part.getInt(length) != crc(part.array(), length)) {
                throw bad("what comes behind block " + blocks + " does not match its checksum");
            }
            return part;
        }

        private ByteBuffer read(int length) {
            byte[] bytesRead = new byte[length];
            fill(bytesRead, length);
            return ByteBuffer.wrap(bytesRead).order(ByteOrder.LITTLE_ENDIAN);
        }

        private void fill(byte[] into, int length) {
            try {
                if (in.readNBytes(into, 0, length) != length) {
                    throw new EOFException();
                }
            } catch (EOFException e) {
                throw bad("it ends behind block " + blocks + ": it was cut off");
            } catch (IOException e) {
                throw new OrbitKvException(ErrorCode.FOLDER_UNUSABLE, "cannot read " + name + ": " + e, e);
            }
        }

        private OrbitKvException bad(String why) {
            return new OrbitKvException(
                    ErrorCode.BAD_INPUT_LINE, name + " can't be imported: " + why + "; export the family again");
        }
    }

    private static int crc(byte[] bytes, int length) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, 0, length);
        return (int) crc.getValue();
    }
}
