package io.orbitkv.store;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.concurrent.ManyToManyConcurrentArrayQueue;
import org.agrona.concurrent.NanoClock;

/**
 * The pool of leases, bounded in number and in the bytes that they claim together. Leases are made on demand, then reused,
 * so that a query allocates nothing after warm-up. One that its holder never closes is taken back once it has expired,
 * when a query would otherwise be refused; its holder keeps an object that is worth nothing.
 */
final class Leases implements AutoCloseable {
    private final NanoClock clock;
    private final int leasesMax;
    private final long bytesMax;
    private final long leaseNanos;
    private final AtomicLong bytes = new AtomicLong();
    private final ManyToManyConcurrentArrayQueue<Lease> idle;
    private final List<Lease> all = new ArrayList<>();

    /** Before this nothing has expired that could be taken back. */
    private long sweepNanos;

    Leases(NanoClock clock, int leasesMax, long bytesMax, long leaseNanos) {
        this.clock = clock;
        this.leasesMax = leasesMax;
        this.bytesMax = bytesMax;
        this.leaseNanos = leaseNanos;
        this.idle = new ManyToManyConcurrentArrayQueue<>(Math.max(2, leasesMax));
        this.sweepNanos = clock.nanoTime();
    }

    /**
     * An idle lease, for as many of the wanted blocks as the budget has room for.
     *
     * @param blocks how many are wanted, 1 or more
     * @param blockBytes bytes of one of them, over all shards
     * @return null when the budget has no room for one, or all leases are held
     */
    Lease take(int blocks, long blockBytes) {
        int granted = grant(blocks, blockBytes);
        if (granted < blocks && takeBackExpired()) {
            granted += grant(blocks - granted, blockBytes);
        }
        if (granted == 0) {
            return null;
        }
        Lease lease = idleOrMade();
        if (lease == null && takeBackExpired()) {
            lease = idleOrMade();
        }
        if (lease == null) {
            bytes.getAndAdd(-granted * blockBytes);
            return null;
        }
        lease.granted(granted, granted * blockBytes);
        return lease;
    }

    private int grant(int blocks, long blockBytes) {
        while (true) {
            long claimed = bytes.get();
            int granted = (int) Math.min(blocks, Math.max(0, bytesMax - claimed) / blockBytes);
            if (granted == 0 || bytes.compareAndSet(claimed, claimed + granted * blockBytes)) {
                return granted;
            }
        }
    }

    private Lease idleOrMade() {
        Lease lease = idle.poll();
        return lease != null ? lease : make();
    }

    private Lease make() {
        synchronized (all) {
            if (all.size() == leasesMax) {
                return null;
            }
            Lease lease = new Lease(this);
            all.add(lease);
            return lease;
        }
    }

    /** Takes expired leases from their holders; whether there were any. */
    private boolean takeBackExpired() {
        synchronized (all) {
            long now = clock.nanoTime();
            if (now - sweepNanos < 0) {
                return false;
            }
            int before = all.size();
            sweepNanos = now + leaseNanos; // whatever is taken from now on expires later
            for (int i = all.size() - 1; i >= 0; i--) {
                Lease lease = all.get(i);
                if (lease.takeBack(now)) {
                    all.set(i, all.get(all.size() - 1));
                    all.remove(all.size() - 1);
                    bytes.getAndAdd(-lease.bytes());
                    lease.release();
                } else if (lease.isHeld() && lease.expiryNanos() - sweepNanos < 0) {
                    sweepNanos = Math.max(now + 1, lease.expiryNanos());
                }
            }
            return all.size() < before;
        }
    }

    void giveBack(Lease lease) {
        bytes.getAndAdd(-lease.bytes());
        idle.offer(lease); // never full: it holds all leases there are
    }

    /** Bytes that held leases claim, those that have expired and were not closed included. */
    long bytes() {
        return bytes.get();
    }

    /** When a lease expires that is held from a moment on. */
    long expiryNanos(long nowNanos) {
        return nowNanos + leaseNanos;
    }

    long nowNanos() {
        return clock.nanoTime();
    }

    /** Leases that are held and have not expired: slow, for reports. */
    int held() {
        synchronized (all) {
            int held = 0;
            for (Lease lease : all) {
                held += lease.isLive() ? 1 : 0;
            }
            return held;
        }
    }

    @Override
    public void close() {
        synchronized (all) {
            for (Lease lease : all) {
                lease.release();
            }
        }
    }
}
