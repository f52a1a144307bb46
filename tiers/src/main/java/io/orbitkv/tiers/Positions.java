package io.orbitkv.tiers;

import java.util.concurrent.atomic.AtomicLong;

/**
 * How far one drive's log has come: offered by the caller, written and durable by the agent; each only grows. Positions are
 * given out for all drives together, each to one of them.
 */
final class Positions {
    private final AtomicLong offered;
    private final AtomicLong lastOffered = new AtomicLong();
    private final AtomicLong written = new AtomicLong();
    private final AtomicLong durable = new AtomicLong();
    private final AtomicLong writeRequest = new AtomicLong();
    private final AtomicLong flushRequest = new AtomicLong();

    /** The request that the next flush serves. */
    private long flushNext;

    Positions(LogState initial, LogShared shared) {
        offered = shared.offered;
        lastOffered.set(initial.lastPosition());
        written.set(initial.lastPosition());
        durable.set(initial.durablePosition());
        flushRequest.set(initial.durablePosition());
    }

    /** Caller: after the block itself is in its queue (partner: {@link #settle}). */
    void offer(long position) {
        assert position > offered.getPlain() : position + " after " + offered.getPlain();
        lastOffered.setRelease(position);
        offered.set(position); // partner: Drives looks at it first, then at the drives
    }

    /**
     * Agent: the position up to which every offered block is settled. What was offered last is read before the queues
     * are, so that every block up to it is seen in them; a later one may be missed, and is not counted.
     */
    boolean settle(LogLane[] lanes) {
        long upTo = offered.get();
        for (int i = 0; i < lanes.length; i++) {
            upTo = Math.min(upTo, lanes[i].queue().firstUnsettled() - 1);
        }
        if (upTo <= written.getPlain()) {
            return false;
        }
        written.setRelease(upTo);
        return true;
    }

    void flushed(long position) {
        if (position > durable.getPlain()) {
            durable.setRelease(position);
        }
    }

    void requestWrite() {
        raise(writeRequest, offered.getAcquire());
    }

    void requestFlush() {
        long position = offered.getAcquire();
        raise(flushRequest, position);
        raise(writeRequest, position);
    }

    private static void raise(AtomicLong value, long to) {
        for (long now = value.get(); now < to; now = value.get()) {
            if (value.compareAndSet(now, to)) {
                return;
            }
        }
    }

    long offered() {
        return offered.getAcquire();
    }

    /** The last position that was offered to this drive. */
    long lastOffered() {
        return lastOffered.getAcquire();
    }

    long written() {
        return written.getAcquire();
    }

    long durable() {
        return durable.getAcquire();
    }

    /** Blocks up to here shall be written at once. */
    long writeRequest() {
        return writeRequest.getAcquire();
    }

    /**
     * Whether a flush is asked for and all that it shall cover is written. Later requests wait for the next one: where somebody
     * asks all the time there would be none. Agent's thread.
     */
    boolean isFlushDue() {
        if (flushNext <= durable.getPlain()) {
            flushNext = flushRequest.getAcquire();
        }
        return flushNext > durable.getPlain() && flushNext <= written.getPlain();
    }
}
