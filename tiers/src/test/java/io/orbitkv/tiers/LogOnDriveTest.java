package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.LeakCheck;
import io.orbitkv.kit.Payload;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.WindowProbe;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.AgentRunner;
import org.agrona.concurrent.SystemNanoClock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: on a real drive with a thread of its own the log keeps up with a writer and several readers, allocates nothing,
 * costs nothing when idle, and ends cleanly.
 * Method: direct files below target/, the ring that the machine offers, an AgentRunner; allocation and CPU time of the
 * agent's thread as the JVM counts them.
 */
class LogOnDriveTest {
    private static final int BLOCKS_MAX = 1 << 16;
    private static final long WAIT_NANOS = 30_000_000_000L;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final TestFolders folders = new TestFolders();
    private final Object writerLock = new Object();
    private final long seed = Seed.of(LogOnDriveTest.class);
    private LeakCheck before;

    /** Where each block lies, by position; allocates nothing. */
    private static final class Ledger implements NvmeListener {
        final AtomicLongArray extents = new AtomicLongArray(BLOCKS_MAX);
        final AtomicReference<OrbitKvException> failure = new AtomicReference<>();
        final BlockListing look = new BlockListing();
        HostTier host;

        @Override
        public void onBatchWritten(long[] hostExtents, long[] nvmeExtents, int count) {
            for (int i = 0; i < count; i++) {
                extents.setRelease(slot(host.listing(hostExtents[i], look).birth()), nvmeExtents[i]);
            }
        }

        @Override
        public void onSegment(
                int segment, long useSequence, SegmentState state, int blocks, int payloadPages, int overheadPages) {}

        @Override
        public void onFailure(OrbitKvException reason) {
            failure.set(reason);
        }
    }

    private static int slot(long position) {
        return (int) position & (BLOCKS_MAX - 1);
    }

    /** A log on a folder, running. */
    private final class Running implements AutoCloseable {
        final HostFolder folder;
        final Generations generations;
        final HostTier host;
        final Ledger ledger = new Ledger();
        final NvmeTier log;
        final AgentRunner runner;
        final Thread thread;
        final BlockListing listing = new BlockListing();
        volatile boolean stopping;
        volatile boolean stopped;
        final io.orbitkv.nativeio.IoRing.Kind kind;
        long position;

        Running(int segmentBytes, int segments, NvmeOptions options) {
            folder = HostFolder.open(folders.make("drive"));
            folder.lock("LOCK", 0);
            LogGeometry geometry = new LogGeometry(segmentBytes, segments, Listings.STORE_ID);
            LogRig.createFiles(folder, geometry);
            generations = new Generations(segments);
            host = new HostTier(64 << 20, 4 << 20, 4, PageKind.TRANSPARENT_HUGE, EvictionPolicy.SECOND_CHANCE);
            ledger.host = host;
            try (io.orbitkv.nativeio.IoRing ring = folder.newRing(8)) {
                kind = ring.kind();
            }
            log = new NvmeTier(
                    DataFolders.of(folder),
                    geometry,
                    new LogState(segments),
                    generations,
                    host,
                    ledger,
                    SystemNanoClock.INSTANCE,
                    WindowProbe.NONE,
                    options);
            runner = new AgentRunner(log.idleStrategy(), failure -> {}, null, new Stopping());
            thread = AgentRunner.startOnThread(runner);
        }

        /** Works until a stop is asked for, then stops step by step. */
        private final class Stopping implements org.agrona.concurrent.Agent {
            @Override
            public void onStart() {
                log.onStart();
            }

            @Override
            public int doWork() {
                if (!stopping) {
                    return log.doWork();
                }
                stopped = stopped || log.stop();
                return 0;
            }

            @Override
            public void onClose() {
                log.onClose();
            }

            @Override
            public String roleName() {
                return "log";
            }
        }

        /** Saves a block; waits where host memory or queue is full. */
        void save(int lane, int bytes, boolean fill) {
            long start = System.nanoTime();
            while (!trySave(lane, bytes, fill)) {
                assertTrue(System.nanoTime() - start < WAIT_NANOS, "the log does not get on");
                assertNull(ledger.failure.get());
                LockSupport.parkNanos(50_000);
            }
        }

        private boolean trySave(int lane, int bytes, boolean fill) {
            synchronized (writerLock) {
                long extent = log.queueFree() == 0 ? Extent.NONE : host.claim(lane, bytes);
                if (extent == Extent.NONE) {
                    return false;
                }
                position++;
                if (fill) {
                    Payload.fill(host.memory(), host.payloadOffset(extent), bytes, position, seed);
                }
                host.listing(extent, listing).clear().birth(position).storedBytes(bytes);
                log.offer(extent, position, lane);
                return true;
            }
        }

        void flush() {
            log.requestFlush();
            await(() -> log.durablePosition() >= position);
        }

        void await(java.util.function.BooleanSupplier condition) {
            long start = System.nanoTime();
            while (!condition.getAsBoolean()) {
                assertTrue(System.nanoTime() - start < WAIT_NANOS, "waited too long");
                assertNull(ledger.failure.get());
                LockSupport.parkNanos(50_000);
            }
        }

