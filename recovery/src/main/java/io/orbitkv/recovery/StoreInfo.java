package io.orbitkv.recovery;

import io.orbitkv.index.CatalogIdentity;
import io.orbitkv.index.QuarantineRow;
import java.util.List;
import java.util.Map;

/**
 * What a store is and holds, at a moment.
 *
 * @param identity id, version, sizes
 * @param folders its folders, by number
 * @param epoch the life of the store that the catalog is of
 * @param transaction the catalog's last
 * @param owner who holds the folders, for people; empty where nobody does
 * @param atMillis when the catalog was read, in milliseconds since 1970
 * @param lastEnd how the last life ended; of a store in use, how a kill would end it
 * @param fromSnapshot whether the counts are those of a clean stop's snapshot
 * @param namespaces what each holds
 * @param segmentStates segments by the state that the catalog has them in
 * @param counters the catalog's counters by name
 * @param quarantined places in quarantine
 * @param quarantine the first of them
 * @param accounting where every page of the log is
 * @param segmentsChanged segments that an owner put to use while they were read
 * @param headersNanos time for all segment headers
 * @param indexNanos time to fill an index
 * @param report what an opening would meet
 */
public record StoreInfo(
        CatalogIdentity identity,
        List<FolderInfo> folders,
        long epoch,
        long transaction,
        String owner,
        long atMillis,
        OpeningKind lastEnd,
        boolean fromSnapshot,
        List<NamespaceInfo> namespaces,
        Map<String, Integer> segmentStates,
        Map<String, Long> counters,
        long quarantined,
        List<QuarantineRow> quarantine,
        Accounting accounting,
        int segmentsChanged,
        long headersNanos,
        long indexNanos,
        OpeningReport report) {
    /** Whether another process holds the folders. */
    public boolean isInUse() {
        return !owner.isEmpty();
    }

    /**
     * One data folder.
     *
     * @param path where it is
     * @param allocatedBytes what it takes on its drive, foreign files included
     * @param freeBytes what its file system has left
     * @param foreign files that OrbitKV did not put there, the first of them
     * @param foreignBytes what all of them take
     * @param lost whether it holds nothing of the store
     * @param epoch the life that its lock page names; -1 where none counts
     * @param pid the process that its lock page names; -1 where none counts
     */
    public record FolderInfo(
            String path,
            long allocatedBytes,
            long freeBytes,
            List<String> foreign,
            long foreignBytes,
            boolean lost,
            long epoch,
            long pid) {}
}
