package io.orbitkv.tiers;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Segments on their way out of one drive's log, whose pages go back to the file system, and on their way back: between the
 * log's agent and the one who keeps the cap, who says how many the drive may have.
 *
 * <p>The agent takes {@link #takeArrived} and gives {@link #leave}, the other one does the opposite; each of them is one
 * thread at a time. Nothing is allocated and nobody waits: who finds no room tries again.
 */
final class SegmentExchange {
    /** No segment. */
    static final int NONE = -1;

    /** Segments on their way in one direction. */
    private static final int ON_THE_WAY_MAX = 64;

    private final int segmentsMin;
    private final AtomicInteger present;
    private volatile int target = Integer.MAX_VALUE;
    private final Way out = new Way();
    private final Way in = new Way();

    /** A ring for one writer and one reader. */
    private static final class Way {
        private final int[] segments = new int[ON_THE_WAY_MAX];
        private final AtomicLong written = new AtomicLong();
        private final AtomicLong taken = new AtomicLong();

        boolean isFull() {
            return written.get() - taken.get() == ON_THE_WAY_MAX;
        }

        boolean offer(int segment) {
            if (isFull()) {
                return false;
            }
            segments[(int) (written.get() % ON_THE_WAY_MAX)] = segment;
            written.incrementAndGet();
            return true;
        }

        int poll() {
            if (taken.get() == written.get()) {
                return NONE;
            }
            int segment = segments[(int) (taken.get() % ON_THE_WAY_MAX)];
            taken.incrementAndGet();
            return segment;
        }
    }

    /**
     * All segments that have pages may stay, until somebody says otherwise.
     *
     * @param present how many have pages
     * @param segmentsMin with fewer than these the log writes nothing
     */
    SegmentExchange(int present, int segmentsMin) {
        this.present = new AtomicInteger(present);
        this.segmentsMin = segmentsMin;
    }

    // ---- who keeps the cap ----

    /** Says how many segments the drive may have. */
    void target(int segments) {
        target = segments;
    }

    /** A segment that the log has let go of, or {@link #NONE}. */
    int takeLeft() {
        return out.poll();
    }

    /** Gives the log a segment that has pages again; false: later. */
    boolean arrive(int segment) {
        return in.offer(segment);
    }

    // ---- anybody ----

    /** Whether the drive has, or may have, so few segments that nothing is written. */
    boolean isStarved() {
        return Math.min(target, present.get()) < segmentsMin;
    }

    /** Segments that the log has. */
    int present() {
        return present.get();
    }

    // ---- the agent ----

    /** A segment that has come back, or {@link #NONE}. */
    int takeArrived() {
        int segment = in.poll();
        if (segment != NONE) {
            present.incrementAndGet();
        }
        return segment;
    }

    /** How many segments are to leave. */
    int surplus() {
        return present.get() - target;
    }

    boolean hasSurplus() {
        return surplus() > 0;
    }

    /** Whether a segment may leave now: the drive has too many, and there is room on the way. */
    boolean mayLeave() {
        return hasSurplus() && !out.isFull();
    }

    /** Whether nothing more can leave before somebody takes what has left: free segments wait then. */
    boolean isFull() {
        return out.isFull();
    }

    /** A segment leaves, of which nobody uses anything any more; the caller has asked whether it may. */
    void leave(int segment) {
        present.decrementAndGet();
        out.offer(segment);
    }
}
