package io.orbitkv.manager;

/**
 * Whether a session looks for its next request for a moment before it sleeps. Engines ask for several prompts in a row, and
 * waking a thread takes as long as answering a query. Where it did not pay, it rests, so that a client that asks now and then
 * costs next to nothing (decision 0029). One thread.
 */
final class Lookout {
    /** How long a look takes at most; about what it takes to fall asleep and be woken on a machine with work to do. */
    static final long NANOS = 50_000;

    /** So many requests go by after a look in vain. */
    static final int REST = 16;

    /** On a single processor the peer can't do anything meanwhile. */
    private static final boolean ALONE = Runtime.getRuntime().availableProcessors() == 1;

    private int rest;

    /** Whether to look now. */
    boolean pays() {
        if (rest > 0) {
            rest--;
            return false;
        }
        return !ALONE;
    }

    /** Notes whether a look found something. */
    void paid(boolean found) {
        rest = found ? 0 : REST;
    }
}
