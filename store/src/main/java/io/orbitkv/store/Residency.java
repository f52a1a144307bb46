package io.orbitkv.store;

import io.orbitkv.index.BlockWatch;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.recovery.FillState;
import io.orbitkv.recovery.IndexFill;
import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.NvmeCounters;

/**
 * Tells a listener which blocks the store holds, by the names that clients know. While nobody listens the index tells
 * nothing, and sweeps are as rare as they were.
 */
final class Residency implements BlockWatch {
    private final Object writerLock;
    private final PrefixIndex index;
    private final Drives nvme;
    private final IndexFill fill;
    private final Families families;

    /** Written under the writer lock. */
    private volatile BlockEvents listener;

    // What was seen last: when listening began, and then by the one thread that looks.
    private boolean filling;
    private long outages;
    private int drivesOut;

    Residency(Object writerLock, PrefixIndex index, Drives nvme, IndexFill fill, Families families) {
        this.writerLock = writerLock;
        this.index = index;
        this.nvme = nvme;
        this.fill = fill;
        this.families = families;
    }

    /** Has somebody told from now on, or, with null, nobody. */
    void listen(BlockEvents to) {
        synchronized (writerLock) {
            hasChanged(); // before now is not this listener's
            listener = to;
            index.watch(to == null ? null : this);
        }
    }

    /** Whether somebody listens. Any thread. */
    boolean isOn() {
        return listener != null;
    }

    /** Looks for what makes many blocks come or go at once, while somebody listens. One thread. */
    void look() {
        if (listener == null || !hasChanged()) {
            return;
        }
        synchronized (writerLock) {
            if (listener != null) {
                listener.begunAnew();
            }
        }
    }

    /** Whether the index has become whole, or a drive has gone or come, since this was asked last. */
    private boolean hasChanged() {
        boolean stillFilling = fill.state() == FillState.FILLING;
        long outagesNow = nvme.counted(NvmeCounters::outages);
        int outNow = nvme.countOut();
        boolean changed = stillFilling != filling || outagesNow != outages || outNow != drivesOut;
        filling = stillFilling;
        outages = outagesNow;
        drivesOut = outNow;
        return changed;
    }

    /** As {@link KvStore#visitBlocks}. */
    long visit(long cursor, int runsMax, BlockEvents.Visitor visitor) {
        synchronized (writerLock) {
            return index.walk(cursor, runsMax, this::serves, (namespace, key0, key1) -> {
                Families.Name name = families.nameOf(namespace);
                if (name != null) {
                    visitor.block(name.familyId(), name.shard(), key0, key1);
                }
            });
        }
    }

    /** All blocks of some shards were forgotten, which have new numbers by now. Under the writer lock. */
    void cleared(byte[] familyId) {
        if (listener != null) {
            listener.cleared(familyId);
        }
    }

    @Override
    public boolean serves(long nvmeExtent) {
        return nvme.serves(nvmeExtent);
    }

    @Override
    public void stored(int namespace, long key0, long key1, long key2, long key3) {
        Families.Name name = families.nameOf(namespace);
        if (name != null) {
            listener.stored(name.familyId(), name.shard(), key0, key1, key2, key3);
        }
    }

    @Override
    public void removed(int namespace, long key0, long key1) {
        Families.Name name = families.nameOf(namespace);
        if (name != null) {
            listener.removed(name.familyId(), name.shard(), key0, key1);
        }
    }
}
