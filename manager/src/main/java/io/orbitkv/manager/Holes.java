package io.orbitkv.manager;

import io.orbitkv.store.SaveResult.DropReason;
import java.util.Arrays;
import org.agrona.DirectBuffer;

/**
 * Where saves of a session broke off lately: the last key of each save of which blocks were dropped, and why.
 *
 * <p>A client has several saves of one prompt on their way. What goes on behind one that broke off could never be found: it
 * would take host memory and drive for nothing. So few are kept because a client sends few ahead. One thread.
 */
final class Holes {
    static final int MAX = 16;

    private final byte[] keys = new byte[MAX * Wire.KEY_BYTES];
    private final DropReason[] reasons = new DropReason[MAX];
    private int next;

    Holes() {
        Arrays.fill(reasons, DropReason.NONE);
    }

    /** Notes that a save broke off; {@code offset} is that of its last key. */
    void add(DirectBuffer from, int offset, DropReason reason) {
        from.getBytes(offset, keys, next * Wire.KEY_BYTES, Wire.KEY_BYTES);
        reasons[next] = reason;
        next = (next + 1) % MAX;
    }

    /** Why the save that ends with this key broke off; NONE where none did, or it is long ago. */
    DropReason behind(byte[] key) {
        for (int i = 0; i < MAX; i++) {
            int from = i * Wire.KEY_BYTES;
            if (reasons[i] != DropReason.NONE
                    && Arrays.equals(keys, from, from + Wire.KEY_BYTES, key, 0, Wire.KEY_BYTES)) {
                return reasons[i];
            }
        }
        return DropReason.NONE;
    }
}
