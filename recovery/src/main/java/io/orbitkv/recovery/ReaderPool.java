package io.orbitkv.recovery;

import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.tiers.LogGeometry;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * Reads many segments with several threads and hands them on in the order that was asked for. With one thread all
 * happens on the caller's, so that a simulated run has one order.
 */
final class ReaderPool implements AutoCloseable {
    /** Readers a thread: while the caller works on one, the thread fills the other. */
    private static final int READERS_PER_THREAD = 2;

    /** Segments that a thread takes at once where each is read by itself: those of one to four files. */
    private static final int SLICE_SEGMENTS = 16;

    private final List<SegmentReader> readers = new ArrayList<>();
    private final int threadCount;
    private final ExecutorService threads;
    private final Deque<SegmentReader> idle = new ArrayDeque<>();
    private final Deque<CompletableFuture<SegmentReader>> running = new ArrayDeque<>();
    private int[] wanted = {};
    private Reading how;
    private CompletableFuture<Void> beside;
    private volatile boolean isEnded;
    private int next;

    ReaderPool(DataFolders folders, LogGeometry geometry, int threadCount) {
        int count = Math.max(1, Math.min(threadCount, geometry.segments()));
        for (int i = 0; i < (count == 1 ? 1 : count * READERS_PER_THREAD); i++) {
            readers.add(new SegmentReader(folders, geometry));
        }
        this.threadCount = count;
        this.threads = count == 1 ? null : Executors.newFixedThreadPool(count, ReaderPool::thread);
    }

    private static Thread thread(Runnable work) {
        Thread thread = new Thread(work, "orbitkv-recovery");
        thread.setDaemon(true);
        return thread;
    }

    /** What is done with a segment on a reading thread. */
    @FunctionalInterface
    interface Reading {
        void read(SegmentReader reader, int segment);
    }

    /**
     * Reads segments and hands each on.
     *
     * @param segments their numbers
     * @param reading on some thread, several at a time
     * @param use on the caller's thread, in order; the reader holds what was read until this returns
     */
    void each(int[] segments, Reading reading, Consumer<SegmentReader> use) {
        begin(segments, reading);
        try {
            for (SegmentReader done = next(); done != null; done = next()) {
                use.accept(done);
                giveBack(done);
            }
        } finally {
            end();
        }
    }

    /** Is told how many segments were read by now, on the caller's thread. */
    @FunctionalInterface
    interface Counted {
        void read(int done);
    }

    /**
     * Reads segments that nobody has to be handed: threads and the caller take slices of neighbours until there are none
     * left, so that a file is opened once for all its segments and no thread waits for another.
     *
     * @param segments their numbers, in an order that keeps a file's together
     * @param reading on some thread, several at a time, in any order; on the caller's and in order where there are no threads
     * @param counted is told behind each of the caller's slices, and at the end
     */
    void eachApart(int[] segments, Reading reading, Counted counted) {
        AtomicInteger taken = new AtomicInteger();
        AtomicInteger done = new AtomicInteger();
        List<CompletableFuture<Void>> others = new ArrayList<>();
        int helping = threads == null ? 0 : Math.min(threadCount, segments.length / SLICE_SEGMENTS);
        for (int i = 1; i <= helping; i++) {
            SegmentReader reader = readers.get(i);
            others.add(CompletableFuture.runAsync(
                    () -> readSlices(segments, reader, reading, taken, done, n -> {}), threads));
        }
        try {
            readSlices(segments, readers.get(0), reading, taken, done, counted);
        } finally {
            taken.set(segments.length); // where the caller failed, the others end as well
            others.forEach(other -> other.handle((nothing, failure) -> null).join());
        }
        others.forEach(ReaderPool::join);
        counted.read(done.get());
    }

    private static void readSlices(
            int[] segments,
            SegmentReader reader,
            Reading reading,
            AtomicInteger taken,
            AtomicInteger done,
            Counted counted) {
        for (int from = taken.getAndAdd(SLICE_SEGMENTS);
                from < segments.length;
                from = taken.getAndAdd(SLICE_SEGMENTS)) {
            int end = Math.min(segments.length, from + SLICE_SEGMENTS);
            for (int i = from; i < end; i++) {
                reading.read(reader, segments[i]);
            }
            counted.read(done.addAndGet(end - from));
        }
    }

    /** Begins to read segments; {@link #next} hands them on, and {@link #end} ends it in any case. */
    void begin(int[] segments, Reading reading) {
        wanted = segments;
        how = reading;
        next = 0;
        isEnded = false;
        idle.clear();
        idle.addAll(readers);
    }

    /** Has a thread do something beside the reading that was begun, and ends with it; nothing where there are no threads. */
    void beside(Consumer<BooleanSupplier> work) {
        if (threads != null) {
            beside = CompletableFuture.runAsync(() -> work.accept(() -> isEnded), threads);
        }
    }

    /** The next segment in the order that was asked for; null when all were handed on. The reader is lent. */
    SegmentReader next() {
        while (next < wanted.length && !idle.isEmpty()) {
            SegmentReader reader = idle.poll();
            int segment = wanted[next++];
            if (threads == null) {
                how.read(reader, segment);
                return reader;
            }
            Reading reading = how;
            running.add(CompletableFuture.supplyAsync(
                    () -> {
                        reading.read(reader, segment);
                        return reader;
                    },
                    threads));
        }
        return running.isEmpty() ? null : join(running.poll());
    }

    /** Gives a reader back that {@link #next} lent. */
    void giveBack(SegmentReader reader) {
        idle.add(reader);
    }

    /** Waits for reads under way and forgets what they bring; the readers that were not handed on. */
    List<SegmentReader> end() {
        List<SegmentReader> left = new ArrayList<>();
        for (CompletableFuture<SegmentReader> reading : running) {
            SegmentReader reader = reading.handle((done, failure) -> failure == null ? done : null)
                    .join();
            if (reader != null) {
                left.add(reader);
            }
        }
        running.clear();
        next = wanted.length;
        isEnded = true;
        if (beside != null) {
            beside.handle((nothing, failure) -> null).join();
            beside = null;
        }
        return left;
    }

    private static <T> T join(CompletableFuture<T> reading) {
        try {
            return reading.join();
        } catch (CompletionException e) {
            if (e.getCause() instanceof OrbitKvException) {
                throw (OrbitKvException) e.getCause();
            }
            throw e;
        }
    }

    /** A reader for the caller's own use, while nothing is read. */
    SegmentReader own() {
        return readers.get(0);
    }

    @Override
    public void close() {
        if (threads != null) {
            threads.shutdown();
        }
        readers.forEach(SegmentReader::close);
    }
}
