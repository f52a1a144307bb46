package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.tiers.Drives;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;

/**
 * Looks after what others leave: watches for drives that hang, takes back workspaces whose reads have ended, and sweeps dead
 * runs out of the index. It does no I/O, so that no drive can hang it.
 */
final class Upkeep implements Agent {
    /** Runs looked at under the writer lock at a time: some tens of microseconds. */
    private static final int SWEEP_RUNS = 64;

    /** Sweeps that only those ask for who listen rest so many times as long as they last. */
    private static final int REST_TIMES = 19;

    private final Object writerLock;
    private final PrefixIndex index;
    private final Drives nvme;
    private final RestorePath restores;
    private final Workspaces workspaces;
    private final Reclaims reclaims;
    private final Residency residency;
    private final NanoClock clock;

    private long sweptReclaims;
    private long passEnds;
    private long passBeganNanos;
    private long restUntilNanos;
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
            Drives nvme,
            RestorePath restores,
            Workspaces workspaces,
            Reclaims reclaims,
            Residency residency,
            NanoClock clock) {
        this.writerLock = writerLock;
        this.index = index;
        this.nvme = nvme;
        this.restores = restores;
        this.workspaces = workspaces;
        this.reclaims = reclaims;
        this.residency = residency;
        this.clock = clock;
        this.restUntilNanos = clock.nanoTime();
    }

    @Override
    public int doWork() {
        nvme.watch(clock.nanoTime());
        residency.look();
        if (workspaces.hasRetired()) {
            workspaces.reuseDrained(restores::unpinDrained);
        }
        return sweepWhenDue();
    }

    private int sweepWhenDue() {
        long now = reclaims.count();
        if (!sweeping && isDue(now - sweptReclaims)) {
            sweeping = true;
            sweptReclaims = now;
            passBeganNanos = clock.nanoTime();
            synchronized (writerLock) {
                passEnds = index.sweepsUntilPassed();
            }
        }
        if (!sweeping) {
            return 0;
        }
        synchronized (writerLock) {
            index.sweep(SWEEP_RUNS);
        }
        sweeping = index.completedSweeps() < passEnds;
        if (!sweeping) {
            long passed = clock.nanoTime();
            restUntilNanos = passed + REST_TIMES * (passed - passBeganNanos);
        }
        return 1;
    }

    /** Many losses make a sweep worth while; who listens wants to hear of each, but not at any price. */
    private boolean isDue(long reclaimed) {
        return reclaimed >= reclaims.sweepAfter()
                || (reclaimed > 0 && residency.isOn() && clock.nanoTime() - restUntilNanos >= 0);
    }

    @Override
    public String roleName() {
        return "orbitkv-upkeep";
    }
}
