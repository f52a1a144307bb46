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
import java.util.function.Consumer;

/**
 * Reads many segments with several threads and hands them on in the order that was asked for. With one thread all
 * happens on the caller's, so that a simulated run has one order.
 */
final class ReaderPool implements AutoCloseable {
    /** Readers a thread: while the caller works on one, the thread fills the other. */
    private static final int READERS_PER_THREAD = 2;

    private final List<SegmentReader> readers = new ArrayList<>();
    private final ExecutorService threads;
    private final Deque<SegmentReader> idle = new ArrayDeque<>();
    private final Deque<CompletableFuture<SegmentReader>> running = new ArrayDeque<>();
    private int[] wanted = {};
    private Reading how;
    private int next;

    ReaderPool(DataFolders folders, LogGeometry geometry, int threadCount) {
        int count = Math.max(1, Math.min(threadCount, geometry.segments()));
        for (int i = 0; i < (count == 1 ? 1 : count * READERS_PER_THREAD); i++) {
            readers.add(new SegmentReader(folders, geometry));
        }
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

    /** Begins to read segments; {@link #next} hands them on, and {@link #end} ends it in any case. */
    void begin(int[] segments, Reading reading) {
        wanted = segments;
        how = reading;
        next = 0;
        idle.clear();
        idle.addAll(readers);
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
        return left;
    }

    private static SegmentReader join(CompletableFuture<SegmentReader> reading) {
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
