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
        if (threads == null) {
            for (int segment : segments) {
                reading.read(readers.get(0), segment);
                use.accept(readers.get(0));
            }
            return;
        }
        Deque<SegmentReader> idle = new ArrayDeque<>(readers);
        Deque<CompletableFuture<SegmentReader>> running = new ArrayDeque<>();
        try {
            for (int next = 0; next < segments.length || !running.isEmpty(); ) {
                while (next < segments.length && !idle.isEmpty()) {
                    SegmentReader reader = idle.poll();
                    int segment = segments[next++];
                    running.add(CompletableFuture.supplyAsync(
                            () -> {
                                reading.read(reader, segment);
                                return reader;
                            },
                            threads));
                }
                SegmentReader done = join(running.poll());
                use.accept(done);
                idle.add(done);
            }
        } finally {
            for (CompletableFuture<SegmentReader> left : running) {
                left.handle((reader, failure) -> reader).join();
            }
        }
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

    /** A reader for the caller's own use, while {@link #each} is not running. */
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
