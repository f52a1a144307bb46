package io.orbitkv.nativeio;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * What a constructor has opened so far: closed in reverse order unless the constructor gets through.
 *
 * <pre>{@code
 * Resources made = new Resources();
 * try {
 *     first = made.keep(openFirst());
 *     second = made.keep(openSecond());
 *     made.release();
 * } finally {
 *     made.close();
 * }
 * }</pre>
 */
public final class Resources implements AutoCloseable {
    private final Deque<AutoCloseable> kept = new ArrayDeque<>();

    /** Nothing opened yet. */
    public Resources() {}

    /** Remembers something to close; hands it back. */
    public <T extends AutoCloseable> T keep(T resource) {
        kept.push(resource);
        return resource;
    }

    /** The constructor got through: its fields own everything now. */
    public void release() {
        kept.clear();
    }

    /** Closes what is still kept, the last first; a close that fails does not stop the others. */
    @Override
    public void close() {
        RuntimeException failure = null;
        while (!kept.isEmpty()) {
            try {
                kept.pop().close();
            } catch (Exception e) {
                RuntimeException wrapped =
                        e instanceof RuntimeException r ? r : new IllegalStateException("closing failed", e);
                if (failure == null) {
                    failure = wrapped;
                } else {
                    failure.addSuppressed(wrapped);
                }
            }
        }
        if (failure != null) {
            throw failure;
        }
    }
}
