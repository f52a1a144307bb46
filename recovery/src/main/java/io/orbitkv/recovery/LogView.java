package io.orbitkv.recovery;

import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.Resources;
import io.orbitkv.tiers.LogGeometry;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * What an opening would find in the log and make of it, without changing anything: the end of the last life, whether its
 * snapshot counts, and an index as the store would have it. Beside an owner that writes it is what a kill would leave.
 */
final class LogView implements AutoCloseable {
    private static final int BLOCKS_MIN = 64;

    private final StoreView view;
    private final Notes notes;
    private final Resources kept = new Resources();
    private final LogScan scan;
    private final Snapshot.Marker marker;
    private final OpeningKind lastEnd;
    private final long headersNanos;
    private long indexNanos;
    private PrefixIndex index;
    private List<OpenedNamespace> namespaces = List.of();
    private Accounting accounting;
    private boolean fromSnapshot;
    private long wrongBlocks;

    /**
     * Looks at headers and snapshot.
     *
     * @param view with a catalog
     * @throws OrbitKvException as an opening would
     */
    LogView(StoreView view, OpeningOptions options) {
        this.view = view.requireCatalog();
        this.notes = new Notes(view.folders().path());
        long started = System.nanoTime();
        boolean good = false;
        try {
            scan = kept.keep(new LogScan(
                    view.folders(),
                    view.lost(),
                    view.geometry(),
                    view.plan(),
                    notes,
                    options.readThreads(),
                    options.progress()));
            scan.readHeaders();
            marker =
                    view.isInUse() ? null : Snapshot.readMarker(view.folders(), view.geometry(), view.catalog(), notes);
            good = true;
        } finally {
            if (!good) {
                kept.close();
            }
        }
        headersNanos = System.nanoTime() - started;
        lastEnd = judgeLastEnd();
    }

    private OpeningKind judgeLastEnd() {
        if (view.catalog().counter(CatalogCounter.EPOCH) == 0) {
            return OpeningKind.FRESH;
        }
        if (snapshotCounts()) {
            return OpeningKind.CLEAN;
        }
        return view.isOfThisBoot() ? OpeningKind.KILL : OpeningKind.POWER_LOSS;
    }

    /** Whether a snapshot is there that counts, as far as its marker and the segments tell. */
    boolean snapshotCounts() {
        return marker != null && scan.agreesWithCatalog();
    }

    /** How the last life ended; of one that goes on, how a kill would end it. */
    OpeningKind lastEnd() {
        return lastEnd;
    }

    /**
     * Fills an index as an opening would.
     *
     * @param checkUnsure whether blocks that a power loss may have taken are read and checked
     */
    void fill(boolean checkUnsure) {
        long started = System.nanoTime();
        newIndex();
        Indexing indexing = new Indexing(index, view.catalog(), 0);
        if (lastEnd != OpeningKind.CLEAN || !fillFromSnapshot(indexing)) {
            newIndex(); // without what a snapshot may have brought that does not count
            indexing = new Indexing(index, view.catalog(), 0);
            fillFromLog(indexing, checkUnsure && lastEnd == OpeningKind.POWER_LOSS);
        }
        namespaces = indexing.namespaces();
        wrongBlocks = indexing.found().size();
        accounting = scan.accounting(indexing);
        indexNanos = System.nanoTime() - started;
    }

    private void fillFromLog(Indexing indexing, boolean checkUnsure) {
        scan.judge(checkUnsure);
        scan.begin(FillGround.ALONE, indexing);
        for (SegmentReader reader = scan.next(); reader != null; reader = scan.next()) {
            indexing.begin(reader.segment());
            for (int from = 0; from < reader.count(); ) {
                from += indexing.prepare(reader, from);
                indexing.publish();
            }
            scan.finishLook(reader);
        }
        scan.endReading();
    }

    private boolean fillFromSnapshot(Indexing indexing) {
        int segments = view.geometry().segments();
        SnapshotLoad load = new SnapshotLoad(indexing, scan, segments);
        String odd = Snapshot.readIndex(view.folders(), view.geometry(), marker, load::rowsOf);
        odd = odd == null ? load.odd() : odd;
        if (odd != null) {
            notes.add("the snapshot does not count: " + odd + "; an opening scans the log");
            return false;
        }
        fromSnapshot = true;
        scan.takeFromCatalog();
        for (int segment = 0; segment < segments; segment++) {
            if (!scan.isFree(segment)) {
                indexing.bury(DeadReason.EVICTED, load.evictedBlocks(segment), load.evictedPages(segment));
            }
        }
        return true;
    }

