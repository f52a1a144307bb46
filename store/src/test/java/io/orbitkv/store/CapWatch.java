package io.orbitkv.store;

import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.file.Path;

/** Samples from outside, every 10 ms, what a folder takes on its drive (st_blocks): all below it, whoever made it. */
final class CapWatch implements AutoCloseable {
    private static final long PERIOD_MILLIS = 10;

    private final HostFolder folder;
    private final Thread thread;
    private volatile boolean stopped;
    private volatile long samples;
    private long most;

    CapWatch(Path path) {
        folder = HostFolder.open(path);
        thread = new Thread(this::run, "cap-watch");
        thread.setDaemon(true);
        thread.start();
    }

    private void run() {
        try {
            while (!stopped) {
                look();
                Thread.sleep(PERIOD_MILLIS);
            }
        } catch (InterruptedException e) {
            return; // it is over
        }
    }

    private synchronized void look() {
        try {
            most = Math.max(most, folder.allocatedBytes(""));
            samples++;
        } catch (OrbitKvException e) {
            return; // a file went while we looked: the next look is 10 ms away
        }
    }

    /** The most that was seen since the last question, which this one ends. */
    synchronized long most() {
        look();
        long seen = most;
        most = 0;
        return seen;
    }

    long samples() {
        return samples;
    }

    /** What a sub-folder takes now; empty for all of it. */
    long allocated(String name) {
        return folder.allocatedBytes(name);
    }

    @Override
    public void close() {
        stopped = true;
        thread.interrupt();
        folder.close();
    }
}
