package io.orbitkv.nativeio;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: both rings keep the contract of {@link IoRing} on a real file.
 * Method: one suite, run by a subclass for each ring; contents are functions of the page's number, so that bytes that
 * land in the wrong place are seen.
 */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
abstract class RingTest {
    private static final int PAGE = MemoryRegion.PAGE_BYTES;
    private static final int PAGES = 512;
    private static final long LONG_NANOS = 10_000_000_000L;

    private final TestFolder place = new TestFolder();
    private long bytesBefore;
    private HostFolder folder;
    private StorageFile file;
    private MemoryRegion memory;

    abstract IoRing ring(HostFolder of, int depth);

    @BeforeEach
    void makeFile() {
        bytesBefore = MemoryPurpose.totalBytes();
        folder = HostFolder.open(place.data());
        folder.lock("LOCK", 0);
        file = folder.create("file", (long) PAGES * PAGE);
        memory = MemoryRegion.anonymous((long) PAGES * PAGE, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL);
        for (int page = 0; page < PAGES; page++) {
            stamp(memory, (long) page * PAGE, page);
        }
        file.write(0, memory, 0, PAGES * PAGE);
        memory.fill(0, memory.bytes(), (byte) 0);
    }

    @AfterEach
    void removeFile() {
        memory.close();
        folder.close();
        place.close();
        assertEquals(bytesBefore, MemoryPurpose.totalBytes(), "native memory leaked");
    }

    private static void stamp(MemoryRegion region, long offset, long page) {
        for (int i = 0; i < PAGE; i += Long.BYTES) {
            region.putLong(offset + i, page * 0x9E3779B97F4A7C15L + i);
        }
    }

    private static void checkStamp(MemoryRegion region, long offset, long page) {
        for (int i = 0; i < PAGE; i += Long.BYTES) {
            assertEquals(page * 0x9E3779B97F4A7C15L + i, region.getLong(offset + i), "page " + page);
        }
    }

    private static void drain(IoRing ring, CompletionHandler handler) {
        while (ring.inFlight() > 0) {
            ring.await(LONG_NANOS);
            ring.poll(handler, 7);
        }
    }

    @Test
    void readsLandWhereTheyBelongAtFullDepth() {
        for (boolean fixed : new boolean[] {false, true}) {
            memory.fill(0, memory.bytes(), (byte) 0);
            try (IoRing ring = ring(folder, 16)) {
                if (fixed) {
                    ring.register(memory);
                }
                boolean[] seen = new boolean[PAGES];
                CompletionHandler handler = (token, result) -> {
                    assertEquals(PAGE, result);
                    assertFalse(seen[(int) token], "delivered twice");
                    seen[(int) token] = true;
                };
                int refused = 0;
                for (int page = 0; page < PAGES; page++) {
                    while (!ring.read(file, (long) page * PAGE, memory, (long) (PAGES - 1 - page) * PAGE, PAGE, page)) {
                        assertEquals(16, ring.inFlight());
                        refused++;
                        ring.await(LONG_NANOS);
                        ring.poll(handler, 5);
                    }
                }
                drain(ring, handler);
                assertTrue(refused > 0);
                for (int page = 0; page < PAGES; page++) {
                    assertTrue(seen[page]);
                    checkStamp(memory, (long) (PAGES - 1 - page) * PAGE, page);
                }
            }
        }
    }

    @Test
    void writesAndFlushesArrive() {
        try (IoRing ring = ring(folder, 8)) {
            ring.register(memory);
            long[] result = new long[3];
            stamp(memory, 0, 7777);
            stamp(memory, PAGE, 7778);
            assertTrue(ring.write(file, 40L * PAGE, memory, 0, 2 * PAGE, 1));
            drain(ring, (token, bytes) -> result[(int) token] = bytes);
            assertTrue(ring.flush(file, 2));
            drain(ring, (token, bytes) -> result[(int) token] = bytes + 1);
            assertEquals(2 * PAGE, result[1]);
            assertEquals(1, result[2]);
        }
        file.read(41L * PAGE, memory, 0, PAGE);
        checkStamp(memory, 0, 7778);
    }