    /** Room for every block that the segments can hold by what is known of them; pages that nobody touches cost nothing. */
    private void newIndex() {
        LogGeometry geometry = view.geometry();
        Map<Integer, SegmentRow> rows = new HashMap<>();
        view.catalog().segments().forEach(row -> rows.put(row.segment(), row));
        long most = BLOCKS_MIN;
        for (int segment = 0; segment < geometry.segments(); segment++) {
            SegmentRow row = rows.get(segment);
            boolean counted = row != null
                    && row.useSequence() == scan.useSequence(segment)
                    && row.state() != SegmentRow.State.OPEN
                    && row.state() != SegmentRow.State.FREE;
            boolean blank = view.absent().get(segment) || (row == null && scan.useSequence(segment) == 0);
            most += counted ? row.blocks() : blank ? 0 : geometry.segmentPages();
        }
        if (most > PrefixIndex.BLOCKS_MAX) {
            throw new OrbitKvException(
                    ErrorCode.OVER_LIMIT, "the log may hold " + most + " blocks, more than an index can");
        }
        Generations host = kept.keep(new Generations(1));
        Generations nvme = kept.keep(new Generations(geometry.segments()));
        index = kept.keep(new PrefixIndex(most, host, nvme));
    }

    /** Whether the index came from the snapshot. */
    boolean isFromSnapshot() {
        return fromSnapshot;
    }

    PrefixIndex index() {
        return index;
    }

    /** The index's number of a namespace at its present epoch, or -1. */
    int numberOf(long id64, int epoch) {
        for (OpenedNamespace opened : namespaces) {
            if (opened.row().id64() == id64) {
                return opened.row().epoch() == epoch ? opened.number() : -1;
            }
        }
        return -1;
    }

    long useSequence(int segment) {
        return scan.useSequence(segment);
    }

    /** Segments that hold blocks, oldest use first. */
    int[] segmentsByUse() {
        return IntStream.of(view.segmentsPresent())
                .filter(segment -> !scan.isFree(segment))
                .boxed()
                .sorted(Comparator.comparingLong(scan::useSequence))
                .mapToInt(Integer::intValue)
                .toArray();
    }

    Accounting accounting() {
        return accounting;
    }

    /** What each namespace has in the index, in the catalog's order. */
    List<NamespaceInfo> namespaces() {
        Map<Integer, long[]> sums = new HashMap<>();
        index.visit((number, continuesRun, key0, tag, extent, bytes, checksum, depth) -> {
            long[] sum = sums.computeIfAbsent(number, n -> new long[3]);
            sum[0]++;
            sum[1] += bytes;
            sum[2] += Extent.pages(bytes);
        });
        return namespaces.stream()
                .map(opened -> NamespaceInfo.of(opened.row(), sums.getOrDefault(opened.number(), new long[3])))
                .toList();
    }

    /** What an opening would report; nothing was repaired. */
    OpeningReport report() {
        return scan.report(headersNanos + indexNanos, List.of(), 0, List.of());
    }

    /** Segments whose use is another than when their headers were read first: an owner put them to use meanwhile. */
    int segmentsChanged() {
        int changed = 0;
        try (SegmentReader reader = new SegmentReader(view.folders(), view.geometry())) {
            for (int segment : view.segmentsPresent()) {
                long use = scan.useSequence(segment);
                reader.readHeader(segment);
                changed += use != 0 && reader.useSequence() != 0 && reader.useSequence() != use ? 1 : 0;
            }
        }
        return changed;
    }

    Snapshot.Marker marker() {
        return marker;
    }

    long headersNanos() {
        return headersNanos;
    }

    long indexNanos() {
        return indexNanos;
    }

    long wrongBlocks() {
        return wrongBlocks;
    }

    List<String> notes() {
        return notes.list();
    }

    @Override
    public void close() {
        kept.close();
    }
}
