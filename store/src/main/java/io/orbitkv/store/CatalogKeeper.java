package io.orbitkv.store;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogCounter;
import org.agrona.concurrent.NanoClock;

/**
 * Tells the catalog what has changed, in batches. A drive may hang in it, so nobody waits for it but a clear, a change of the
 * cap and a close, and nothing else is done here.
 */
final class CatalogKeeper {
    private static final long QUARANTINE_INTERVAL_NANOS = 100_000_000;

    private final Catalog catalog;
    private final SegmentBook segments;
    private final Quarantine quarantine;
    private final SavePath saves;
    private final NanoClock clock;
    private final long commitIntervalNanos;
    private volatile long lastCommitNanos;

    CatalogKeeper(
            Catalog catalog,
            SegmentBook segments,
            Quarantine quarantine,
            SavePath saves,
            NanoClock clock,
            long commitIntervalNanos) {
        this.catalog = catalog;
        this.segments = segments;
        this.quarantine = quarantine;
        this.saves = saves;
        this.clock = clock;
        this.commitIntervalNanos = commitIntervalNanos;
        this.lastCommitNanos = clock.nanoTime();
    }

    /** One step; what it did, 0 for nothing. */
    int doWork() {
        return commitWhenDue();
    }

    /** Whether something is waiting, so that looking again soon is worth while. Any thread. */
    boolean hasWork() {
        return segments.hasChanges() || quarantine.isWaiting();
    }

    /** Says who ends the sleep of the keeper's thread when there is something to do. */
    void wakeWith(Runnable waker) {
        segments.onFirstChange(waker);
    }

    private int commitWhenDue() {
        boolean found = quarantine.isWaiting(); // what it found must not be found again
        if (!found && !segments.hasChanges()) {
            return 0;
        }
        long interval = found ? QUARANTINE_INTERVAL_NANOS : commitIntervalNanos;
        if (clock.nanoTime() - lastCommitNanos < interval) {
            return 0;
        }
        commit();
        return 1;
    }

    /** Writes down everything that is waiting, and whatever was noted before this call. Any thread. */
    void commit() {
        lastCommitNanos = clock.nanoTime();
        try (Catalog.Batch batch = catalog.begin()) {
            segments.drainTo(batch);
            quarantine.drainTo(batch);
            long next = saves.acceptedPosition() + 1;
            if (next > catalog.counter(CatalogCounter.NEXT_POSITION)) {
                batch.setCounter(CatalogCounter.NEXT_POSITION, next);
            }
            batch.commit();
        }
        lastCommitNanos = clock.nanoTime();
    }
}