    @Test
    void aHandlerMaySubmitAgain() {
        try (IoRing ring = ring(folder, 1)) {
            int[] left = {50};
            CompletionHandler again = new CompletionHandler() {
                @Override
                public void onCompletion(long token, int result) {
                    assertEquals(PAGE, result);
                    if (--left[0] > 0) {
                        assertTrue(ring.read(file, token * PAGE, memory, 0, PAGE, token + 1));
                    }
                }
            };
            assertTrue(ring.read(file, 0, memory, 0, PAGE, 1));
            drain(ring, again);
            assertEquals(0, left[0]);
            checkStamp(memory, 0, 49);
        }
    }

    @Test
    void errorsAreDelivered() {
        try (IoRing ring = ring(folder, 8)) {
            ring.register(memory);
            int[] results = new int[4];
            CompletionHandler handler = (token, result) -> results[(int) token] = result;
            assertTrue(ring.read(file, (long) PAGES * PAGE, memory, 0, PAGE, 0)); // just past the end
            assertTrue(ring.read(file, (long) (PAGES - 1) * PAGE, memory, 0, 2 * PAGE, 1)); // across the end
            assertTrue(ring.write(file, (long) (PAGES - 1) * PAGE, memory, 0, 2 * PAGE, 2));
            drain(ring, handler);
            assertEquals(-LibC.ENODATA, results[0]);
            assertEquals(-LibC.ENODATA, results[1]);
            assertEquals(-LibC.EFBIG, results[2]);
            StorageFile readOnly = folder.open("file", false);
            assertTrue(ring.write(readOnly, 0, memory, 0, PAGE, 3));
            drain(ring, handler);
            assertEquals(-LibC.EBADF, results[3]);
            readOnly.close();
            results[3] = 0;
            assertTrue(ring.read(readOnly, 0, memory, 0, PAGE, 3));
            drain(ring, handler);
            assertEquals(-LibC.EBADF, results[3]);
            assertEquals((long) PAGES * PAGE, folder.open("file", false).bytes(), "a file must not grow");
        }
    }

    @Test
    void misuseThrowsAndSubmitsNothing() throws InterruptedException {
        try (IoRing ring = ring(folder, 8)) {
            assertCode(ErrorCode.MISALIGNED, () -> ring.read(file, 1, memory, 0, PAGE, 0));
            assertCode(ErrorCode.MISALIGNED, () -> ring.read(file, 0, memory, 512, PAGE, 0));
            assertCode(ErrorCode.MISALIGNED, () -> ring.write(file, 0, memory, 0, PAGE - 1, 0));
            assertCode(ErrorCode.MISALIGNED, () -> ring.write(file, 0, memory, 0, 0, 0));
            assertCode(ErrorCode.MISALIGNED, () -> ring.write(file, -PAGE, memory, 0, PAGE, 0));
            assertCode(ErrorCode.OUT_OF_BOUNDS, () -> ring.read(file, 0, memory, memory.bytes(), PAGE, 0));
            try (HostFolder other = HostFolder.open(place.data());
                    StorageFile foreign = other.open("file", false)) {
                assertCode(ErrorCode.BAD_ARGUMENT, () -> ring.read(foreign, 0, memory, 0, PAGE, 0));
            }
            assertEquals(0, ring.inFlight());
            Throwable[] thrown = new Throwable[1];
            Thread stranger = new Thread(() -> {
                try {
                    ring.poll((token, result) -> {}, 1);
                } catch (OrbitKvException e) {
                    thrown[0] = e;
                }
            });
            stranger.start();
            stranger.join();
            assertTrue(thrown[0] != null && thrown[0].getMessage().contains("belongs to the thread"), "" + thrown[0]);
            ring.close();
            assertCode(ErrorCode.CLOSED, () -> ring.read(file, 0, memory, 0, PAGE, 0));
            ring.wakeup();
        }
    }

