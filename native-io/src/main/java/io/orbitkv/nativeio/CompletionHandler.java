package io.orbitkv.nativeio;

/** Receives what an {@link IoRing} has finished. */
@FunctionalInterface
public interface CompletionHandler {
    /**
     * One transfer or flush has ended.
     *
     * @param token what the submitter gave
     * @param result bytes transferred, which is the whole length that was asked for; 0 for a flush; or minus an errno
     */
    void onCompletion(long token, int result);
}
