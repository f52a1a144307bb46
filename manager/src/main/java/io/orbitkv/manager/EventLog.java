package io.orbitkv.manager;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.agrona.DirectBuffer;

/**
 * What happened to blocks, for those who ask: a ring of the last events, each with a sequence number. Whoever asks from a
 * sequence that has left the ring sees from the first number that some are missing. Safe from any thread.
 */
final class EventLog {
    /** Events that are kept. */
    static final int EVENTS_MAX = 1 << 14;

    /** What happened. */
    enum Kind {
        /** A block was taken in. */
        STORED,
        /** All blocks of a family were forgotten. */
        CLEARED
    }

    /** Takes events in order. */
    interface Reader {
        void event(long sequence, Kind kind, byte[] familyId, int shard, byte[] key);
    }

    private static final byte[] NO_KEY = new byte[Wire.KEY_BYTES];

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition more = lock.newCondition();
    private final Kind[] kinds = new Kind[EVENTS_MAX];
    private final byte[][] familyIds = new byte[EVENTS_MAX][];
    private final byte[][] keys = new byte[EVENTS_MAX][];
    private final int[] shards = new int[EVENTS_MAX];
    private long next = 1;

    /** The oldest sequence that is kept. */
    private long first = 1;

    /** Nobody has asked yet: events are counted and not kept. */
    private boolean asked;

    void stored(byte[] familyId, int shard, DirectBuffer from, int offset, int count) {
        lock.lock();
        try {
            if (!asked) {
                next += count;
                first = next;
                return;
            }
            for (int i = 0; i < count; i++) {
                byte[] key = new byte[Wire.KEY_BYTES];
                from.getBytes(offset + i * Wire.KEY_BYTES, key);
                add(Kind.STORED, familyId, shard, key);
            }
            more.signalAll();
        } finally {
            lock.unlock();
        }
    }

    void cleared(byte[] familyId) {
        lock.lock();
        try {
            add(Kind.CLEARED, familyId, 0, NO_KEY);
            more.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private void add(Kind kind, byte[] familyId, int shard, byte[] key) {
        int at = (int) (next % EVENTS_MAX);
        kinds[at] = kind;
        familyIds[at] = familyId;
        shards[at] = shard;
        keys[at] = key;
        next++;
        first = Math.max(first, next - EVENTS_MAX);
    }

    /**
     * Reads events, waiting for one where there is none.
     *
     * @param from the first sequence wanted; 0: from now on
     * @param waitMillis longest wait
     * @param max most events
     * @return the sequence of the first event that there can be: above {@code from}, events are lost
     */
    long read(long from, long waitMillis, int max, Reader reader) throws InterruptedException {
        lock.lockInterruptibly();
        try {
            asked = true;
            long start = from == 0 ? next : Math.max(first, from);
            long nanos = TimeUnit.MILLISECONDS.toNanos(waitMillis);
            while (start >= next && nanos > 0) {
                nanos = more.awaitNanos(nanos);
            }
            start = Math.max(first, start);
            for (long sequence = start; sequence < next && sequence - start < max; sequence++) {
                int at = (int) (sequence % EVENTS_MAX);
                reader.event(sequence, kinds[at], familyIds[at], shards[at], keys[at]);
            }
            return start;
        } finally {
            lock.unlock();
        }
    }
}
