package io.orbitkv.manager;

import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * Lets a manager use more of its pool, piece by piece, as far as there is memory: a pool takes memory as it fills, so what may be
 * used is what may be taken. Never less than before: blocks are not thrown out for others' sake.
 *
 * <p>While a process still maps the pool of a former manager, both together stay within one pool, but for the part that a
 * manager needs to work ({@link #bytesMin}). Runs on a thread of its own, until all may be used; nobody waits for it. What it tells
 * may be asked by any thread.
 */
final class PoolGrowth implements Runnable {
    /** Most that is let be used at once, before the memory is looked at again. */
    static final long PIECE_BYTES = 1L << 30;

    /**
     * This part of the pool may be used in any case. A sixteenth: saves flow through it to the drives, and restores from there,
     * while the old pool, this and what else is shared stay within 1.1 pools.
     */
    private static final int POOL_FRACTION_MIN = 16;

    /**
     * How long it sleeps behind looks that found nothing to give, doubling from the one to the other: clients of a manager that
     * was killed let go within milliseconds, a stopped one may take hours.
     */
    private static final long SLEEP_NANOS_MIN = 25_000_000L;

    private static final long SLEEP_NANOS_MAX = 800_000_000L;

    private final GrowingPool pool;
    private final FormerPools former;
    private final LongSupplier headroomBytes;
    private volatile Standing standing = new Standing(PoolCondition.GROWING, 0, 0);

    /**
     * Lets nothing be used yet.
     *
     * @param pool the manager's
     * @param former those before it
     * @param headroomBytes memory that the pool may take beside what it has taken
     */
    PoolGrowth(GrowingPool pool, FormerPools former, LongSupplier headroomBytes) {
        this.pool = pool;
        this.former = former;
        this.headroomBytes = headroomBytes;
    }

    /**
     * How it stood at the last look.
     *
     * @param condition why not all may be used
     * @param formerBytes memory that pools of former managers take
     * @param formerPid a process that keeps them; 0 when there is none
     */
    record Standing(PoolCondition condition, long formerBytes, long formerPid) {}

    /** Bytes of a pool that may be used from the start. */
    static long bytesMin(long poolBytes) {
        return poolBytes / POOL_FRACTION_MIN;
    }

    /** How it stands. Any thread. */
    Standing standing() {
        return standing;
    }

    /** Until all may be used, or the thread is interrupted. */
    @Override
    public void run() {
        long sleepNanos = SLEEP_NANOS_MIN;
        while (!Thread.currentThread().isInterrupted() && !look()) {
            LockSupport.parkNanos(sleepNanos);
            sleepNanos = Math.min(SLEEP_NANOS_MAX, 2 * sleepNanos);
        }
    }

    /** Looks who holds what, and lets be used what there is room for; whether that is all. */
    boolean look() {
        former.look();
        while (grow()) {
            // one piece after the other, each with a look at the memory
        }
        return standing.condition == PoolCondition.WHOLE;
    }

    /** Lets another piece be used, as far as there is room; whether it was any. */
    private boolean grow() {
        long usable = pool.usableBytes();
        long besideFormer = pool.bytes() - former.bytes();
        long inMemory = pool.takenBytes() + headroomBytes.getAsLong();
        pool.use(Math.min(usable + PIECE_BYTES, Math.min(besideFormer, inMemory)));
        boolean grown = pool.usableBytes() > usable;
        standing = new Standing(condition(grown, besideFormer < inMemory), former.bytes(), former.pid());
        return grown && standing.condition != PoolCondition.WHOLE;
    }

    private PoolCondition condition(boolean grown, boolean formerIsNearer) {
        if (pool.usableBytes() >= pool.bytes()) {
            return PoolCondition.WHOLE;
        }
        if (grown) {
            return PoolCondition.GROWING;
        }
        return formerIsNearer && former.bytes() > 0 ? PoolCondition.FORMER_POOL : PoolCondition.MEMORY;
    }
}