        @Override
        public void close() {
            stopping = true;
            log.wakeup();
            await(() -> stopped);
            assertEquals(TierState.STOPPED, log.state());
            assertEquals(position, log.durablePosition());
            runner.close();
            log.close();
            host.close();
            generations.close();
            folder.close();
        }
    }

    @BeforeEach
    void note() {
        try (Running warm = new Running(1 << 20, 8, NvmeOptions.defaults())) {
            warm.save(0, 4096, true);
        }
        before = LeakCheck.take();
    }

    @AfterEach
    void leaveNothing() {
        before.assertNothingLeaked();
        folders.close();
    }

    @Test
    void readersGetRightBytesWhileTheLogIsReused() throws InterruptedException {
        int bytes = (64 << 10) - 100;
        AtomicLong checked = new AtomicLong();
        AtomicReference<Throwable> wrong = new AtomicReference<>();
        try (Running run = new Running(1 << 20, 48, NvmeOptions.defaults())) {
            List<Thread> readers = new ArrayList<>();
            AtomicLong newest = new AtomicLong();
            AtomicReference<Boolean> ended = new AtomicReference<>(false);
            for (int i = 0; i < 3; i++) {
                Gen gen = new Gen(seed + i);
                Thread reader = new Thread(() -> {
                    try {
                        readLoop(run, gen, bytes, newest, ended, checked);
                    } catch (Throwable e) {
                        wrong.compareAndSet(null, e);
                    }
                });
                readers.add(reader);
                reader.start();
            }
            for (int i = 0; i < 4_000; i++) {
                run.save(i / 16 % 4, bytes, true);
                newest.set(run.log.writtenPosition());
            }
            run.flush();
            newest.set(run.log.writtenPosition()); // what was written when the last save came may be gone by now
            long deadline = System.nanoTime() + WAIT_NANOS;
            while (checked.get() < 2_000 && wrong.get() == null && System.nanoTime() < deadline) {
                LockSupport.parkNanos(1_000_000);
            }
            ended.set(true);
            for (Thread reader : readers) {
                reader.join();
            }
            assertNull(wrong.get(), () -> "" + wrong.get());
            assertTrue(checked.get() >= 2_000, "too few reads: " + checked);
            assertTrue(run.log.counters().segmentsReused() > 200);
            assertEquals(4_000, run.log.counters().blocksWritten());
        }
    }

    private void readLoop(
            Running run, Gen gen, int bytes, AtomicLong newest, AtomicReference<Boolean> ended, AtomicLong checked) {
        int padded = (int) NvmeTier.pagesBytes(bytes);
        int readsMax = 16;
        ReadBatch batch = new ReadBatch();
        long[] positions = new long[readsMax];
        try (MemoryRegion target =
                MemoryRegion.anonymous((long) readsMax * padded, PageKind.TRANSPARENT_HUGE, MemoryPurpose.CALLER)) {
            while (!ended.get()) {
                batch.clear();
                long last = newest.get();
                for (int i = gen.between(1, readsMax); i > 0 && last > 0; i--) {
                    long position = gen.between(Math.max(1, last - 600), last);
                    long extent = run.ledger.extents.getAcquire(slot(position));
                    if (extent != Extent.NONE && run.log.pin(extent)) {
                        positions[batch.count()] = position;
                        batch.add(extent, bytes, target, (long) batch.count() * padded);
                    }
                }
                assertTrue(run.log.submit(batch));
                assertTrue(batch.await(WAIT_NANOS), "a read took too long");
                for (int i = 0; i < batch.count(); i++) {
                    assertTrue(batch.result(i) == ReadResult.DONE, "a pinned block was not read");
                    long difference = Payload.firstDifference(target, batch.offset(i), bytes, positions[i], seed);
                    assertEquals(Payload.NO_DIFFERENCE, difference, "block " + positions[i]);
                    run.log.unpin(batch.extent(i));
                    checked.incrementAndGet();
                }
                if (batch.count() == 0) {
                    LockSupport.parkNanos(100_000);
                }
            }
        }
    }

    @Test
    void idleCostsNothingAndWakesAtOnce() {
        try (Running run = new Running(1 << 20, 16, NvmeOptions.defaults())) {
            for (int i = 0; i < 50; i++) {
                run.save(i % 4, 4096, true);
            }
            run.flush();
            LockSupport.parkNanos(300_000_000);
            long id = run.thread.getId();
            long used = Long.MAX_VALUE;
            // A busy machine makes each wake-up dearer: the best of a few windows shows what the log itself does.
            for (int window = 0; window < 3 && used >= 10_000_000; window++) {
                long cpu = THREADS.getThreadCpuTime(id);
                long start = System.nanoTime();
                while (System.nanoTime() - start < 2_000_000_000L) {
                    LockSupport.parkNanos(100_000_000);
                }
                used = THREADS.getThreadCpuTime(id) - cpu;
            }
            assertTrue(used < 10_000_000, "an idle log used " + used + " ns in 2 s");
            long asked = System.nanoTime();
            run.save(0, 4096, true);
            run.flush();
            long took = System.nanoTime() - asked;
            assertTrue(took < 500_000_000, "a sleeping log took " + took + " ns to flush a block");
        }
    }

