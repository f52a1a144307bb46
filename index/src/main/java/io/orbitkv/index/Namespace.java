package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * One shard of a family: what a block's key is unique in.
 *
 * <pre>
 * id = SHA-256( "OKVNSP01", 8 bytes | id of the family, 32 bytes | shard number, 4 bytes little-endian )
 * </pre>
 *
 * <p>The log names a namespace by {@link #id64}; the catalog refuses two ids that share it. Immutable.
 */
public final class Namespace {
    private static final byte[] MAGIC = "OKVNSP01".getBytes(StandardCharsets.US_ASCII);

    private final Family family;
    private final int shard;
    private final byte[] id;

    /**
     * Names a shard.
     *
     * @param family the family
     * @param shard its number, 0 to {@link Family#shards()} - 1
     */
    public Namespace(Family family, int shard) {
        if (shard < 0 || shard >= family.shards()) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    family + " has shards 0 to " + (family.shards() - 1) + ", asked for shard " + shard);
        }
        this.family = family;
        this.shard = shard;
        ByteBuffer input = ByteBuffer.allocate(MAGIC.length + Family.ID_BYTES + Integer.BYTES)
                .order(ByteOrder.LITTLE_ENDIAN)
                .put(MAGIC)
                .put(family.id())
                .putInt(shard);
        this.id = KeyChain.sha256().digest(input.array());
    }

    /** The family. */
    public Family family() {
        return family;
    }

    /** The shard's number in its family. */
    public int shard() {
        return shard;
    }

    /** What it stands for, for the catalog: the shard as u32 little-endian, then {@link Family#encoded()}. */
    public byte[] encoded() {
        byte[] familyBytes = family.encoded();
        return ByteBuffer.allocate(Integer.BYTES + familyBytes.length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(shard)
                .put(familyBytes)
                .array();
    }

    /** The full id, 32 bytes; a copy. */
    public byte[] id() {
        return id.clone();
    }

    /** The first 8 bytes of the id, as a little-endian number. */
    public long id64() {
        return ByteBuffer.wrap(id).order(ByteOrder.LITTLE_ENDIAN).getLong();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Namespace namespace && shard == namespace.shard && family.equals(namespace.family);
    }

    @Override
    public int hashCode() {
        return Long.hashCode(id64());
    }

    @Override
    public String toString() {
        return "shard " + shard + " of " + family;
    }
}
