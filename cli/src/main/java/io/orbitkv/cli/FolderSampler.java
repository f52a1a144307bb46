package io.orbitkv.cli;

import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.file.Path;
import java.util.List;

/**
 * Watches from outside how much of their drives data folders take: its own thread, every 50 ms, the most is kept.
 *
 * <p>It holds no lock on the folders, so a file may go while it looks; that look is then left out.
 */
final class FolderSampler implements AutoCloseable {
    private static final long PERIOD_MILLIS = 50;

    private final DataFolders folders;
    private final Thread thread;
    private volatile boolean stopped;
    private volatile long peakBytes;
    private volatile long samples;

    FolderSampler(List<Path> paths) {
        folders = new DataFolders(paths.stream().map(HostFolder::open).toList());
        thread = new Thread(this::run, "folder-sampler");
        thread.setDaemon(true);
        thread.start();
    }

    /** The most bytes that were allocated at any look. */
    long peakBytes() {
        return peakBytes;
    }

    /** How often it looked. */
    long samples() {
        return samples;
    }

    private void run() {
        while (!stopped) {
            look();
            try {
                Thread.sleep(PERIOD_MILLIS);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private synchronized void look() {
        try {
            peakBytes = Math.max(peakBytes, folders.allocatedBytes());
            samples++;
        } catch (OrbitKvException e) {
            // A file was removed between listing and look; the next one is 50 ms away.
        }
    }

    /** Looks once more and stops. */
    @Override
    public void close() {
        stopped = true;
        thread.interrupt();
        try {
            thread.join(1_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        look();
        folders.close();
    }
}
