package io.orbitkv.store;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.tiers.SegmentState;
import java.util.ArrayList;
import java.util.List;

/**
 * What the log has said of its segments since the catalog heard last. The log's thread notes, upkeep writes down in
 * batches: never one transaction a segment, and never on the log's thread, which a commit would hold up.
 */
final class SegmentBook {
    private final long[] useSequences;
    private final SegmentState[] states;
    private final int[] blocks;
    private final int[] payloadPages;
    private final int[] overheadPages;
    private final int[] changed;
    private final boolean[] isChanged;
    private int changes;
    private Runnable onFirstChange = () -> {};

    /**
     * Nothing to write down yet.
     *
     * @param known rows of the catalog: the uses that have ended in earlier lives
     */
    SegmentBook(int segments, List<SegmentRow> known) {
        useSequences = new long[segments];
        states = new SegmentState[segments];
        blocks = new int[segments];
        payloadPages = new int[segments];
        overheadPages = new int[segments];
        changed = new int[segments];
        isChanged = new boolean[segments];
        known.forEach(row -> useSequences[row.segment()] = row.useSequence());
    }

    /** Says whom to tell when something waits again. */
    synchronized void onFirstChange(Runnable listener) {
        onFirstChange = listener;
    }

    synchronized void note(
            int segment, long useSequence, SegmentState state, int blockCount, int payload, int overhead) {
        useSequences[segment] = useSequence;
        states[segment] = state;
        blocks[segment] = blockCount;
        payloadPages[segment] = payload;
        overheadPages[segment] = overhead;
        if (!isChanged[segment]) {
            isChanged[segment] = true;
            changed[changes++] = segment;
            if (changes == 1) {
                onFirstChange.run();
            }
        }
    }

    /** A segment has no pages from now on; the use that has ended stays with it. */
    synchronized void noteAbsent(int segment) {
        note(segment, useSequences[segment], SegmentState.ABSENT, 0, 0, 0);
    }

    /** A segment has pages again, and nothing on them. */
    synchronized void notePresent(int segment) {
        note(segment, useSequences[segment], SegmentState.FREE, 0, 0, 0);
    }

    synchronized boolean hasChanges() {
        return changes > 0;
    }

    /**
     * Moves what has changed into a batch of the catalog; how many rows. Without the lock over the catalog's pages, which may
     * have to be read from a drive that hangs.
     */
    int drainTo(Catalog.Batch batch) {
        List<SegmentRow> rows = takeChanges();
        rows.forEach(batch::putSegment);
        return rows.size();
    }

    synchronized List<SegmentRow> takeChanges() {
        List<SegmentRow> rows = new ArrayList<>(changes);
        for (int i = 0; i < changes; i++) {
            int segment = changed[i];
            isChanged[segment] = false;
            rows.add(new SegmentRow(
                    segment,
                    useSequences[segment],
                    SegmentRow.State.valueOf(states[segment].name()),
                    blocks[segment],
                    payloadPages[segment],
                    overheadPages[segment]));
        }
        changes = 0;
        return rows;
    }
}
