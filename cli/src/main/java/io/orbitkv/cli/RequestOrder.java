package io.orbitkv.cli;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;

/**
 * Deals requests to workers: those that a killed child had not finished first, then the others in the order of the trace,
 * and never far ahead of the parent. Safe from any thread.
 */
final class RequestOrder {
    private final InputStream credits;
    private final int[] again;
    private final int from;
    private final int until;
    private final int lead;
    private int dealt;
    private boolean stopped;

    /**
     * Prepares.
     *
     * @param credits the parent's bytes, one for each {@link Frames#CREDIT_REQUESTS} requests that it has seen
     * @param again requests to deal first
     * @param from the next request
     * @param until the request to stop before
     * @param workers how many requests may be under way
     */
    RequestOrder(InputStream credits, int[] again, int from, int until, int workers) {
        this.credits = credits;
        this.again = again.clone();
        this.from = from;
        this.until = until;
        int step = Frames.CREDIT_REQUESTS;
        lead = (2 + (workers + step - 1) / step) * step;
    }

    /** The next request, or -1 when there is none. */
    synchronized int next() throws IOException {
        if (stopped || dealt >= again.length + Math.max(0, until - from)) {
            return -1;
        }
        if (dealt >= lead && dealt % Frames.CREDIT_REQUESTS == 0 && credits.read() < 0) {
            throw new EOFException("the parent is gone");
        }
        int request = dealt < again.length ? again[dealt] : from + dealt - again.length;
        dealt++;
        return request;
    }

    /** Deals no more: a worker has failed. */
    synchronized void stop() {
        stopped = true;
    }
}
