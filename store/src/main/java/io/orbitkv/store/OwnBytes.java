package io.orbitkv.store;

import io.orbitkv.nativeio.DataFolders;
import org.agrona.concurrent.NanoClock;

/** What the data folders take on their drives. Looking walks them, so an answer serves for a while. */
final class OwnBytes {
    private static final long SERVES_NANOS = 1_000_000_000;

    private final DataFolders folders;
    private final NanoClock clock;
    private long lookedNanos;
    private long bytes = -1;

    OwnBytes(DataFolders folders, NanoClock clock) {
        this.folders = folders;
        this.clock = clock;
    }

    synchronized long now() {
        long now = clock.nanoTime();
        if (bytes < 0 || now - lookedNanos > SERVES_NANOS) {
            bytes = folders.allocatedBytes();
            lookedNanos = now;
        }
        return bytes;
    }
}
