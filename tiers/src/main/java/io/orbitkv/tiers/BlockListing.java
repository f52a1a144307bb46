package io.orbitkv.tiers;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import org.agrona.DirectBuffer;

/**
 * One block as headers, footers and host segments list it: a view of 104 bytes of a region.
 *
 * <pre>
 * offset bytes
 *    0    32   key
 *   32    32   parent key, zero for a first block
 *   64     8   namespace id64
 *   72     8   birth: the block's position
 *   80     4   namespace epoch
 *   84     4   stored bytes, at least 1
 *   88     4   logical bytes
 *   92     4   checksum: CRC32C over key, then stored bytes
 *   96     2   first page within the segment, unsigned
 *   98     1   codec: 0 raw
 *   99     1   flags: bit 0 has a parent
 *  100     4   zero
 * </pre>
 *
 * <p>Owns nothing and allocates nothing; not thread-safe.
 */
public final class BlockListing {
    /** Bytes of a listing. */
    public static final int BYTES = 104;

    /** Bytes of a key. */
    public static final int KEY_BYTES = 32;

    /** The codec of blocks that are stored as they came. */
    public static final int CODEC_RAW = 0;

    /** The flag of a block that has a parent. */
    public static final int FLAG_HAS_PARENT = 1;

    static final int PARENT = 32;
    static final int NAMESPACE_ID64 = 64;
    private static final int BIRTH = 72;
    static final int NAMESPACE_EPOCH = 80;
    private static final int STORED_BYTES = 84;
    static final int LOGICAL_BYTES = 88;
    private static final int CHECKSUM = 92;
    static final int FIRST_PAGE = 96;
    private static final int CODEC = 98;
    private static final int FLAGS = 99;
    private static final int PAGE_MASK = Extent.PAGES_MAX - 1;

    /** Bits that may be set in the eight bytes from the first page on: any page, codec raw, one flag, nothing else. */
    private static final long SOUND_BEHIND_CHECKSUM = PAGE_MASK | (long) FLAG_HAS_PARENT << 24;

    private MemoryRegion region;
    private long offset;

    /** Looks at nothing yet. */
    public BlockListing() {}

    /** Looks at the listing at an offset of a region from now on. */
    public BlockListing wrap(MemoryRegion newRegion, long newOffset) {
        this.region = newRegion;
        this.offset = newOffset;
        return this;
    }

    /** The region that is looked at. */
    public MemoryRegion region() {
        return region;
    }

    /** Where the listing, and so its key, starts in the region. */
    public long offset() {
        return offset;
    }

    /** Where the parent's key starts in the region. */
    public long parentOffset() {
        return offset + PARENT;
    }

    /** Sets all to zero. */
    public BlockListing clear() {
        region.fill(offset, BYTES, (byte) 0);
        return this;
    }

    /** Copies another listing over this one. */
    public BlockListing set(BlockListing other) {
        region.copyFrom(offset, other.region, other.offset, BYTES);
        return this;
    }

    /** Sets the key. */
    public BlockListing key(MemoryRegion source, long sourceOffset) {
        region.copyFrom(offset, source, sourceOffset, KEY_BYTES);
        return this;
    }

    /** Sets the key. */
    public BlockListing key(byte[] key, int keyOffset) {
        region.copyFrom(offset, key, keyOffset, KEY_BYTES);
        return this;
    }

    /** Sets the key from a buffer, heap or native. */
    public BlockListing key(DirectBuffer source, int sourceOffset) {
        copyKey(source, sourceOffset, offset);
        return this;
    }

    /** Sets the parent's key and the flag that there is one, from a buffer, heap or native. */
    public BlockListing parent(DirectBuffer source, int sourceOffset) {
        copyKey(source, sourceOffset, parentOffset());
        return flags(flags() | FLAG_HAS_PARENT);
    }

    private void copyKey(DirectBuffer source, int sourceOffset, long target) {
        for (int i = 0; i < KEY_BYTES; i += Long.BYTES) {
            region.putLong(target + i, source.getLong(sourceOffset + i));
        }
    }

    /** Whether the key is the one in a buffer, all 32 bytes. */
    public boolean sameKey(DirectBuffer other, int otherOffset) {
        for (int i = 0; i < KEY_BYTES; i += Long.BYTES) {
            if (region.getLong(offset + i) != other.getLong(otherOffset + i)) {
                return false;
            }
        }
        return true;
    }

