package io.orbitkv.manager;

import io.orbitkv.store.ShardHandle;
import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.MutableDirectBuffer;

/** A save that was begun: its keys, and which of its blocks the client was asked for. Reused. One thread. */
final class PendingSave {
    private final MutableDirectBuffer keys = new ExpandableArrayBuffer(64 * Wire.KEY_BYTES);
    private final byte[] parent = new byte[Wire.KEY_BYTES];
    private boolean[] wanted = new boolean[64];
    private ShardHandle shard;
    private boolean hasParent;
    private int count;

    void begin(ShardHandle of, boolean withParent, byte[] parentKey, DirectBuffer from, int offset, int blocks) {
        shard = of;
        hasParent = withParent;
        System.arraycopy(parentKey, 0, parent, 0, parent.length);
        count = blocks;
        keys.putBytes(0, from, offset, blocks * Wire.KEY_BYTES);
        if (wanted.length < blocks) {
            wanted = new boolean[blocks];
        }
    }

    ShardHandle shard() {
        return shard;
    }

    DirectBuffer keys() {
        return keys;
    }

    /** The key before the first one; null where it is a prompt's first. */
    byte[] parent() {
        return hasParent ? parent : null;
    }

    int count() {
        return count;
    }

    boolean isWanted(int block) {
        return wanted[block];
    }

    void want(int block, boolean isWanted) {
        wanted[block] = isWanted;
    }
}
