package io.orbitkv.store;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogCounter;
import org.agrona.concurrent.NanoClock;

/**
 * What has to touch the data folders beside the log: tells the catalog what has changed, in batches, and looks how much room
 * the folders take. A drive may hang in it, so nobody waits for it but a clear and a close, and nothing else is done here.
 */
final class CatalogKeeper {
    private final Catalog catalog;
    private final SegmentBook segments;
    private final Quarantine quarantine;
    private final SavePath saves;
    private final OwnBytes ownBytes;
    private final NanoClock clock;
    private final long commitIntervalNanos;
    private long lastCommitNanos;

    CatalogKeeper(
            Catalog catalog,
            SegmentBook segments,
            Quarantine quarantine,
            SavePath saves,
            OwnBytes ownBytes,
            NanoClock clock,
            long commitIntervalNanos) {
        this.catalog = catalog;
        this.segments = segments;
        this.quarantine = quarantine;
        this.saves = saves;
        this.ownBytes = ownBytes;
        this.clock = clock;
        this.commitIntervalNanos = commitIntervalNanos;
        this.lastCommitNanos = clock.nanoTime();
    }

    /** One step; what it did, 0 for nothing. */
    int doWork() {
        return commitWhenDue() + ownBytes.lookIfAsked();
    }

    /** Whether something is waiting, so that looking again soon is worth while. Any thread. */
    boolean hasWork() {
        return segments.hasChanges() || quarantine.isWaiting();
    }

    /** Says who ends the sleep of the keeper's thread when there is something to do. */
    void wakeWith(Runnable waker) {
        segments.onFirstChange(waker);
        ownBytes.askWith(waker);
    }

    private int commitWhenDue() {
        if (!hasWork() || clock.nanoTime() - lastCommitNanos < commitIntervalNanos) {
            return 0;
        }
        commit();
        return 1;
    }

    /** Writes down everything that is waiting. */
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
