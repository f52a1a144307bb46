package io.orbitkv.tiers;

/**
 * Positions of blocks that drives took over and did not write: of the last outage, from the first to the last of them.
 *
 * <p>Whoever waits for one of these positions is told, always; whoever waits for a later one is told until somebody was, as an
 * fsync tells of an error once. Safe from any thread; the lock is held for some comparisons.
 */
final class LostPositions {
    private volatile long first = Long.MAX_VALUE;
    private long last;
    private boolean told;

    /** Notes that blocks were not written. */
    synchronized void add(long from, long to) {
        if (from > to) {
            return;
        }
        boolean anew = told || first == Long.MAX_VALUE;
        last = anew ? to : Math.max(last, to);
        first = anew ? from : Math.min(first, from);
        told = false;
    }

    /** Whether who waits for a position has to hear that blocks up to it were not written. */
    boolean tell(long position) {
        if (position < first) {
            return false;
        }
        synchronized (this) {
            if (told && position > last) {
                return false;
            }
            told |= position >= last;
            return true;
        }
    }
}
