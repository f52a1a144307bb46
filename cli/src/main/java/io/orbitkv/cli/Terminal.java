package io.orbitkv.cli;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Progress of long work on stderr: one line that redraws itself on a terminal, a plain line every few seconds
 * elsewhere. Not thread-safe.
 */
final class Terminal {
    private static final long REDRAW_NANOS = 100_000_000L;
    private static final long PLAIN_NANOS = 5_000_000_000L;

    private final PrintStream err;
    private final boolean redraws;
    private long nextNanos;
    private int drawn;

    Terminal(PrintStream err, boolean redraws) {
        this.err = err;
        this.redraws = redraws;
        nextNanos = System.nanoTime() + (redraws ? 0 : PLAIN_NANOS);
    }

    /** Progress on stderr. */
    static Terminal onStderr() {
        return new Terminal(System.err, isTerminal(2));
    }

    /** Whether a descriptor is a terminal. System.console() tells that of stdin and stdout together, and not on 22+. */
    static boolean isTerminal(int fd) {
        try {
            String target =
                    Files.readSymbolicLink(Path.of("/proc/self/fd/" + fd)).toString();
            return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty");
        } catch (IOException | UnsupportedOperationException e) {
            return false; // no /proc: plain lines serve
        }
    }

    /** Whether it is time for another line: asked before the text is made. */
    boolean isDue() {
        return System.nanoTime() - nextNanos >= 0;
    }

    /** Shows where the work is; call it when {@link #isDue()}. */
    void show(String text) {
        nextNanos = System.nanoTime() + (redraws ? REDRAW_NANOS : PLAIN_NANOS);
        if (redraws) {
            err.print('\r' + text + " ".repeat(Math.max(0, drawn - text.length())));
            err.flush();
            drawn = text.length();
        } else {
            err.println(text);
        }
    }

    /** Shows a text that costs nothing to make, when it is time for another line. */
    void showIfDue(String text) {
        if (isDue()) {
            show(text);
        }
    }

    /** Removes the line that redraws itself. */
    void clear() {
        if (redraws && drawn > 0) {
            err.print('\r' + " ".repeat(drawn) + '\r');
            err.flush();
            drawn = 0;
        }
    }
}
