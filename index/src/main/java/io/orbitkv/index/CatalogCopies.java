package io.orbitkv.index;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * What the catalogs of a store's folders hold, by the folders' numbers, and what that makes together.
 *
 * <p>Namespaces and counters are those of the newest file; segments and quarantined places are what each folder's own file
 * says of them. A file may lack the last commit, where a death came between the commits to two folders; one that lacks more,
 * or has others, was away while the store ran: what was cleared then would come back with it.
 */
public final class CatalogCopies {
    private final List<CatalogContents> read;
    private final CatalogContents newest;

    /**
     * Takes what was read.
     *
     * @param read by number; null where a folder holds nothing; at least one is there
     */
    public CatalogCopies(List<CatalogContents> read) {
        this.read = Collections.unmodifiableList(new ArrayList<>(read));
        this.newest = newest();
    }

    /** The one that all others are at most one commit behind of, else the one with the most commits. */
    private CatalogContents newest() {
        CatalogContents most = null;
        for (CatalogContents one : read) {
            if (one == null) {
                continue;
            }
            if (read.stream().allMatch(other -> other == null || isInStep(other, one))) {
                return one;
            }
            if (most == null || one.counter(CatalogCounter.COMMITS) > most.counter(CatalogCounter.COMMITS)) {
                most = one;
            }
        }
        return most;
    }

    private static boolean isInStep(CatalogContents one, CatalogContents newest) {
        long stamp = one.counter(CatalogCounter.STAMP);
        return stamp == newest.counter(CatalogCounter.STAMP) || stamp == newest.counter(CatalogCounter.STAMP_BEFORE);
    }

    /** What a folder's file holds, or null. */
    public CatalogContents of(int number) {
        return read.get(number);
    }

    /** Whether a folder's file lacks the last commit only, or nothing. */
    public boolean isInStep(int number) {
        return read.get(number) == null || isInStep(read.get(number), newest);
    }

    /** Whether a folder's file lacks the last commit. */
    public boolean isBehind(int number) {
        return read.get(number).counter(CatalogCounter.STAMP) != newest.counter(CatalogCounter.STAMP);
    }

    /** All of them together. */
    public CatalogContents together() {
        if (read.size() == 1) {
            return newest;
        }
        List<SegmentRow> segments = new ArrayList<>();
        List<QuarantineRow> quarantine = new ArrayList<>();
        long mapBytes = Long.MAX_VALUE;
        for (CatalogContents one : read) {
            if (one != null) {
                segments.addAll(one.segments());
                quarantine.addAll(one.quarantine());
                mapBytes = Math.min(mapBytes, one.mapBytes());
            }
        }
        return new CatalogContents(
                newest.identity(),
                newest.counter(CatalogCounter.COMMITS),
                mapBytes,
                newest.counters(),
                newest.namespaces(),
                segments,
                quarantine);
    }
}
