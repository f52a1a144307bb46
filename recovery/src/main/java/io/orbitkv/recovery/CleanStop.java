package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.tiers.LogGeometry;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Ends a life of the store so that the next one begins at once: exact numbers in the catalog, then a snapshot. */
public final class CleanStop {
    private static final Logger LOG = LoggerFactory.getLogger(CleanStop.class);

    private CleanStop() {}

    /**
     * Writes down how the store stopped. The NVMe tier has stopped before: every block of the log is durable, every
     * segment sealed, and the catalog has a row for each that says so. Nobody publishes or commits any more.
     *
     * <p>Where there is no room for the snapshot, or writing it fails, there is none, and the next opening scans the
     * log: nothing is lost.
     *
     * @param opened as it was opened
     * @param namespaces those of now, with the epochs and index numbers of now; blocks of other numbers are left out
     * @param nextPosition the position after the last that was given out
     * @param nextUseSequence the use-sequence after the last that was given out
     * @param snapshotBytesMax most bytes that a snapshot may take in each folder
     * @param probe is told of the crash window
     * @return whether there is a snapshot
     */
    public static boolean write(
            OpenedFolder opened,
            List<OpenedNamespace> namespaces,
            long nextPosition,
            long nextUseSequence,
            long snapshotBytesMax,
            WindowProbe probe) {
        long transaction = commit(opened.catalog(), nextPosition, nextUseSequence);
        probe.enter(CrashWindow.SNAPSHOT);
        try {
            return writeSnapshot(
                    opened, namespaces, nextPosition, nextUseSequence, transaction, snapshotBytesMax, probe);
        } catch (OrbitKvException e) {
            LOG.warn(
                    "{}: no snapshot, the next start scans the log: {}",
                    opened.folders().path(),
                    e.getMessage());
            return false;
        } finally {
            probe.leave(CrashWindow.SNAPSHOT);
        }
    }

    private static long commit(Catalog catalog, long nextPosition, long nextUseSequence) {
        try (Catalog.Batch batch = catalog.begin()) {
            batch.setCounter(CatalogCounter.NEXT_POSITION, nextPosition);
            batch.setCounter(CatalogCounter.NEXT_USE_SEQUENCE, nextUseSequence);
            batch.addCounter(CatalogCounter.CLEAN_STOPS, 1);
            return batch.commit();
        }
    }

    private static boolean writeSnapshot(
            OpenedFolder opened,
            List<OpenedNamespace> namespaces,
            long nextPosition,
            long nextUseSequence,
            long transaction,
            long snapshotBytesMax,
            WindowProbe probe) {
        DataFolders folders = opened.folders();
        PrefixIndex index = opened.index();
        LogGeometry geometry = opened.geometry();
        long rows = Snapshot.rows(index, namespaces);
        long bytes = Snapshot.pages(namespaces.size(), rows) * MemoryRegion.PAGE_BYTES;
        // Marker, and the blocks that the file system may need to find both.
        long largest = Snapshot.pagesOfPart(bytes / MemoryRegion.PAGE_BYTES, folders.count(), 0);
        long withMarker = (largest + 3L) * MemoryRegion.PAGE_BYTES;
        // The catalog's spare copy beyond its first page, for which there is a block to spare.
        withMarker +=
                Math.max(0, opened.catalog().spareBytes() - 1) / MemoryRegion.PAGE_BYTES * MemoryRegion.PAGE_BYTES;
        if (withMarker > snapshotBytesMax) {
            LOG.warn(
                    "{}: a snapshot of {} blocks takes {} bytes a folder, and the cap leaves {} for it: the next start scans the"
                            + " log",
                    folders.path(),
                    rows,
                    withMarker,
                    snapshotBytesMax);
            return false;
        }
        folders.list().forEach(Snapshot::unlink);
        int checksum = Snapshot.writeIndex(folders, geometry, index, namespaces, opened.epoch(), rows);
        folders.list().forEach(folder -> folder.syncFolder(FolderNames.SNAPSHOT));
        if (opened.catalog().transaction() != transaction) {
            throw new OrbitKvException(ErrorCode.BUG, "the catalog of " + folders.path() + " changed during a stop");
        }
        Snapshot.Marker marker = new Snapshot.Marker(
                opened.epoch(), nextPosition, nextUseSequence, transaction, bytes, checksum, geometry.storeId());
        probe.enter(CrashWindow.SNAPSHOT_MARKER);
        Snapshot.writeMarker(folders, marker);
        probe.leave(CrashWindow.SNAPSHOT_MARKER);
        return true;
    }
}
