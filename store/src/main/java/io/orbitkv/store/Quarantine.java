package io.orbitkv.store;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.Drives;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.agrona.DirectBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Places whose bytes were found wrong: out of the index at once, and for good once upkeep has told the catalog. */
final class Quarantine {
    private static final Logger LOG = LoggerFactory.getLogger(Quarantine.class);

    /** Places that wait for the catalog; more than these are forgotten at a restart and found again by their checksum. */
    private static final int WAITING_MAX = 4096;

    private static final int WARNINGS_MAX = 16;

    private final Object writerLock;
    private final PrefixIndex index;
    private final Drives nvme;
    private final Deque<QuarantineRow> waiting = new ArrayDeque<>();
    private int warnings;

    Quarantine(Object writerLock, PrefixIndex index, Drives nvme) {
        this.writerLock = writerLock;
        this.index = index;
        this.nvme = nvme;
    }

    /** Drops a block of host memory whose checksum failed; the same turn's pin is still held. */
    void dropFromHost(Workspace work, int i) {
        drop(work, i, Tier.HOST);
        warn("host memory", work.extents[i]);
    }

    /**
     * Drops a block of the drive whose checksum failed; the same turn's pin is still held. A segment that is being given
     * up has no use any more that could be written down, and needs none: its blocks go with it. And where the index does
     * not know the place as this key's, it is another block's, which is good: a match had promised too much.
     *
     * @return whether it was this key's block, and nobody else had dropped it before
     */
    boolean dropFromDrive(Workspace work, int i) {
        if (!drop(work, i, Tier.NVME)) {
            return false;
        }
        long extent = work.extents[i];
        add(extent, work.keys().getLong(work.keyOffset(i)));
        warn("the drive", extent);
        return true;
    }

    /**
     * Drops a block that scrub found wrong in its place, if the index still has it there. The caller keeps the place from being
     * reused, and says where it is in words.
     *
     * @return false: nobody looks for it there any more, so it is no damage
     */
    boolean dropFound(int number, DirectBuffer key, Tier tier, long extent, String where) {
        synchronized (writerLock) {
            if (!index.forget(number, key, 0, tier, extent)) {
                return false;
            }
        }
        if (tier == Tier.NVME) {
            add(extent, key.getLong(0));
        }
        warn(where, extent);
        return true;
    }

    private void add(long extent, long key0) {
        long use = nvme.useSequence(Extent.segment(extent));
        if (use != 0) {
            QuarantineRow row = new QuarantineRow(
                    Extent.segment(extent), use, Extent.page(extent), key0, System.currentTimeMillis());
            synchronized (waiting) {
                if (waiting.size() < WAITING_MAX) {
                    waiting.add(row);
                }
            }
        }
    }

    /** Whether it was this key's place, and nobody else had dropped it before. */
    private boolean drop(Workspace work, int i, Tier tier) {
        synchronized (writerLock) {
            return index.forget(work.binding.indexNumber(), work.keys(), work.keyOffset(i), tier, work.extents[i]);
        }
    }

    private synchronized void warn(String where, long extent) {
        if (warnings < WARNINGS_MAX) {
            warnings++;
            LOG.warn(
                    "wrong bytes on {} at {}: the block is a miss from now on; check the hardware{}",
                    where,
                    Extent.text(extent),
                    warnings == WARNINGS_MAX ? " (further warnings are left out; see stats)" : "");
        }
    }

    boolean isWaiting() {
        synchronized (waiting) {
            return !waiting.isEmpty();
        }
    }

    /** Without the lock over the catalog's pages, which may have to be read from a drive that hangs. */
    void drainTo(Catalog.Batch batch) {
        List<QuarantineRow> rows;
        synchronized (waiting) {
            rows = List.copyOf(waiting);
            waiting.clear();
        }
        for (QuarantineRow row : rows) {
            batch.putQuarantine(row);
            batch.addCounter(CatalogCounter.WRONG_BLOCKS, 1);
        }
    }
}
