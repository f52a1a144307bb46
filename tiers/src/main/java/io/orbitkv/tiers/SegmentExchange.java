package io.orbitkv.tiers;

import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Segments on their way out of the log, whose pages go back to the file system, and on their way back: between the log's
 * agent and the one who keeps the cap, who says how many each folder may have.
 *
 * <p>The agent takes {@link #takeArrived} and gives {@link #leave}, the other one does the opposite; each of them is one
 * thread at a time. Nothing is allocated and nobody waits: who finds no room tries again.
 */
final class SegmentExchange {
    /** No segment. */
    static final int NONE = -1;

    /** Segments on their way in one direction. */
    private static final int ON_THE_WAY_MAX = 64;

    private final LogGeometry geometry;
    private final int segmentsMin;
    private final AtomicIntegerArray targets;
    private final AtomicIntegerArray present;
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
     * @param segmentsMin with fewer than these the log writes nothing
     */
    SegmentExchange(LogGeometry geometry, LogState initial, int segmentsMin) {
        this.geometry = geometry;
        this.segmentsMin = segmentsMin;
        this.targets = new AtomicIntegerArray(geometry.folders());
        this.present = new AtomicIntegerArray(geometry.folders());
        for (int segment = 0; segment < geometry.segments(); segment++) {
            if (!initial.isAbsent(segment)) {
                present.incrementAndGet(geometry.folderOfSegment(segment));
            }
        }
        for (int folder = 0; folder < geometry.folders(); folder++) {
            targets.set(folder, Math.max(present.get(folder), geometry.segments() / geometry.folders()));
        }
    }

    // ---- who keeps the cap ----

    /** Says how many segments a folder may have. */
    void target(int folder, int segments) {
        targets.set(folder, segments);
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

    /** Whether the folders have, or may have, so few segments that nothing is written. */
    boolean isStarved() {
        int all = 0;
        for (int folder = 0; folder < targets.length(); folder++) {
            all += Math.min(targets.get(folder), present.get(folder));
        }
        return all < segmentsMin;
    }

    /** Segments of a folder that the log has. */
    int present(int folder) {
        return present.get(folder);
    }

    /** Segments that the log has. */
    int present() {
        int all = 0;
        for (int folder = 0; folder < present.length(); folder++) {
            all += present.get(folder);
        }
        return all;
    }

    // ---- the agent ----

    /** A segment that has come back, or {@link #NONE}. */
    int takeArrived() {
        int segment = in.poll();
        if (segment != NONE) {
            present.incrementAndGet(geometry.folderOfSegment(segment));
        }
        return segment;
    }

    /** How many segments of a folder are to leave. */
    int surplus(int folder) {
        return present.get(folder) - targets.get(folder);
    }

    boolean hasSurplus() {
        for (int folder = 0; folder < targets.length(); folder++) {
            if (surplus(folder) > 0) {
                return true;
            }
        }
        return false;
    }

    /** Whether this segment may leave now: its folder has too many, and there is room on the way. */
    boolean mayLeave(int segment) {
        return surplus(geometry.folderOfSegment(segment)) > 0 && !out.isFull();
    }

    /** Whether nothing more can leave before somebody takes what has left: free segments wait then. */
    boolean isFull() {
        return out.isFull();
    }

    /** A segment leaves, of which nobody uses anything any more; the caller has asked whether it may. */
    void leave(int segment) {
        present.decrementAndGet(geometry.folderOfSegment(segment));
        out.offer(segment);
    }
}
