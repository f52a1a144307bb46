package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.CatalogIdentity;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.tiers.LogGeometry;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Which segments have no pages, and which cap holds from this opening on. The catalog's word counts: what it calls absent
 * has no blocks, whatever stands in its place in a file, and an opening takes the pages away where a death came before that.
 * A larger cap gives the files more places first, all of them absent; the running store takes pages for them.
 *
 * @param contents what the catalogs hold, with the cap and the places of now, and a row for each absent segment
 * @param absent segments without pages
 * @param isNew whether the catalog has to be told of the cap or of places
 * @param unheard absent segments that the catalog does not know as such
 */
record CapPlan(CatalogContents contents, BitSet absent, boolean isNew, List<SegmentRow> unheard) {
    /** Nothing changes: what the catalogs say. */
    static CapPlan asItIs(FolderSet set) {
        return of(set, 0, 0);
    }

    /**
     * Works it out and changes nothing.
     *
     * @param set the folders, not fresh
     * @param capBytes the cap that is asked for; 0: the catalog's
     * @param segmentsMin fewest segments, where a cap is asked for
     * @throws io.orbitkv.nativeio.OrbitKvException {@link io.orbitkv.nativeio.ErrorCode#CAP_TOO_SMALL}
     */
    static CapPlan of(FolderSet set, long capBytes, int segmentsMin) {
        CatalogContents read = set.copies().together();
        CatalogIdentity identity = read.identity();
        long cap = capBytes == 0 ? identity.capBytes() : capBytes;
        Budget budget = Budget.fitting(cap, identity, read.mapBytes());
        if (capBytes != 0 && capBytes != identity.capBytes()) {
            budget.requireSegments(segmentsMin, identity);
        }
        int places = segmentsMin == 0 ? identity.segments() : Math.max(identity.segments(), budget.segments());
        BitSet known = new BitSet();
        for (SegmentRow row : read.segments()) {
            if (row.state() == SegmentRow.State.ABSENT) {
                known.set(row.segment());
            }
        }
        BitSet absent = (BitSet) known.clone();
        absent.set(identity.segments(), places);
        for (int folder = 0; folder < identity.folders(); folder++) {
            int from = firstUnknown(set, folder, identity, budget);
            for (int place = from; place < places / identity.folders(); place++) {
                absent.set(place * identity.folders() + folder);
            }
        }
        List<SegmentRow> unheard = new ArrayList<>();
        absent.stream()
                .filter(segment -> !known.get(segment))
                .forEach(segment -> unheard.add(new SegmentRow(segment, 0, SegmentRow.State.ABSENT, 0, 0, 0)));
        boolean isNew = cap != identity.capBytes() || places != identity.segments() || !unheard.isEmpty();
        return new CapPlan(planned(read, identity.resized(cap, places), unheard), absent, isNew, unheard);
    }

    /** From which of its own segments on a folder has never heard of them: its catalog is lost, or lacks the last commit. */
    private static int firstUnknown(FolderSet set, int folder, CatalogIdentity identity, Budget budget) {
        CatalogContents own = set.copies().of(folder);
        if (own != null) {
            return own.identity().segments() / identity.folders();
        }
        return Math.min(identity.segments(), budget.segments()) / identity.folders();
    }

    private static CatalogContents planned(CatalogContents read, CatalogIdentity identity, List<SegmentRow> unheard) {
        List<SegmentRow> rows = new ArrayList<>(read.segments());
        Set<Integer> replaced = new HashSet<>();
        unheard.forEach(row -> replaced.add(row.segment()));
        rows.removeIf(row -> replaced.contains(row.segment()));
        rows.addAll(unheard);
        return new CatalogContents(
                identity,
                read.transaction(),
                read.mapBytes(),
                read.counters(),
                read.namespaces(),
                rows,
                read.quarantine());
    }

    /** The same for a store that was just made: every segment has its pages. */
    static CapPlan fresh(CatalogContents contents) {
        return new CapPlan(contents, new BitSet(), false, List.of());
    }

    /** Writes down what is new. */
    void putInto(Catalog.Batch batch) {
        if (isNew) {
            batch.resize(contents.identity().capBytes(), contents.identity().segments());
            unheard.forEach(batch::putSegment);
        }
    }

    /** Bytes that a file must have: what lies behind is absent. */
    static long bytesNeeded(LogGeometry geometry, int file, BitSet absent) {
        long needed = 0;
        for (int segment : segmentsOf(geometry, file)) {
            if (!absent.get(segment)) {
                needed = geometry.fileOffset(segment) + geometry.segmentBytes();
            }
        }
        return needed;
    }

    private static int[] segmentsOf(LogGeometry geometry, int file) {
        int folders = geometry.folders();
        int first = (file / folders) * geometry.segmentsPerFile() * folders + file % folders;
        int count = (int) (geometry.fileBytes(file) / geometry.segmentBytes());
        int[] segments = new int[count];
        for (int i = 0; i < count; i++) {
            segments[i] = first + i * folders;
        }
        return segments;
    }

    /** Makes the files what the catalog says: as long as their places, and without pages where a segment is absent. */
    void settleFiles(DataFolders folders, LogGeometry geometry) {
        if (absent.isEmpty()) {
            return;
        }
        for (int file = 0; file < geometry.files(); file++) {
            DataFolder folder = folders.get(geometry.folderOfFile(file));
            settleFile(folder, geometry, file);
        }
        folders.list().forEach(folder -> folder.syncFolder(LogGeometry.FOLDER));
    }

    private void settleFile(DataFolder folder, LogGeometry geometry, int file) {
        String name = LogGeometry.fileName(file);
        int[] segments = segmentsOf(geometry, file);
        boolean hasAbsent = false;
        for (int segment : segments) {
            hasAbsent |= absent.get(segment);
        }
        if (!hasAbsent) {
            return;
        }
        folder.extend(name, geometry.fileBytes(file));
        try (StorageFile opened = folder.open(name, true)) {
            for (int segment : segments) {
                if (absent.get(segment)) {
                    opened.punch(geometry.fileOffset(segment), geometry.segmentBytes());
                }
            }
        }
    }

    /** Gives a file of a folder that is made anew its length, and pages where its segments are not absent. */
    static void makeFile(DataFolder folder, LogGeometry geometry, int file, BitSet absent) {
        String name = LogGeometry.fileName(file);
        if (bytesNeeded(geometry, file, absent) == geometry.fileBytes(file) && absent.isEmpty()) {
            folder.create(name, geometry.fileBytes(file)).close();
            return;
        }
        folder.extend(name, geometry.fileBytes(file));
        try (StorageFile opened = folder.open(name, true)) {
            for (int segment : segmentsOf(geometry, file)) {
                if (!absent.get(segment)) {
                    opened.allocate(geometry.fileOffset(segment), geometry.segmentBytes());
                }
            }
            opened.flush();
        }
    }
}
