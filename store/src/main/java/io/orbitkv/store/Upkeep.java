package io.orbitkv.store;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.PrefixIndex;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;

/** The slow work: tells the catalog what has changed, in batches, and sweeps dead runs out of the index. */
final class Upkeep implements Agent {
    /** Runs looked at under the writer lock at a time: some tens of microseconds. */
    private static final int SWEEP_RUNS = 64;

    private static final long QUARANTINE_INTERVAL_NANOS = 100_000_000;

    private final Object writerLock;
    private final PrefixIndex index;
    private final Catalog catalog;
    private final SegmentBook segments;
    private final Quarantine quarantine;
    private final SavePath saves;
    private final RestorePath restores;
    private final Workspaces workspaces;
    private final Reclaims reclaims;
    private final NanoClock clock;
    private final long commitIntervalNanos;

    private volatile long lastCommitNanos;
    private long sweptReclaims;
    private long passEnds;
    private boolean sweeping;

    /** Counts what makes extents stale. */
    interface Reclaims {
        /** Segments of both tiers and namespaces that were given up so far. */
        long count();

        /** How many of them make a sweep worth while. */
        long sweepAfter();
    }

    Upkeep(
            Object writerLock,
            PrefixIndex index,
            Catalog catalog,
            SegmentBook segments,
            Quarantine quarantine,
            SavePath saves,
            RestorePath restores,
            Workspaces workspaces,
            Reclaims reclaims,
            NanoClock clock,
            long commitIntervalNanos) {
        this.writerLock = writerLock;
        this.index = index;
        this.catalog = catalog;
        this.segments = segments;
        this.quarantine = quarantine;
        this.saves = saves;
        this.restores = restores;
        this.workspaces = workspaces;
        this.reclaims = reclaims;
        this.clock = clock;
        this.commitIntervalNanos = commitIntervalNanos;
        this.lastCommitNanos = clock.nanoTime();
    }

    @Override
    public int doWork() {
        if (workspaces.hasRetired()) {
            workspaces.reuseDrained(restores::unpinDrained);
        }
        return commitWhenDue() + sweepWhenDue();
    }

    /** Whether something is waiting, so that looking again soon is worth while. Any thread. */
    boolean hasWork() {
        return segments.hasChanges() || quarantine.isWaiting() || workspaces.hasRetired();
    }

    /** Says who ends the sleep of upkeep's thread when there is something to do. */
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

    private int sweepWhenDue() {
        long now = reclaims.count();
        if (!sweeping && now - sweptReclaims >= reclaims.sweepAfter()) {
            sweeping = true;
            sweptReclaims = now;
            passEnds = index.completedSweeps() + 1;
        }
        if (!sweeping) {
            return 0;
        }
        synchronized (writerLock) {
            index.sweep(SWEEP_RUNS);
        }
        sweeping = index.completedSweeps() < passEnds;
        return 1;
    }

    @Override
    public String roleName() {
        return "orbitkv-upkeep";
    }
}
