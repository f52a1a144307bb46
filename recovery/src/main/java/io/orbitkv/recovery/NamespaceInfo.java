package io.orbitkv.recovery;

import io.orbitkv.index.Family;
import io.orbitkv.index.NamespaceRow;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * A namespace of a store: one shard of a family.
 *
 * @param id64 the first 8 bytes of its id, by which the log names it
 * @param family the family; null where its definition can't be read
 * @param shard the shard's number
 * @param epoch raised by each clear
 * @param blocks blocks that a query finds
 * @param bytes their stored bytes
 */
public record NamespaceInfo(long id64, Family family, int shard, int epoch, long blocks, long bytes) {
    static NamespaceInfo of(NamespaceRow row, long[] sums) {
        return new NamespaceInfo(row.id64(), family(row), shard(row), row.epoch(), sums[0], sums[1]);
    }

    /** The family of a namespace, or null where its definition is none that this program knows. */
    static Family family(NamespaceRow row) {
        byte[] definition = row.definition();
        if (definition.length < Integer.BYTES) {
            return null;
        }
        try {
            return Family.decode(Arrays.copyOfRange(definition, Integer.BYTES, definition.length));
        } catch (OrbitKvException e) {
            return null;
        }
    }

    /** The number of its shard, -1 where there is no definition. */
    static int shard(NamespaceRow row) {
        return row.definition().length < Integer.BYTES
                ? -1
                : ByteBuffer.wrap(row.definition())
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .getInt();
    }
}
