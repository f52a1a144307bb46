package io.orbitkv.bench.trace;

import java.io.IOException;

/** Turns one line of a trace into a request. */
interface LineParser {
    /** What a good line looks like, for messages. */
    String form();

    /**
     * Reads a line.
     *
     * @param text a line that is not blank
     * @param request is filled; it was cleared before
     * @return false if the line is a heading, which holds no request
     * @throws BadLineException if it is not understood
     */
    boolean parse(String text, TraceRequest request) throws IOException;

    /** Why a line is not understood: a sentence that goes on after "the line ". */
    final class BadLineException extends IOException {
        private static final long serialVersionUID = 1L;

        BadLineException(String what) {
            super(what);
        }

        BadLineException(String what, Exception cause) {
            super(what, cause);
        }
    }
}
