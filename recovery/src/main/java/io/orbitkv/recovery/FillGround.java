package io.orbitkv.recovery;

/**
 * What an {@link IndexFill} asks of the store that runs while it fills the index. {@link #hold}, {@link #letGo} and
 * {@link #isCurrent} are called from any thread.
 */
public interface FillGround {
    /** Nobody else is there: the log stands still. */
    FillGround ALONE = new FillGround() {
        private final Object lock = new Object();

        @Override
        public Object writerLock() {
            return lock;
        }

        @Override
        public boolean hold(int segment) {
            return true;
        }

        @Override
        public void letGo(int segment) {}

        @Override
        public boolean isCurrent(int segment, long useSequence) {
            return true;
        }
    };

    /** Held by whoever writes the index. */
    Object writerLock();

    /**
     * Keeps the bytes of a segment in place that held blocks when the folder was opened.
     *
     * @return false where it was given up since; nothing is held then
     */
    boolean hold(int segment);

    /** Ends a successful {@link #hold}. */
    void letGo(int segment);

    /** Whether a segment is still in a use, and so was not given up. */
    boolean isCurrent(int segment, long useSequence);
}
