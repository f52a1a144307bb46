package io.orbitkv.bench.simulate;

/** A tier that holds keys, and gives some up for others. Not thread-safe. */
interface KeyTier {
    /** A request starts; its number only grows. */
    void begin(int request);

    /** Whether a key is held. */
    boolean has(int key);

    /** A key that is held was used. */
    void touch(int key);

    /** Takes a key that is not held; others leave where room is needed. */
    void add(int key);

    /** Keys written so far that were not held before. */
    long written();

    /** Keys written again so far, so that they stay. */
    long writtenAgain();
}
