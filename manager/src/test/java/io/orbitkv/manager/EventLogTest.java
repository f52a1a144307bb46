package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Goal: whoever follows events sees each of them, or that some are missing. Method: a log by itself. */
@Timeout(60)
class EventLogTest {
    private static final byte[] FAMILY = new byte[32];
    private static final UnsafeBuffer KEYS = new UnsafeBuffer(new byte[64 * Wire.KEY_BYTES]);

    private final EventLog log = new EventLog();
    private final EventsSeen seen = new EventsSeen(EventLog.EVENTS_MAX);

    private long read(long from) throws InterruptedException {
        return log.read(from, 0, EventLog.EVENTS_MAX, seen.clear());
    }

    /** vllm 45174, llm-d-router 2853: a replay that lost its place left blocks indexed that were gone. */
    @Test
    void reported_vllm_45174_whatIsMissingShows() throws InterruptedException {
        log.stored(FAMILY, 0, KEYS, 0, 3);
        assertEquals(4, read(0), "nobody had asked: those three are not told, and it shows");
        assertEquals(4, read(1));
        assertEquals(0, seen.count());
        log.stored(FAMILY, 5, KEYS, 0, 2);
        log.cleared(FAMILY);
        assertEquals(4, read(4));
        assertEquals(3, seen.count());
        assertEquals(6, seen.sequence(2));
        assertEquals(5, seen.shard(0));
        assertEquals(EventLog.Kind.CLEARED, seen.kind(2));
        assertEquals(6, read(6));
        assertEquals(1, seen.count());
        for (int i = 0; i < EventLog.EVENTS_MAX / 64; i++) {
            log.stored(FAMILY, 0, KEYS, 0, 64);
        }
        assertEquals(7, read(4), "what it was asked for has left the ring");
        assertEquals(EventLog.EVENTS_MAX, seen.count());
        for (int i = 0; i < seen.count(); i++) {
            assertEquals(7 + i, seen.sequence(i));
        }
    }

    @Test
    void aWaitEndsWithTheNextEventOrInTime() throws Exception {
        long next = read(0);
        CompletableFuture<Integer> waiting = CompletableFuture.supplyAsync(() -> {
            try {
                log.read(next, 50_000, 10, seen.clear());
                return seen.count();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        log.cleared(FAMILY);
        assertEquals(1, waiting.get(40, TimeUnit.SECONDS));
        long began = System.nanoTime();
        assertEquals(next + 1, log.read(next + 1, 20, 10, seen.clear()));
        assertEquals(0, seen.count());
        assertTrue(System.nanoTime() - began >= 20_000_000);
    }
}
