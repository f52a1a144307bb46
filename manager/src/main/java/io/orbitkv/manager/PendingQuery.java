package io.orbitkv.manager;

import io.orbitkv.store.FamilyHandle;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** A query that waits for blocks to come into host memory; its keys are a copy. */
final class PendingQuery {
    private final FamilyHandle family;
    private final UnsafeBuffer keys;
    private final int count;
    private volatile boolean ready;
    private volatile boolean cancelled;

    PendingQuery(FamilyHandle family, DirectBuffer from, int count) {
        this.family = family;
        this.count = count;
        byte[] copy = new byte[count * Wire.KEY_BYTES];
        from.getBytes(0, copy);
        this.keys = new UnsafeBuffer(copy);
    }

    FamilyHandle family() {
        return family;
    }

    UnsafeBuffer keys() {
        return keys;
    }

    int count() {
        return count;
    }

    boolean isReady() {
        return ready;
    }

    void ready() {
        ready = true;
    }

    boolean isCancelled() {
        return cancelled;
    }

    void cancel() {
        cancelled = true;
    }
}
