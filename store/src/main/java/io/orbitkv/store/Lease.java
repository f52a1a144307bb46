package io.orbitkv.store;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.util.concurrent.atomic.AtomicInteger;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * A logical claim on the blocks that a query found, over all shards of its family.
 *
 * <p>It expires by itself; it holds no bytes and delays no reclaim, so a restore may still stop short. Leases are
 * pooled: after {@link #close()} the object belongs to somebody else. Restores under one lease may run on several
 * threads; close it once, when they are done.
 */
public final class Lease implements AutoCloseable {
    private static final int KEY_BYTES = 32;
    private static final int FREE = 0;
    private static final int HELD = 1;

    private final Leases owner;
    private final AtomicInteger state = new AtomicInteger(FREE);
    private final UnsafeBuffer keys = new UnsafeBuffer(0, 0);
    private MemoryRegion keyMemory;
    private FamilyHandle family;
    private int blocks;
    private int hostBlocks;
    private int nvmeBlocks;
    private long expiryNanos;

    Lease(Leases owner) {
        this.owner = owner;
    }

    void hold(FamilyHandle of, DirectBuffer from, int offset, int count, int host, int nvme, long expiry) {
        long needed = (long) count * KEY_BYTES;
        if (needed > 0 && (keyMemory == null || keyMemory.bytes() < needed)) {
            release();
            // Powers of two, so that a pooled lease is enlarged a few times in its life and then never again.
            keyMemory = MemoryRegion.anonymous(
                    Long.highestOneBit(Math.max(needed, MemoryRegion.PAGE_BYTES) * 2 - 1),
                    PageKind.SMALL,
                    MemoryPurpose.LEASE);
            keyMemory.wrap(keys, 0, (int) keyMemory.bytes());
        }
        if (needed > 0) {
            keys.putBytes(0, from, offset, (int) needed);
        }
        family = of;
        blocks = count;
        hostBlocks = host;
        nvmeBlocks = nvme;
        expiryNanos = expiry;
        state.set(HELD);
    }

    /** Blocks that every shard of the family had when the query ran; 0 is a miss. */
    public int blocks() {
        return blocks;
    }

    /** Blocks of all shards together that lay in host memory when the query ran. */
    public int hostBlocks() {
        return hostBlocks;
    }

    /** Blocks of all shards together that lay on a drive only when the query ran. */
    public int nvmeBlocks() {
        return nvmeBlocks;
    }

    /** The family that was asked; null for a miss. */
    public FamilyHandle family() {
        return family;
    }

    /** Whether it is held and has not expired. */
    public boolean isLive() {
        return state.get() == HELD && owner.nowNanos() - expiryNanos < 0;
    }

    long expiryNanos() {
        return expiryNanos;
    }

    boolean isHeld() {
        return state.get() == HELD;
    }

    DirectBuffer keys() {
        return keys;
    }

    MemoryRegion keyMemory() {
        return keyMemory;
    }

    void release() {
        if (keyMemory != null) {
            keyMemory.close();
            keyMemory = null;
        }
    }

    /**
     * Gives the claim up. Call it once: a second call does nothing at first, but ends somebody else's claim once a later
     * query was given this object.
     */
    @Override
    public void close() {
        if (state.compareAndSet(HELD, FREE)) {
            owner.giveBack(this);
        }
    }
}
