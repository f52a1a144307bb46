package io.orbitkv.store;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.Tier;
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
    // The state: one of these, and above HELD the number of restores that run under it.
    private static final int TAKEN_BACK = -1;
    private static final int FREE = 0;
    private static final int HELD = 1;

    /** Added to the state of a lease that was closed while restores ran under it: the last of them gives it back. */
    private static final int CLOSING = 1 << 30;

    private final Leases owner;
    private final AtomicInteger state = new AtomicInteger(FREE);
    private final UnsafeBuffer keys = new UnsafeBuffer(0, 0);
    private MemoryRegion keyMemory;
    private FamilyHandle family;
    private int blocks;
    private long bytes;
    private int hostBlocks;
    private int nvmeBlocks;
    private double hostNanos;
    private double nvmeNanos;
    private double pace;
    private final AtomicInteger restoredHost = new AtomicInteger();
    private final AtomicInteger restoredNvme = new AtomicInteger();
    private long expiryNanos;

    Lease(Leases owner) {
        this.owner = owner;
    }

    /** Notes what the budget has granted; before {@link #hold}. */
    void granted(int ofBlocks, long ofBytes) {
        blocks = ofBlocks;
        bytes = ofBytes;
    }

    void hold(FamilyHandle of, DirectBuffer from, int offset, int host, int nvme, long expiry) {
        long needed = (long) blocks * KEY_BYTES;
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
        hostBlocks = host;
        nvmeBlocks = nvme;
        expiryNanos = expiry;
        restoredHost.setPlain(0);
        restoredNvme.setPlain(0);
        state.set(HELD);
    }

    /** Notes what the query thinks that a restore will take; before {@link #hold}. */
    void estimate(double ofHostNanos, double ofNvmeNanos, double queryPace) {
        hostNanos = ofHostNanos;
        nvmeNanos = ofNvmeNanos;
        pace = queryPace;
    }

    /** At what {@link RestoreEstimate#pace} the query ran. */
    double pace() {
        return pace;
    }

    void restored(int host, int nvme) {
        restoredHost.getAndAdd(host);
        restoredNvme.getAndAdd(nvme);
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

    /** Blocks of all shards together that a tier was to deliver when the query ran. */
    public int blocks(Tier tier) {
        return tier == Tier.HOST ? hostBlocks : nvmeBlocks;
    }

    /**
     * How long restoring all blocks of the lease will take, as the query estimated it from what restores took and the
     * reads that were under way; 0 for a miss.
     *
     * @return microseconds, all shards one after the other
     */
    public double restoreMicros() {
        return (hostNanos + nvmeNanos) / 1e3;
    }

    /**
     * A tier's part of {@link #restoreMicros()}.
     *
     * @param tier the tier
     * @return microseconds; 0 where the tier has none of the blocks
     */
    public double restoreMicros(Tier tier) {
        return (tier == Tier.HOST ? hostNanos : nvmeNanos) / 1e3;
    }

    /** Blocks that restores under this lease have delivered from a tier so far. */
    public int restoredBlocks(Tier tier) {
        return tier == Tier.HOST ? restoredHost.get() : restoredNvme.get();
    }

    /** The family that was asked; null for a miss. */
    public FamilyHandle family() {
        return family;
    }

    /** Whether it is held and has not expired. */
    public boolean isLive() {
        return isHeld() && owner.nowNanos() - expiryNanos < 0;
    }

    /** Bytes that it claims, of all shards. */
    public long bytes() {
        return bytes;
    }

    long expiryNanos() {
        return expiryNanos;
    }

    boolean isHeld() {
        int now = state.get();
        return now >= HELD && now < CLOSING;
    }

    /** Whether its holder gave it up: then it may be somebody else's by now. */
    boolean isClosed() {
        int now = state.get();
        return now == FREE || now >= CLOSING;
    }

    /** Begins a restore: until it ends nobody takes the lease back. False: there is nothing to restore under it any more. */
    boolean enter() {
        while (true) {
            int now = state.get();
            if (now < HELD || now >= CLOSING) {
                return false;
            }
            if (state.compareAndSet(now, now + 1)) {
                return true;
            }
        }
    }

    /** Lets the claim last as long as if it had been granted now. False: it had ended before. */
    public boolean renew() {
        if (blocks == 0 || !isLive() || !enter()) {
            return false;
        }
        expiryNanos = owner.expiryNanos(owner.nowNanos());
        leave();
        return true;
    }

    /** Ends a restore. */
    void leave() {
        if (state.decrementAndGet() == HELD + CLOSING && state.compareAndSet(HELD + CLOSING, FREE)) {
            owner.giveBack(this);
        }
    }

    /** Takes it from a holder that let it expire; false where it is free, live, or a restore runs under it. */
    boolean takeBack(long nowNanos) {
        return nowNanos - expiryNanos >= 0 && state.compareAndSet(HELD, TAKEN_BACK);
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
     * query was given this object. A lease that is never closed ends when it expires: it restores nothing then, and what it
     * claimed is given to others.
     */
    @Override
    public void close() {
        while (isHeld()) {
            int now = state.get();
            if (now == HELD ? state.compareAndSet(HELD, FREE) : now > HELD && state.compareAndSet(now, now + CLOSING)) {
                if (now == HELD) {
                    owner.giveBack(this);
                }
                return;
            }
        }
    }
}
