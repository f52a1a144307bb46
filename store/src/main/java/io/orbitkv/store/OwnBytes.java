package io.orbitkv.store;

import io.orbitkv.nativeio.DataFolder;
import org.agrona.concurrent.NanoClock;

/** What the data folder takes on the drive. Looking walks the folder, so an answer serves for a while. */
final class OwnBytes {
    private static final long SERVES_NANOS = 1_000_000_000;

    private final DataFolder folder;
    private final NanoClock clock;
    private long lookedNanos;
    private long bytes = -1;

    OwnBytes(DataFolder folder, NanoClock clock) {
        this.folder = folder;
        this.clock = clock;
    }

    synchronized long now() {
        long now = clock.nanoTime();
        if (bytes < 0 || now - lookedNanos > SERVES_NANOS) {
            bytes = folder.allocatedBytes("");
            lookedNanos = now;
        }
        return bytes;
    }
}
