package io.orbitkv.kit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.orbitkv.nativeio.CompletionHandler;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: every ring keeps the promises of {@link IoRing}, so that the store may run on any of them.
 * Method: one suite, a subclass a ring; seeded transfers of all sizes whose bytes, tokens and results are compared with
 * what was asked for, and threads that wake a sleeping owner.
 */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
public abstract class IoRingContract {
    private static final int PAGE = MemoryRegion.PAGE_BYTES;
    private static final int FILE_BYTES = 16 << 20;
    private static final int LARGE_BYTES = 4 << 20;
    private static final int DEPTH = 16;
    private static final long SECOND_NANOS = 1_000_000_000;
    private static final long DRAIN_NANOS_MAX = 30 * SECOND_NANOS;

    private DataFolder folder;
    private StorageFile file;
    private MemoryRegion memory;
    private Gen gen;

    /** For subclasses. */
    protected IoRingContract() {}

    /** Opens an empty folder. */
    protected abstract DataFolder openFolder() throws Exception;

    /** What stands behind the rings under test. */
    protected abstract IoRing.Kind kind();

    /** Whether waiting takes real time; false for a simulated clock. */
    protected boolean takesRealTime() {
        return true;
    }

    /** Whether the ring claims to allocate nothing once it is warm. */
    protected boolean allocatesNothing() {
        return true;
    }