    private static void assertCode(ErrorCode code, org.junit.jupiter.api.function.Executable action) {
        assertEquals(code, assertThrows(OrbitKvException.class, action).code());
    }

    @Test
    void aClosedFileServesWhatIsInFlight() {
        try (IoRing ring = ring(folder, 8)) {
            StorageFile own = folder.open("file", false);
            for (int i = 0; i < 8; i++) {
                assertTrue(ring.read(own, (long) i * PAGE, memory, (long) i * PAGE, PAGE, i));
            }
            own.close();
            try (StorageFile takesTheNumber = folder.create("other", PAGE)) {
                assertEquals(PAGE, takesTheNumber.bytes());
                drain(ring, (token, result) -> assertEquals(PAGE, result));
            }
            for (int i = 0; i < 8; i++) {
                checkStamp(memory, (long) i * PAGE, i);
            }
        }
    }

    @Test
    void awaitSleepsUntilTheTimeIsOver() {
        try (IoRing ring = ring(folder, 4)) {
            ring.poll((token, result) -> fail("nothing was submitted"), 1);
            for (int i = 0; i < 3; i++) {
                long start = System.nanoTime();
                ring.await(30_000_000);
                long slept = System.nanoTime() - start;
                assertTrue(slept >= 29_000_000, "slept " + slept);
            }
            long start = System.nanoTime();
            ring.await(0);
            assertTrue(System.nanoTime() - start < LONG_NANOS / 10);
        }
    }

    @Test
    void aWakeupBeforeTheSleepIsNotLost() {
        try (IoRing ring = ring(folder, 4)) {
            for (int i = 0; i < 100; i++) {
                ring.wakeup();
                ring.wakeup();
                long start = System.nanoTime();
                ring.await(LONG_NANOS);
                assertTrue(System.nanoTime() - start < LONG_NANOS / 2, "slept through a wakeup");
            }
            long start = System.nanoTime();
            ring.await(20_000_000);
            assertTrue(System.nanoTime() - start >= 19_000_000, "one wakeup ended two sleeps");
        }
    }

