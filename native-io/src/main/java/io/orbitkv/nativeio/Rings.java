package io.orbitkv.nativeio;

import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Chooses the ring of a folder: io_uring, or threads where it isn't to be had. */
final class Rings {
    /** Most transfers in flight of one ring; io_uring's own bound is twice this. */
    static final int DEPTH_MAX = 1 << 14;

    /** {@code auto} (default), {@code uring} (or an error), {@code threads}. */
    static final String PROPERTY = "orbitkv.ring";

    private static final Logger LOG = LoggerFactory.getLogger(Rings.class);
    private static final AtomicBoolean FALLBACK_TOLD = new AtomicBoolean();

    private Rings() {}

    static IoRing open(RingFolders folder, int depth) {
        if (depth < 1 || depth > DEPTH_MAX) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "the depth of a ring is 1 to " + DEPTH_MAX + ", not " + depth);
        }
        String choice = System.getProperty(PROPERTY, "auto").toLowerCase(Locale.ROOT);
        return switch (choice) {
            case "auto" -> automatic(folder, depth);
            case "uring" -> new UringRing(folder, depth);
            case "threads" -> new ThreadsRing(folder, depth);
            default ->
                throw new OrbitKvException(
                        ErrorCode.BAD_FLAG,
                        "system property " + PROPERTY + " is '" + choice + "'; give auto, uring or threads");
        };
    }

    /** A reader for callers' own threads, or null where io_uring isn't to be had or not wanted. */
    static TimedReader reader() {
        return System.getProperty(PROPERTY, "auto").equalsIgnoreCase("threads") ? null : TimedReader.open();
    }

    private static IoRing automatic(RingFolders folder, int depth) {
        try {
            return new UringRing(folder, depth);
        } catch (OrbitKvException e) {
            if (e.code() != ErrorCode.NOT_AVAILABLE && e.code() != ErrorCode.OUT_OF_MEMORY) {
                throw e;
            }
            if (FALLBACK_TOLD.compareAndSet(false, true)) {
                LOG.warn(
                        "{}; transfers of {} use up to {} threads instead: as fast for large blocks, at two to three "
                                + "times the CPU time a transfer",
                        e.getMessage(),
                        folder,
                        Math.min(depth, ThreadsRing.THREADS_MAX));
            }
            return new ThreadsRing(folder, depth);
        }
    }
}
