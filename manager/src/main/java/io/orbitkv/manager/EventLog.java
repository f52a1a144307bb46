package io.orbitkv.manager;

import io.orbitkv.store.BlockEvents;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * What happened to blocks, for those who ask: a ring of the last events, each with a sequence number. Whoever asks from a
 * sequence that has left the ring sees from the first number that some are missing. It listens to the store from the first
 * question on, until nobody has asked for a while; who asks again after that sees a gap too.
 *
 * <p>The store tells events one at a time, with its writer lock held, and never waits for those who read: these look behind
 * a copy whether it was overwritten meanwhile. All else is safe from any thread.
 */
final class EventLog implements BlockEvents {
    /** Events that are kept, of some 50 bytes each: more than a second's at 50,000 blocks a second. A power of two. */
    static final int EVENTS_MAX = 1 << 16;

    /** Nobody listens who has not asked for so long. */
    static final long FORGET_NANOS = 60_000_000_000L;

    private static final int KEY_LONGS = Wire.KEY_BYTES / Long.BYTES;
    private static final Kind[] KINDS = Kind.values();
    private static final Thread[] NOBODY = {};

    /** What happened. */
    enum Kind {
        /** A block is stored. */
        STORED,
        /** A block lies in no tier any more. */
        REMOVED,
        /** All blocks of a family were forgotten. */
        CLEARED
    }

    /** Takes events in order. */
    interface Reader {
        /** Starts over: what it was given since is void. */
        void begin();

        /** One event; parts of the key that are not known are 0. */
        void event(long sequence, Kind kind, byte[] familyId, int shard, long key0, long key1, long key2, long key3);
    }

    private final Consumer<BlockEvents> listen;

    // The ring: made with the first question. Slots are written by the one who tells.
    private byte[] kinds;
    private byte[][] familyIds;
    private int[] shards;
    private long[] keys;

    /** The sequence of the next event: those below are whole. */
    private volatile long next = 1;

    /** The sequence that is being written, or {@link #next}: slots that are older by the length of the ring are void. */
    private volatile long writing = 1;

    /** What was told before this was not told in full. */
    private volatile long first = 1;

    private volatile Thread[] waiting = NOBODY;
    private volatile long lastAskedNanos;

    /** Guarded by this. */
    private boolean on;

    /**
     * An empty log.
     *
     * @param listen has the store tell the given one, or, with null, nobody
     */
    EventLog(Consumer<BlockEvents> listen) {
        this.listen = listen;
    }

    // ---- told by the store, one at a time ----

    @Override
    public void stored(byte[] familyId, int shard, long key0, long key1, long key2, long key3) {
        add(Kind.STORED, familyId, shard, key0, key1, key2, key3);
    }

    @Override
    public void removed(byte[] familyId, int shard, long key0, long key1) {
        add(Kind.REMOVED, familyId, shard, key0, key1, 0, 0);
    }

    @Override
    public void cleared(byte[] familyId) {
        add(Kind.CLEARED, familyId, 0, 0, 0, 0, 0);
    }

    /** One number that nobody is given: a gap to everybody. */
    @Override
    public void begunAnew() {
        long anew = next + 1;
        first = anew;
        writing = anew;
        next = anew;
        wake();
    }

    private void add(Kind kind, byte[] familyId, int shard, long key0, long key1, long key2, long key3) {
        long sequence = next;
        writing = sequence + 1;
        VarHandle.storeStoreFence(); // partner: the fence before a reader looks at what was being written
        int at = (int) sequence & (EVENTS_MAX - 1);
        kinds[at] = (byte) kind.ordinal();
        familyIds[at] = familyId;
        shards[at] = shard;
        int keyAt = at * KEY_LONGS;
        keys[keyAt] = key0;
        keys[keyAt + 1] = key1;
        keys[keyAt + 2] = key2;
        keys[keyAt + 3] = key3;
        next = sequence + 1;
        wake();
    }

    /** Partner: a reader says that it waits, then looks once more. */
    private void wake() {
        for (Thread reader : waiting) {
            LockSupport.unpark(reader);
        }
    }

    // ---- asked ----

    /**
     * Reads events, waiting for one where there is none.
     *
     * @param from the first sequence wanted; 0: from now on
     * @param waitMillis longest wait
     * @param max most events
     * @return the sequence of the first event that there can be: above {@code from}, events are lost
     */
    long read(long from, long waitMillis, int max, Reader reader) throws InterruptedException {
        listen();
        long wanted = from == 0 ? next : from;
        if (waitMillis > 0 && wanted >= next) {
            await(wanted, TimeUnit.MILLISECONDS.toNanos(waitMillis));
        }
        long start = Math.max(wanted, oldest());
        while (true) {
            long end = next;
            reader.begin();
            for (long sequence = start; sequence < end && sequence - start < max; sequence++) {
                int at = (int) sequence & (EVENTS_MAX - 1);
                int keyAt = at * KEY_LONGS;
                reader.event(
                        sequence,
                        KINDS[kinds[at]],
                        familyIds[at],
                        shards[at],
                        keys[keyAt],
                        keys[keyAt + 1],
                        keys[keyAt + 2],
                        keys[keyAt + 3]);
            }
            VarHandle.acquireFence(); // partner: the fence of add
            if (start >= oldest()) {
                return start;
            }
            // Overtaken: with a head start, lest it be so again; never beyond what was told, which would be missed.
            start = Math.max(first, writing - EVENTS_MAX / 2);
        }
    }

    private long oldest() {
        return Math.max(first, writing - EVENTS_MAX);
    }

    private void await(long wanted, long nanos) throws InterruptedException {
        long deadline = System.nanoTime() + nanos;
        setWaiting(true);
        try {
            long left = nanos;
            while (left > 0 && wanted >= next) {
                LockSupport.parkNanos(this, left);
                if (Thread.interrupted()) {
                    throw new InterruptedException();
                }
                left = deadline - System.nanoTime();
            }
        } finally {
            setWaiting(false);
        }
    }

    private synchronized void setWaiting(boolean isWaiting) {
        Thread me = Thread.currentThread();
        int count = waiting.length;
        Thread[] now = isWaiting ? Arrays.copyOf(waiting, count + 1) : new Thread[count - 1];
        if (isWaiting) {
            now[count] = me;
        } else {
            int kept = 0;
            for (Thread reader : waiting) {
                if (reader != me) {
                    now[kept++] = reader;
                }
            }
        }
        waiting = now;
    }

    /** Has the store tell from now on, if it does not yet. What was asked for before shows a gap. */
    void listen() {
        lastAskedNanos = System.nanoTime();
        synchronized (this) {
            if (on) {
                return;
            }
            if (keys == null) {
                kinds = new byte[EVENTS_MAX];
                familyIds = new byte[EVENTS_MAX][];
                shards = new int[EVENTS_MAX];
                keys = new long[EVENTS_MAX * KEY_LONGS];
            }
            begunAnew(); // nobody tells yet
            listen.accept(this);
            on = true;
        }
    }

    /** Events so far, and gaps. */
    long told() {
        return next - 1;
    }

    /** Whether the store tells. */
    boolean isFollowed() {
        synchronized (this) {
            return on;
        }
    }

    /** Has the store tell nobody once nobody has asked for a while. Called now and then. */
    void forget(long nowNanos) {
        synchronized (this) {
            if (on && nowNanos - lastAskedNanos > FORGET_NANOS) {
                listen.accept(null);
                on = false;
            }
        }
    }
}
