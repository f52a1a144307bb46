package io.orbitkv.store;

import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.ManyToManyConcurrentArrayQueue;
import org.agrona.concurrent.NanoClock;

/** The pool of leases: made on demand up to a bound, then reused, so that a query allocates nothing after warm-up. */
final class Leases implements AutoCloseable {
    private final NanoClock clock;
    private final int leasesMax;
    private final ManyToManyConcurrentArrayQueue<Lease> idle;
    private final List<Lease> all = new ArrayList<>();

    Leases(NanoClock clock, int leasesMax) {
        this.clock = clock;
        this.leasesMax = leasesMax;
        this.idle = new ManyToManyConcurrentArrayQueue<>(Math.max(2, leasesMax));
    }

    /** An idle lease, or null when all are held. */
    Lease take() {
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

    void giveBack(Lease lease) {
        idle.offer(lease); // never full: it holds all leases there are
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