    @BeforeEach
    void open() throws Exception {
        gen = new Gen(Seed.of(getClass()));
        folder = openFolder();
        file = folder.create("ring-contract", FILE_BYTES);
        memory = MemoryRegion.anonymous(2L * FILE_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
    }

    @AfterEach
    void close() {
        if (memory != null) {
            file.close();
            folder.close();
            memory.close();
        }
    }

    private IoRing newRing(int depth) {
        return folder.newRing(depth);
    }

    /** Completions as they came. */
    private static final class Collected implements CompletionHandler {
        private final BitSet tokens = new BitSet();
        private int completions;
        private int lastResult;

        @Override
        public void onCompletion(long token, int result) {
            assertFalse(tokens.get((int) token), "completed twice: " + token);
            tokens.set((int) token);
            completions++;
            lastResult = result;
        }
    }

    private static void drain(IoRing ring, CompletionHandler handler) {
        long start = System.nanoTime();
        while (ring.inFlight() > 0) {
            ring.await(SECOND_NANOS / 10);
            ring.poll(handler, Integer.MAX_VALUE);
            assertTrue(System.nanoTime() - start < DRAIN_NANOS_MAX, "transfers never end: " + ring.inFlight());
        }
    }

    /** Runs one transfer that was submitted to an idle ring; its result. */
    private static int resultOf(IoRing ring, boolean submitted) {
        assertTrue(submitted, "an idle ring refused");
        Collected collected = new Collected();
        drain(ring, collected);
        assertEquals(1, collected.completions);
        return collected.lastResult;
    }

    @Test
    void kindIsTheOneUnderTest() {
        try (IoRing ring = newRing(DEPTH)) {
            assertEquals(kind(), ring.kind());
            assertTrue(ring.depth() >= 1 && ring.depth() <= DEPTH, "depth " + ring.depth());
        }
    }

    @Test
    void readsBackWhatWasWrittenInAllSizes() {
        try (IoRing ring = newRing(DEPTH)) {
            for (int round = 0; round < 40; round++) {
                int bytes = round == 0 ? PAGE : round == 1 ? LARGE_BYTES : gen.size(1, LARGE_BYTES / PAGE) * PAGE;
                long fileOffset = gen.between(0, (FILE_BYTES - bytes) / PAGE) * (long) PAGE;
                long from = gen.between(0, (FILE_BYTES - bytes) / PAGE) * (long) PAGE;
                long into = FILE_BYTES + gen.between(0, (FILE_BYTES - bytes) / PAGE) * (long) PAGE;
                gen.fill(memory, from, bytes);
                assertEquals(bytes, resultOf(ring, ring.write(file, fileOffset, memory, from, bytes, 1)));
                assertEquals(bytes, resultOf(ring, ring.read(file, fileOffset, memory, into, bytes, 2)));
                assertTrue(memory.sameBytes(from, memory, into, bytes), "read other bytes than were written");
                memory.fill(into, bytes, (byte) 0);
                file.read(fileOffset, memory, into, bytes);
                assertTrue(memory.sameBytes(from, memory, into, bytes), "a blocking read sees other bytes");
            }
        }
    }

    @Test
    void manyInFlightLandWhereTheyBelong() {
        int pieceBytes = 64 << 10;
        int pieces = FILE_BYTES / pieceBytes;
        int[] order = new int[pieces];
        for (int i = 0; i < pieces; i++) {
            order[i] = i;
        }
        gen.shuffle(order);
        gen.fill(memory, 0, FILE_BYTES);
        try (IoRing ring = newRing(DEPTH)) {
            Collected written = new Collected();
            for (int i : order) {
                long at = (long) i * pieceBytes;
                while (!ring.write(file, at, memory, at, pieceBytes, i)) {
                    ring.await(SECOND_NANOS);
                    ring.poll(written, gen.between(1, DEPTH));
                }
            }
            drain(ring, written);
            assertEquals(pieces, written.completions);
            Collected read = new Collected();
            for (int i : order) {
                long at = (long) i * pieceBytes;
                while (!ring.read(file, at, memory, FILE_BYTES + at, pieceBytes, i)) {
                    ring.await(SECOND_NANOS);
                    ring.poll(read, gen.between(1, DEPTH));
                }
            }
            drain(ring, read);
            assertEquals(pieces, read.completions);
        }
        assertTrue(memory.sameBytes(0, memory, FILE_BYTES, FILE_BYTES));
    }

    @Test
    void fullRingRefusesAndLosesNothing() {
        try (IoRing ring = newRing(DEPTH)) {
            int accepted = 0;
            while (ring.read(file, 0, memory, (long) accepted * PAGE, PAGE, accepted)) {
                accepted++;
                assertEquals(accepted, ring.inFlight());
                assertTrue(accepted <= ring.depth(), "more in flight than the depth");
            }
            assertEquals(ring.depth(), accepted);
            assertFalse(ring.write(file, 0, memory, 0, PAGE, 1_000));
            assertFalse(ring.flush(file, 1_001));
            Collected collected = new Collected();
            drain(ring, collected);
            assertEquals(accepted, collected.completions);
            assertEquals(accepted, collected.tokens.cardinality());
            assertEquals(accepted, collected.tokens.length());
            assertTrue(ring.read(file, 0, memory, 0, PAGE, 1), "room again after the completions");
        }
    }

    @Test
    void everyTokenComesBackOnceWithTheWholeLength() {
        int transfers = 1_500;
        int[] lengths = new int[transfers];
        BitSet seen = new BitSet();
        CompletionHandler handler = (token, result) -> {
            assertFalse(seen.get((int) token), "completed twice: " + token);
            seen.set((int) token);
            assertEquals(lengths[(int) token], result, "result of transfer " + token);
        };
        try (IoRing ring = newRing(DEPTH)) {
            for (int i = 0; i < transfers; ) {
                int bytes = gen.size(1, 16) * PAGE;
                long at = gen.between(0, (FILE_BYTES - bytes) / PAGE) * (long) PAGE;
                int kind = gen.below(8);
                lengths[i] = kind == 0 ? 0 : bytes;
                boolean submitted = kind == 0
                        ? ring.flush(file, i)
                        : kind < 4
                                ? ring.write(file, at, memory, at, bytes, i)
                                : ring.read(file, at, memory, FILE_BYTES + at, bytes, i);
                i += submitted ? 1 : 0;
                if (!submitted || gen.below(4) == 0) {
                    int limit = gen.below(DEPTH + 1);
                    if (!submitted) {
                        ring.await(SECOND_NANOS);
                    }
                    assertTrue(ring.poll(handler, limit) <= limit);
                }
            }
            drain(ring, handler);
            assertEquals(transfers, seen.cardinality());
            assertEquals(0, ring.inFlight());
            assertEquals(0, ring.poll(handler, DEPTH), "something is delivered though nothing is in flight");
        }
    }

    @Test
    void pollKeepsWhatItsLimitLeaves() {
        try (IoRing ring = newRing(DEPTH)) {
            for (int i = 0; i < 6; i++) {
                assertTrue(ring.read(file, 0, memory, (long) i * PAGE, PAGE, i));
            }
            Collected collected = new Collected();
            assertEquals(0, ring.poll(collected, 0));
            long start = System.nanoTime();
            while (ring.inFlight() > 0) {
                int before = collected.completions;
                ring.await(SECOND_NANOS / 10);
                assertEquals(ring.poll(collected, 1), collected.completions - before);
                assertEquals(6 - collected.completions, ring.inFlight());
                assertTrue(System.nanoTime() - start < DRAIN_NANOS_MAX);
            }
            assertEquals(6, collected.completions);
        }
    }

    @Test
    void flushAnswersZero() {
        try (IoRing ring = newRing(DEPTH)) {
            assertEquals(PAGE, resultOf(ring, ring.write(file, 0, memory, 0, PAGE, 1)));
            assertEquals(0, resultOf(ring, ring.flush(file, 2)));
        }
    }

    @Test
    void transfersPastTheEndAnswerAnError() {
        try (IoRing ring = newRing(DEPTH)) {
            assertTrue(resultOf(ring, ring.read(file, FILE_BYTES, memory, 0, PAGE, 1)) < 0);
            assertTrue(resultOf(ring, ring.read(file, FILE_BYTES - PAGE, memory, 0, 2 * PAGE, 2)) < 0);
            assertTrue(resultOf(ring, ring.write(file, FILE_BYTES, memory, 0, PAGE, 3)) < 0);
            assertTrue(resultOf(ring, ring.write(file, FILE_BYTES - PAGE, memory, 0, 2 * PAGE, 4)) < 0);
            assertEquals(PAGE, resultOf(ring, ring.read(file, FILE_BYTES - PAGE, memory, 0, PAGE, 5)));
        }
        file.close();
        file = folder.open("ring-contract", true);
        assertEquals(FILE_BYTES, file.bytes(), "a file never grows");
    }

    @Test
    void registeredMemoryAndOtherMemoryServeAlike() {
        try (MemoryRegion other = MemoryRegion.anonymous(FILE_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
                MemoryRegion third = MemoryRegion.anonymous(LARGE_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
                IoRing ring = newRing(DEPTH)) {
            ring.register(memory);
            ring.register(third);
            for (int round = 0; round < 30; round++) {
                int bytes = gen.size(1, LARGE_BYTES / PAGE) * PAGE;
                long at = gen.between(0, (FILE_BYTES - bytes) / PAGE) * (long) PAGE;
                MemoryRegion from = gen.pick(memory, other, third);
                MemoryRegion into = gen.pick(other, third, memory);
                gen.fill(from, 0, bytes);
                assertEquals(bytes, resultOf(ring, ring.write(file, at, from, 0, bytes, 1)));
                from.fill(0, PAGE, (byte) 0);
                long intoOffset = into.bytes() - bytes;
                assertEquals(bytes, resultOf(ring, ring.read(file, at, into, intoOffset, bytes, 2)));
                other.fill(0, bytes, (byte) 0);
                file.read(at, memory, 0, bytes);
                if (into != memory && into != other) {
                    assertTrue(memory.sameBytes(0, into, intoOffset, bytes));
                }
                assertEquals(bytes, resultOf(ring, ring.read(file, at, other, 0, bytes, 3)));
                assertTrue(memory.sameBytes(0, other, 0, bytes));
            }
        }
    }

    @Test
    void handlerMaySubmitAgain() {
        int chain = 500;
        try (IoRing ring = newRing(1)) {
            int[] links = {0};
            CompletionHandler handler = new CompletionHandler() {
                @Override
                public void onCompletion(long token, int result) {
                    assertEquals(links[0], (int) token);
                    assertEquals(PAGE, result);
                    links[0]++;
                    if (links[0] < chain) {
                        assertTrue(ring.read(file, 0, memory, 0, PAGE, links[0]), "the delivered one made room");
                    }
                }
            };
            assertTrue(ring.read(file, 0, memory, 0, PAGE, 0));
            drain(ring, handler);
            assertEquals(chain, links[0]);
        }
    }

    @Test
    void awaitEndsAfterItsTimeout() {
        try (IoRing ring = newRing(DEPTH)) {
            long start = System.nanoTime();
            ring.await(0);
            ring.await(SECOND_NANOS / 20);
            long took = System.nanoTime() - start;
            assertTrue(!takesRealTime() || took >= SECOND_NANOS / 20 - SECOND_NANOS / 500, "too early: " + took);
            assertTrue(took < 5 * SECOND_NANOS, "too late: " + took);
        }
    }

    @Test
    void awaitEndsWithACompletion() {
        try (IoRing ring = newRing(DEPTH)) {
            for (int round = 0; round < 200; round++) {
                assertTrue(ring.read(file, 0, memory, 0, PAGE, 1));
                long start = System.nanoTime();
                Collected collected = new Collected();
                while (collected.completions == 0) {
                    ring.await(20 * SECOND_NANOS);
                    ring.poll(collected, 1);
                }
                assertTrue(System.nanoTime() - start < 10 * SECOND_NANOS, "slept though the transfer had ended");
            }
        }
    }

    @Test
    void wakeupBeforeAwaitIsNotLostAndCountsOnce() {
        try (IoRing ring = newRing(DEPTH)) {
            ring.await(0);
            ring.wakeup();
            ring.wakeup();
            long start = System.nanoTime();
            ring.await(20 * SECOND_NANOS);
            assertTrue(System.nanoTime() - start < 10 * SECOND_NANOS, "the wakeup was lost");
            start = System.nanoTime();
            ring.await(SECOND_NANOS / 20);
            assertTrue(
                    !takesRealTime() || System.nanoTime() - start >= SECOND_NANOS / 25,
                    "a wakeup that was used up counts");
        }
    }

    @Test
    void wakeupDuringAwaitEndsIt() throws Exception {
        int rounds = takesRealTime() ? 3_000 : 100;
        AtomicInteger asked = new AtomicInteger();
        AtomicInteger answered = new AtomicInteger();
        try (IoRing ring = newRing(DEPTH)) {
            ring.await(0); // this thread is the owner
            Thread waker = new Thread(() -> {
                for (int i = 1; i <= rounds; i++) {
                    asked.set(i);
                    ring.wakeup();
                    while (answered.get() < i && !Thread.currentThread().isInterrupted()) {
                        Thread.yield();
                    }
                }
            });
            waker.start();
            Collected collected = new Collected();
            int reads = 0;
            while (answered.get() < rounds) {
                int before = asked.get();
                if (before == answered.get()) {
                    if (before % 7 == 0 && ring.inFlight() == 0) {
                        ring.read(file, 0, memory, 0, PAGE, reads++); // a completion and a wakeup at once
                    }
                    long start = System.nanoTime();
                    ring.await(30 * SECOND_NANOS);
                    assertTrue(System.nanoTime() - start < 15 * SECOND_NANOS, "lost wakeup in round " + before);
                    ring.poll(collected, DEPTH);
                }
                answered.set(asked.get());
            }
            waker.join();
            drain(ring, collected);
            assertEquals(reads, collected.completions);
        }
    }

    @Test
    void closeWaitsForTransfersInFlight() {
        for (int round = 0; round < 10; round++) {
            gen.fill(memory, 0, FILE_BYTES);
            int bytes = FILE_BYTES / DEPTH;
            IoRing ring = newRing(DEPTH);
            for (int i = 0; i < ring.depth(); i++) {
                assertTrue(ring.write(file, (long) i * bytes, memory, (long) i * bytes, bytes, i));
            }
            int submitted = ring.depth();
            ring.close();
            file.read(0, memory, FILE_BYTES, submitted * bytes);
            assertTrue(
                    memory.sameBytes(0, memory, FILE_BYTES, (long) submitted * bytes), "close came before its writes");
        }
    }

    @Test
    void closedRingRefusesAndMayBeWokenAndClosedAgain() {
        IoRing ring = newRing(DEPTH);
        ring.close();
        ring.close();
        ring.wakeup();
        assertEquals(
                ErrorCode.CLOSED,
                assertThrows(OrbitKvException.class, () -> ring.read(file, 0, memory, 0, PAGE, 1))
                        .code());
    }

    @Test
    void misuseIsRefused() throws Exception {
        try (IoRing ring = newRing(DEPTH)) {
            refused(ErrorCode.MISALIGNED, () -> ring.read(file, 1, memory, 0, PAGE, 1));
            refused(ErrorCode.MISALIGNED, () -> ring.read(file, 0, memory, 512, PAGE, 1));
            refused(ErrorCode.MISALIGNED, () -> ring.write(file, 0, memory, 0, PAGE + 1, 1));
            refused(ErrorCode.OUT_OF_BOUNDS, () -> ring.write(file, 0, memory, memory.bytes(), PAGE, 1));
            AtomicBoolean refusedThere = new AtomicBoolean();
            Thread other = new Thread(() -> {
                refused(ErrorCode.BAD_ARGUMENT, () -> ring.poll((token, result) -> {}, 1));
                refusedThere.set(true);
            });
            other.start();
            other.join();
            assertTrue(refusedThere.get(), "another thread than the owner may poll");
            assertEquals(0, ring.inFlight());
        }
        refused(ErrorCode.BAD_ARGUMENT, () -> newRing(0).close());
    }

    private static void refused(ErrorCode code, org.junit.jupiter.api.function.Executable misuse) {
        assertEquals(code, assertThrows(OrbitKvException.class, misuse).code());
    }

    @Test
    void twoHundredRingsLeaveNothingBehind() {
        leavesNothingBehind(200);
    }

    @Test
    void thousandRingsLeaveNothingBehind() {
        assumeTrue(takesRealTime(), "a simulated ring holds nothing of the machine");
        leavesNothingBehind(1_000);
    }

    private void leavesNothingBehind(int cycles) {
        cycle();
        LeakCheck before = LeakCheck.take();
        for (int i = 0; i < cycles; i++) {
            cycle();
        }
        before.assertNothingLeaked();
    }

    private void cycle() {
        try (IoRing ring = newRing(4)) {
            ring.register(memory);
            assertTrue(ring.write(file, 0, memory, 0, PAGE, 1));
            assertTrue(ring.read(file, PAGE, memory, PAGE, PAGE, 2));
            ring.poll((token, result) -> {}, 1);
        }
    }

    @Test
    void warmRingAllocatesNothing() {
        assumeTrue(allocatesNothing(), "this ring does not claim it");
        try (IoRing ring = newRing(DEPTH)) {
            ring.register(memory);
            int[] completions = {0};
            CompletionHandler handler = (token, result) -> completions[0]++;
            transfer(ring, handler, 20_000);
            long fewest = HeapUse.fewestBytes(5, () -> transfer(ring, handler, 2_000));
            assertEquals(0, fewest, "bytes allocated for 2,000 transfers");
            assertTrue(completions[0] > 20_000);
        }
    }

    private void transfer(IoRing ring, CompletionHandler handler, int count) {
        for (int i = 0; i < count; i++) {
            while (!submit(ring, i)) {
                ring.await(SECOND_NANOS);
                ring.poll(handler, DEPTH);
            }
        }
        while (ring.inFlight() > 0) {
            ring.await(SECOND_NANOS);
            ring.poll(handler, DEPTH);
        }
    }

    private boolean submit(IoRing ring, int i) {
        long at = (long) (i & 15) * PAGE;
        return (i & 3) == 0 ? ring.write(file, at, memory, at, PAGE, i) : ring.read(file, at, memory, at, PAGE, i);
    }
}
