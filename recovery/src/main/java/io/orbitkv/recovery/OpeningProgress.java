package io.orbitkv.recovery;

/** Is told how far a long opening or verification has come. Called on the opening thread; must return quickly. */
@FunctionalInterface
public interface OpeningProgress {
    /** Tells nobody. */
    OpeningProgress NONE = (what, done, of) -> {};

    /**
     * Some work is done.
     *
     * @param what the work, for people: {@code allocating}, {@code reading segments}, ...
     * @param done how much of it
     * @param of how much there is
     */
    void onProgress(String what, long done, long of);
}
