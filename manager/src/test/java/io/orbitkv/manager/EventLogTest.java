package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.HeapUse;
import io.orbitkv.store.BlockEvents;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Goal: whoever follows events sees each of them, or that some are missing. Method: a log by itself. */
@Timeout(60)
class EventLogTest {
    private static final byte[] FAMILY = new byte[32];
    private static final int READ_MAX = 4096;

    /** Whom the store would tell. */
    private final AtomicReference<BlockEvents> listener = new AtomicReference<>();

    private final EventLog log = new EventLog(listener::set);
    private final EventsSeen seen = new EventsSeen(EventLog.EVENTS_MAX);

    private long read(long from) throws InterruptedException {
        return log.read(from, 0, EventLog.EVENTS_MAX, seen);
    }

    private void store(int shard, int count) {
        for (int i = 0; i < count; i++) {
            log.stored(FAMILY, shard, i, 2, 3, 0x0807060504030201L);
        }
    }

    /** vllm 45174, llm-d-router 2853: a replay that lost its place left blocks indexed that were gone. */
    @Test
    void reported_vllm_45174_whatIsMissingShows() throws InterruptedException {
        assertNull(listener.get());
        long next = read(0);
        assertSame(log, listener.get(), "the first question has the store tell");
        assertEquals(0, seen.count());
        store(5, 2);
        log.removed(FAMILY, 5, 7, 8);
        log.cleared(FAMILY);
        assertEquals(next, read(next));
        assertEquals(4, seen.count());
        assertEquals(next + 3, seen.sequence(3));
        assertEquals(5, seen.shard(0));
        assertEquals(EventLog.Kind.STORED, seen.kind(1));
        assertEquals(1, seen.keyByte(1, 0));
        assertEquals(1, seen.keyByte(1, 24));
        assertEquals(8, seen.keyByte(1, 31));
        assertEquals(EventLog.Kind.REMOVED, seen.kind(2));
        assertEquals(7, seen.keyByte(2, 0));
        assertEquals(8, seen.keyByte(2, 8));
        assertEquals(EventLog.Kind.CLEARED, seen.kind(3));
        assertEquals(next + 3, read(next + 3));
        assertEquals(1, seen.count());
        store(0, EventLog.EVENTS_MAX);
        assertEquals(next + 4, read(next), "what it was asked for has left the ring");
        assertEquals(EventLog.EVENTS_MAX, seen.count());
        for (int i = 0; i < seen.count(); i++) {
            assertEquals(next + 4 + i, seen.sequence(i));
        }
        next = seen.sequence(seen.count() - 1) + 1;
        log.begunAnew();
        assertEquals(next + 1, read(next), "what is not told one by one is a gap");
        assertEquals(0, seen.count());
        assertEquals(next + 1, read(next + 1));
    }

    /** Whoever is overtaken goes on from there: a place beyond what was told would hide what comes until it is reached. */
    @Test
    void aReaderThatIsOvertakenIsNotLedBeyondWhatWasTold() throws InterruptedException {
        long next = read(0);
        for (boolean byNumber : new boolean[] {false, true}) {
            store(1, 3);
            AtomicBoolean overtaken = new AtomicBoolean();
            long first = log.read(next, 0, EventLog.EVENTS_MAX, new EventLog.Reader() {
                @Override
                public void begin() {
                    seen.begin();
                }

                @Override
                public void event(
                        long sequence,
                        EventLog.Kind kind,
                        byte[] familyId,
                        int shard,
                        long key0,
                        long key1,
                        long key2,
                        long key3) {
                    if (overtaken.compareAndSet(false, true)) {
                        if (byNumber) {
                            store(2, EventLog.EVENTS_MAX);
                        } else {
                            log.begunAnew();
                        }
                    }
                    seen.event(sequence, kind, familyId, shard, key0, key1, key2, key3);
                }
            });
            assertTrue(first > next, "a gap");
            assertTrue(first <= log.told() + 1, first + " is beyond " + log.told());
            assertEquals(log.told() + 1 - first, seen.count());
            next = log.told() + 1;
            store(3, 1);
            assertEquals(next, read(next));
            assertEquals(1, seen.count());
            next++;
        }
    }

    @Test
    void nobodyIsToldWhoHasNotAskedForAWhileAndMissesSomethingThen() throws InterruptedException {
        long next = read(0);
        log.forget(System.nanoTime());
        assertSame(log, listener.get());
        log.forget(System.nanoTime() + EventLog.FORGET_NANOS + 1_000_000);
        assertNull(listener.get());
        assertTrue(read(next) > next, "what happened meanwhile was not told");
        assertSame(log, listener.get());
    }

    @Test
    void aWaitEndsWithTheNextEventOrInTime() throws Exception {
        long next = read(0);
        CompletableFuture<Integer> waiting = CompletableFuture.supplyAsync(() -> {
            try {
                log.read(next, 50_000, 10, seen);
                return seen.count();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        log.cleared(FAMILY);
        assertEquals(1, waiting.get(40, TimeUnit.SECONDS));
        long began = System.nanoTime();
        assertEquals(next + 1, log.read(next + 1, 20, 10, seen));
        assertEquals(0, seen.count());
        assertTrue(System.nanoTime() - began >= 20_000_000);
    }

    /** One tells as fast as it can, two read: no event is torn, none is skipped unseen. */
    @Test
    void readersBesideAWriterSeeWholeEvents() throws Exception {
        read(0);
        AtomicBoolean stop = new AtomicBoolean();
        Thread writer = new Thread(() -> {
            for (long n = 0; !stop.get(); n++) {
                log.stored(FAMILY, (int) n, n, ~n, n ^ 5, n + 9);
            }
        });
        writer.start();
        try {
            CompletableFuture<Long> other = CompletableFuture.supplyAsync(this::follow);
            long followed = follow();
            assertTrue(followed > 0 && other.get(40, TimeUnit.SECONDS) > 0);
        } finally {
            stop.set(true);
            writer.join();
        }
    }

    /** Judges events. */
    private static final class Judge implements EventLog.Reader {
        int count;
        int wrong;
        long next;

        @Override
        public void begin() {
            count = 0;
            wrong = 0;
        }

        @Override
        public void event(
                long sequence, EventLog.Kind kind, byte[] familyId, int shard, long a, long b, long c, long d) {
            boolean whole = shard == (int) a && b == ~a && c == (a ^ 5) && d == a + 9;
            wrong += whole && (count == 0 || sequence == next) ? 0 : 1;
            next = sequence + 1;
            count++;
        }
    }

    /** Reads for a second; how many events there were. */
    private long follow() {
        Judge judge = new Judge();
        long events = 0;
        try {
            long end = System.nanoTime() + 1_000_000_000;
            long next = log.read(0, 0, 1, new Judge());
            while (System.nanoTime() - end < 0) {
                long first = log.read(next, 10, READ_MAX, judge);
                assertTrue(first >= next);
                assertEquals(0, judge.wrong);
                next = judge.count == 0 ? first : judge.next;
                events += judge.count;
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return events;
    }

    @Test
    void tellingAllocatesNothing() throws InterruptedException {
        read(0);
        store(1, 100_000);
        assertEquals(0, HeapUse.fewestBytes(5, () -> store(1, 10_000)));
    }
}