    /** The log is woken for a lane's first block only; none may be slept over. */
    @Test
    void everyBlockIsWrittenSoonThoughTheLogSleeps() {
        Gen gen = new Gen(seed);
        try (Running run = new Running(1 << 20, 16, NvmeOptions.defaults().withBatches(8 << 20, 200_000))) {
            long slowest = 0;
            for (int round = 0; round < 2_000; round++) {
                for (int i = gen.between(1, 6); i > 0; i--) {
                    run.save(gen.below(4), 4096, false);
                    for (int spin = gen.below(2_000); spin > 0; spin--) {
                        Thread.onSpinWait();
                    }
                }
                if (round % 4 != 0) {
                    continue;
                }
                long start = System.nanoTime();
                run.await(() -> run.log.writtenPosition() >= run.position);
                slowest = Math.max(slowest, System.nanoTime() - start);
            }
            assertTrue(slowest < 800_000_000, "a block waited for " + slowest + " ns");
        }
    }

    @Test
    void steadyStateAllocatesNothing() {
        int bytes = 64 << 10;
        try (Running run = new Running(1 << 20, 32, NvmeOptions.defaults());
                MemoryRegion target = MemoryRegion.anonymous(8L * bytes, PageKind.SMALL, MemoryPurpose.CALLER)) {
            ReadBatch batch = new ReadBatch();
            work(run, batch, target, 3_000, bytes);
            long agent = run.thread.getId();
            long reused = run.log.counters().segmentsReused();
            long least = Long.MAX_VALUE;
            // the JIT may box once more while it compiles: the best round shows what the code does
            for (int round = 0; round < 20 && least > 0; round++) {
                long ofAgent = THREADS.getThreadAllocatedBytes(agent);
                long ofCaller = THREADS.getCurrentThreadAllocatedBytes();
                work(run, batch, target, 1_000, bytes);
                long caller = THREADS.getCurrentThreadAllocatedBytes() - ofCaller;
                least = Math.min(least, THREADS.getThreadAllocatedBytes(agent) - ofAgent + caller);
            }
            assertTrue(run.log.counters().segmentsReused() > reused);
            assertEquals(0, least, "bytes allocated by agent and caller");
        }
    }

    /** Saves and reads back now and then, without allocating here. */
    private void work(Running run, ReadBatch batch, MemoryRegion target, int blocks, int bytes) {
        for (int i = 0; i < blocks; i++) {
            while (!run.trySave(i / 16 % 4, bytes, false)) {
                Thread.onSpinWait();
            }
            if (i % 10 == 0) {
                batch.clear();
                for (int k = 0; k < 8; k++) {
                    long extent = run.ledger.extents.getAcquire(slot(Math.max(1, run.position - 40 - k)));
                    if (extent != Extent.NONE && run.log.pin(extent)) {
                        batch.add(extent, bytes, target, (long) k * bytes);
                    }
                }
                if (run.log.submit(batch)) {
                    batch.await(WAIT_NANOS);
                }
                for (int k = 0; k < batch.count(); k++) {
                    run.log.unpin(batch.extent(k));
                }
            }
        }
    }

    /** Sanity, not a benchmark: {@code -Dorbitkv.rates=true} writes more and prints what this machine does. */
    @Test
    void writesFasterThanAnyEngineSaves() {
        boolean measures = Boolean.getBoolean("orbitkv.rates");
        for (int bytes : new int[] {64 << 10, 2 << 20}) {
            try (Running run = new Running(16 << 20, measures ? 128 : 24, NvmeOptions.defaults())) {
                rate(run, bytes, measures ? 2L << 30 : 384L << 20);
                double rate = rate(run, bytes, measures ? 4L << 30 : 256L << 20);
                NvmeCounters counters = run.log.counters();
                double overhead = (double) (counters.payloadBytes() + counters.headerBytes() + counters.footerBytes())
                        / counters.payloadBytes();
                if (measures) {
                    System.out.printf(
                            "%s, blocks of %d KiB: %.0f MiB/s written and flushed, %.4f bytes a payload byte, %d blocks a batch%n",
                            run.kind, bytes >> 10, rate, overhead, counters.blocksWritten() / counters.batches());
                }
                assertTrue(rate > 20, "only " + rate + " MiB/s with blocks of " + bytes);
                assertTrue(overhead < 1.1, "bytes written per payload byte: " + overhead);
            }
        }
    }

    private static double rate(Running run, int bytes, long total) {
        long start = System.nanoTime();
        for (int i = 0; i < total / bytes; i++) {
            run.save(i / 16 % 4, bytes, false);
        }
        run.flush();
        return total / (double) (1 << 20) / ((System.nanoTime() - start) / 1e9);
    }
}
