package io.orbitkv.store;

import org.agrona.concurrent.NanoClock;

/** How the data folders stand to the cap. Looking walks them, so an answer serves for a while. */
final class OwnBytes {
    private static final long SERVES_NANOS = 1_000_000_000;

    private final CapKeeper cap;
    private final NanoClock clock;
    private long lookedNanos;
    private CapState seen;

    OwnBytes(CapKeeper cap, NanoClock clock) {
        this.cap = cap;
        this.clock = clock;
    }

    synchronized CapState now() {
        long now = clock.nanoTime();
        if (seen == null || now - lookedNanos > SERVES_NANOS) {
            seen = cap.measure();
            lookedNanos = now;
        }
        return seen;
    }
}