    /** Copies the key out. */
    public void keyTo(byte[] target, int targetOffset) {
        region.copyTo(offset, target, targetOffset, KEY_BYTES);
    }

    /** Sets the parent's key, and the flag that there is one. */
    public BlockListing parent(MemoryRegion source, long sourceOffset) {
        region.copyFrom(offset + PARENT, source, sourceOffset, KEY_BYTES);
        return flags(flags() | FLAG_HAS_PARENT);
    }

    /** Sets the parent's key, and the flag that there is one. */
    public BlockListing parent(byte[] key, int keyOffset) {
        region.copyFrom(offset + PARENT, key, keyOffset, KEY_BYTES);
        return flags(flags() | FLAG_HAS_PARENT);
    }

    /** Whether the block has a parent. */
    public boolean hasParent() {
        return (flags() & FLAG_HAS_PARENT) != 0;
    }

    /** The first eight bytes of the namespace's id. */
    public long namespaceId64() {
        return region.getLong(offset + NAMESPACE_ID64);
    }

    /** Sets the first eight bytes of the namespace's id. */
    public BlockListing namespaceId64(long value) {
        region.putLong(offset + NAMESPACE_ID64, value);
        return this;
    }

    /** The block's position. */
    public long birth() {
        return region.getLong(offset + BIRTH);
    }

    /** Sets the block's position. */
    public BlockListing birth(long value) {
        region.putLong(offset + BIRTH, value);
        return this;
    }

    /** The namespace's epoch when the block was accepted; a block of an older epoch was cleared. */
    public int namespaceEpoch() {
        return region.getInt(offset + NAMESPACE_EPOCH);
    }

    /** Sets the namespace's epoch. */
    public BlockListing namespaceEpoch(int value) {
        region.putInt(offset + NAMESPACE_EPOCH, value);
        return this;
    }

    /** Bytes of the payload as stored. */
    public int storedBytes() {
        return region.getInt(offset + STORED_BYTES);
    }

    /** Sets the bytes of the payload as stored. */
    public BlockListing storedBytes(int value) {
        region.putInt(offset + STORED_BYTES, value);
        return this;
    }

    /** Pages of the payload. */
    public int pages() {
        return Extent.pages(storedBytes());
    }

    /** Bytes of the payload once decoded. */
    public int logicalBytes() {
        return region.getInt(offset + LOGICAL_BYTES);
    }

    /** Sets the bytes of the payload once decoded. */
    public BlockListing logicalBytes(int value) {
        region.putInt(offset + LOGICAL_BYTES, value);
        return this;
    }

    /** CRC32C over the key, then the stored bytes. */
    public int checksum() {
        return region.getInt(offset + CHECKSUM);
    }

    /** Sets the checksum. */
    public BlockListing checksum(int value) {
        region.putInt(offset + CHECKSUM, value);
        return this;
    }

    /** The payload's first page within its segment. */
    public int firstPage() {
        return region.getShort(offset + FIRST_PAGE) & PAGE_MASK;
    }

    /** Sets the payload's first page within its segment. */
    public BlockListing firstPage(int value) {
        assert value >= 0 && value < Extent.PAGES_MAX : value;
        region.putShort(offset + FIRST_PAGE, (short) value);
        return this;
    }

    /** How the payload is stored. */
    public int codec() {
        return region.getByte(offset + CODEC) & 0xFF;
    }

    /** Sets how the payload is stored. */
    public BlockListing codec(int value) {
        region.putByte(offset + CODEC, (byte) value);
        return this;
    }

    /** The flags. */
    public int flags() {
        return region.getByte(offset + FLAGS) & 0xFF;
    }

    /** Sets the flags. */
    public BlockListing flags(int value) {
        region.putByte(offset + FLAGS, (byte) value);
        return this;
    }

    /** Whether every field has a value that format 1 knows; says nothing of where the block lies. */
    public boolean isSound() {
        return storedBytes() >= 1
                && logicalBytes() >= 0
                && (region.getLong(offset + FIRST_PAGE) & ~SOUND_BEHIND_CHECKSUM) == 0;
    }
}
