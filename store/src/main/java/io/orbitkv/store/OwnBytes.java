package io.orbitkv.store;

import io.orbitkv.nativeio.DataFolders;
import org.agrona.concurrent.NanoClock;

/**
 * What the data folders take on their drives. Looking walks them, so an answer serves for a while; and a drive may hang in it,
 * so where there is a thread for it, whoever asks waits for that thread a little and then takes the last answer.
 */
final class OwnBytes {
    private static final long SERVES_NANOS = 1_000_000_000;

    /** What a look takes, and more. */
    private static final long WAIT_MILLIS = 100;

    /** The same where there is no answer yet. */
    private static final long FIRST_WAIT_MILLIS = 1_000;

    private final DataFolders folders;
    private final NanoClock clock;

    // Guarded by this.
    private Runnable waker;
    private long lookedNanos;
    private long bytes = -1;
    private boolean asked;

    OwnBytes(DataFolders folders, NanoClock clock) {
        this.folders = folders;
        this.clock = clock;
    }

    /** From now on a thread looks, which is woken by this; it looks at once, while the drives answer. */
    synchronized void askWith(Runnable wakesLooker) {
        waker = wakesLooker;
        asked = true;
    }

    /** The bytes, as of at most a second ago, or of when a drive last answered. */
    long now() {
        synchronized (this) {
            if (bytes >= 0 && clock.nanoTime() - lookedNanos <= SERVES_NANOS) {
                return bytes;
            }
            if (waker != null) {
                return ask();
            }
        }
        look();
        synchronized (this) {
            return bytes;
        }
    }

    /** Who finds the thread asked already, and not done, has no reason to hope. */
    private long ask() {
        if (!asked) {
            asked = true;
            waker.run();
            try {
                long until = System.nanoTime() + (bytes < 0 ? FIRST_WAIT_MILLIS : WAIT_MILLIS) * 1_000_000;
                for (long left = until - System.nanoTime(); asked && left > 0; left = until - System.nanoTime()) {
                    wait(left / 1_000_000 + 1);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        return Math.max(0, bytes);
    }

    /** The looking thread's: looks when somebody has asked; what it did. */
    int lookIfAsked() {
        synchronized (this) {
            if (!asked) {
                return 0;
            }
        }
        look();
        return 1;
    }

    private void look() {
        long seen = folders.allocatedBytes();
        synchronized (this) {
            bytes = seen;
            lookedNanos = clock.nanoTime();
            asked = false;
            notifyAll();
        }
    }
}
