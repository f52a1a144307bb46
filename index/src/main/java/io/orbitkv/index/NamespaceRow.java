package io.orbitkv.index;

import java.util.Arrays;

/**
 * A namespace as the catalog keeps it.
 *
 * @param id64 the first 8 bytes of its id, as a little-endian number: its name in the log
 * @param id all 32 bytes of its id
 * @param epoch raised by each scoped clear; blocks of an older epoch are dead
 * @param definition what it stands for: the canonical bytes of family and shard
 */
public record NamespaceRow(long id64, byte[] id, int epoch, byte[] definition) {
    /** Most bytes of a definition: what is longer is no sane family. */
    public static final int DEFINITION_BYTES_MAX = 64 << 10;

    /** Bytes of a full id. */
    public static final int ID_BYTES = 32;

    @Override
    public boolean equals(Object other) {
        return other instanceof NamespaceRow
                && ((NamespaceRow) other).id64 == id64
                && ((NamespaceRow) other).epoch == epoch
                && Arrays.equals(((NamespaceRow) other).id, id)
                && Arrays.equals(((NamespaceRow) other).definition, definition);
    }

    @Override
    public int hashCode() {
        return Long.hashCode(id64) * 31 + epoch;
    }

    @Override
    public String toString() {
        return String.format("namespace %016x epoch %d", id64, epoch);
    }
}