    /** Two threads raise a counter and wake the owner, which must see each raise without ever sleeping for long. */
    @Test
    void noWakeupIsLostUnderStress() throws InterruptedException {
        int rounds = 20_000;
        AtomicLong asked = new AtomicLong();
        AtomicLong answered = new AtomicLong();
        try (IoRing ring = ring(folder, 4)) {
            ring.poll((token, result) -> {}, 1);
            List<Thread> wakers = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                Random random = new Random(i);
                Thread waker = new Thread(() -> {
                    for (int round = 0; round < rounds; round++) {
                        long mine = asked.incrementAndGet();
                        ring.wakeup();
                        if (random.nextInt(4) == 0) {
                            while (answered.get() < mine) {
                                Thread.onSpinWait();
                            }
                        }
                    }
                });
                wakers.add(waker);
                waker.start();
            }
            long slowest = 0;
            while (answered.get() < 2L * rounds) {
                long start = System.nanoTime();
                ring.await(2_000_000_000L);
                slowest = Math.max(slowest, System.nanoTime() - start);
                ring.poll((token, result) -> {}, 1);
                answered.set(asked.get());
            }
            assertTrue(slowest < 1_900_000_000L, "a wakeup was lost: slept " + slowest + " ns");
            for (Thread waker : wakers) {
                waker.join();
            }
        }
    }

    @Test
    void awaitEndsWhenACompletionIsThere() {
        try (IoRing ring = ring(folder, 4)) {
            for (int i = 0; i < 200; i++) {
                assertTrue(ring.read(file, 0, memory, 0, 64 * PAGE, i));
                long start = System.nanoTime();
                ring.await(LONG_NANOS);
                assertTrue(System.nanoTime() - start < LONG_NANOS / 2);
                assertEquals(1, ring.poll((token, result) -> assertEquals(64 * PAGE, result), 10));
            }
        }
    }

    @Test
    void closeWaitsForTransfersInFlight() {
        for (int round = 0; round < 50; round++) {
            IoRing ring = ring(folder, 8);
            for (int i = 0; i < 8; i++) {
                assertTrue(ring.read(file, (long) i * PAGE, memory, (long) i * PAGE, 32 * PAGE, i));
            }
            if (round % 2 == 0) {
                ring.poll((token, result) -> {}, 1);
            }
            ring.close();
            ring.close();
        }
    }

    @Test
    void aRingWhoseOwnerDiedIsClosedByAnother() throws InterruptedException {
        for (int round = 0; round < 20; round++) {
            IoRing ring = ring(folder, 8);
            int submitted = round;
            Thread owner = new Thread(() -> {
                for (int i = 0; i < 8; i++) {
                    assertTrue(ring.read(file, (long) i * PAGE, memory, (long) i * PAGE, 32 * PAGE, i));
                }
                if (submitted % 2 == 0) {
                    ring.await(submitted % 4 * 100_000L);
                }
            });
            owner.start();
            owner.join();
            ring.close();
            assertEquals(0, ring.inFlight());
        }
    }

    /** An unlinked file must give its room back even while the ring sleeps: nobody may keep it open in secret. */
    @Test
    void aClosedFileIsLetGoOfWhileTheOwnerSleeps() throws InterruptedException {
        try (IoRing ring = ring(folder, 8)) {
            long bytes = 64L << 20;
            StorageFile own = folder.create("big", bytes);
            assertTrue(ring.read(own, 0, memory, 0, PAGE, 0));
            drain(ring, (token, result) -> assertEquals(PAGE, result));
            folder.unlink("big");
            long before = folder.freeBytes();
            Thread closer = new Thread(() -> {
                LockSupport.parkNanos(20_000_000);
                own.close();
            });
            closer.start();
            ring.await(200_000_000);
            ring.await(200_000_000);
            closer.join();
            long gained = 0;
            for (int i = 0; i < 200 && gained < bytes / 2; i++) { // others use the drive too
                LockSupport.parkNanos(10_000_000);
                gained = folder.freeBytes() - before;
            }
            assertTrue(gained >= bytes / 2, "only " + gained + " bytes came back");
        }
    }

    /** A pool that is used in part is registered in part: what nobody has touched takes no memory. */
    @Test
    void memoryIsTakenInTheUnitsThatTransfersTouch() {
        long unit = 1 << 20;
        try (MemoryRegion pool = MemoryRegion.memfd("registered", 32 << 20, PageKind.SMALL, MemoryPurpose.TOOL);
                IoRing ring = ring(folder, 8)) {
            Path descriptor = Path.of("/proc/self/fd/" + pool.fd());
            ring.register(pool, unit);
            assertEquals(0, Machine.takenBytes(descriptor));
            for (int i = 0; i < 3; i++) {
                assertTrue(ring.read(file, 0, pool, 5 * unit * i, PAGE, i));
                drain(ring, (token, result) -> assertEquals(PAGE, result));
                checkStamp(pool, 5 * unit * i, 0);
                long taken = Machine.takenBytes(descriptor);
                assertTrue(taken <= (i + 1) * unit, taken + " bytes for " + (i + 1) + " units of " + unit);
            }
        }
    }

    /** One fixed buffer holds at most 1 GiB; transfers within pieces, across their border and outside all work. */
    @Test
    void memoryBeyondOneGibibyteIsRegisteredInPieces() {
        long bytes = (1L << 30) + (64L << 20);
        assumeTrue(Machine.availableBytes() > 4 * bytes, "not enough memory");
        try (MemoryRegion large = MemoryRegion.anonymous(bytes, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL);
                IoRing ring = ring(folder, 8)) {
            boolean fixed = ring.register(large);
            assertEquals(fixed, ring.register(large), "registering twice is fine");
            long border = 1L << 30;
            long[] places = {0, border - 8 * PAGE, border - 4 * PAGE, border, bytes - 8 * PAGE};
            for (int i = 0; i < places.length; i++) {
                assertTrue(ring.read(file, (long) i * 8 * PAGE, large, places[i], 8 * PAGE, i));
                drain(ring, (token, result) -> assertEquals(8 * PAGE, result));
                for (int page = 0; page < 8; page++) {
                    checkStamp(large, places[i] + (long) page * PAGE, i * 8L + page);
                }
            }
            assertTrue(ring.read(file, 0, memory, 0, PAGE, 9));
            drain(ring, (token, result) -> assertEquals(PAGE, result));
            checkStamp(memory, 0, 0);
        }
    }

    /** A pool that is registered at the start must not be taken from the machine at the start. */
    @Test
    void aRegisteredRegionTakesNoMemoryBeforeATransferTouchesIt() throws IOException {
        long bytes = 1L << 30;
        try (MemoryRegion large = MemoryRegion.anonymous(bytes, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL);
                IoRing ring = ring(folder, 8)) {
            long before = residentBytes();
            ring.register(large);
            assertTrue(ring.read(file, 0, large, bytes / 2, PAGE, 0));
            drain(ring, (token, result) -> assertEquals(PAGE, result));
            checkStamp(large, bytes / 2, 0);
            long taken = residentBytes() - before;
            assertTrue(taken < bytes / 4, taken + " bytes were taken of " + bytes + " with one page read");
        }
    }

    private static long residentBytes() throws IOException {
        String[] pages = Files.readString(Path.of("/proc/self/statm")).split(" ");
        return Long.parseLong(pages[1]) * PAGE;
    }

    @Test
    void manyFilesAreServedAtOnce() {
        try (IoRing ring = ring(folder, 32)) {
            int files = 1500; // more than a ring has places for
            StorageFile[] open = new StorageFile[files];
            for (int i = 0; i < files; i++) {
                open[i] = folder.open("file", false);
            }
            int[] delivered = {0};
            CompletionHandler handler = (token, result) -> {
                assertEquals(PAGE, result);
                delivered[0]++;
            };
            for (int round = 0; round < 2; round++) {
                for (int i = 0; i < files; i++) {
                    while (!ring.read(open[i], (long) (i % PAGES) * PAGE, memory, (long) (i % PAGES) * PAGE, PAGE, i)) {
                        ring.await(LONG_NANOS);
                        ring.poll(handler, 32);
                    }
                }
            }
            drain(ring, handler);
            assertEquals(2 * files, delivered[0]);
            for (StorageFile one : open) {
                one.close();
            }
        }
    }

    @Test
    void steadyStateAllocatesNothing() {
        com.sun.management.ThreadMXBean threads =
                (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
        try (IoRing ring = ring(folder, 16)) {
            ring.register(memory);
            CompletionHandler handler = (token, result) -> {};
            steady(ring, handler, 20_000);
            long before = threads.getCurrentThreadAllocatedBytes();
            steady(ring, handler, 10_000);
            long allocated = threads.getCurrentThreadAllocatedBytes() - before;
            assertTrue(allocated < 10_000, allocated + " bytes for 10,000 reads");
        }
    }

    private void steady(IoRing ring, CompletionHandler handler, int reads) {
        for (int i = 0; i < reads; i++) {
            while (!ring.read(file, (long) (i % PAGES) * PAGE, memory, 0, PAGE, i)) {
                ring.await(LONG_NANOS);
                ring.poll(handler, 16);
            }
        }
        drain(ring, handler);
    }
}
