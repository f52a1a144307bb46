package io.orbitkv.recovery;

import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.LogState;
import io.orbitkv.tiers.Verdict;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * Reads the log: first the header of every segment, which changes nothing and refuses what is not ours, then the
 * listings of the segments in use, oldest use first, into an {@link Indexing}.
 *
 * <p>A segment whose header is damaged is not given up: its first batch or its footer tell which use it is in. All its
 * payloads are checked then, for the header may be damaged because a new use had just begun.
 */
final class LogScan implements AutoCloseable {
    private static final int SEGMENT_PROGRESS = 64;

    private final DataFolders folders;
    private final BitSet lost;
    private final BitSet absent;
    private final LogGeometry geometry;
    private final CatalogContents catalog;
    private final Notes notes;
    private final OpeningProgress progress;
    private final ReaderPool readers;

    private final long[] uses;
    private final long[] headerUses;
    private final boolean[] damagedHeaders;
    private final SegmentRow[] known;
    private final int[] blocks;
    private final int[] payloadPages;
    private final List<Integer> unsealed = new ArrayList<>();
    private final List<Integer> unsureFooters = new ArrayList<>();
    private long lastUse;
    private int footersRead;
    private int batchesWalked;
    private long blocksChecked;
    private int footersWritten;
    private int headersRepaired;
    private int segmentsDamaged;

    LogScan(
            DataFolders folders,
            BitSet lost,
            LogGeometry geometry,
            CapPlan plan,
            Notes notes,
            int readThreads,
            OpeningProgress progress) {
        this.folders = folders;
        this.lost = lost;
        this.absent = plan.absent();
        this.geometry = geometry;
        this.catalog = plan.contents();
        this.notes = notes;
        this.progress = progress;
        this.uses = new long[geometry.segments()];
        this.headerUses = new long[geometry.segments()];
        this.damagedHeaders = new boolean[geometry.segments()];
        this.known = new SegmentRow[geometry.segments()];
        this.blocks = new int[geometry.segments()];
        this.payloadPages = new int[geometry.segments()];
        for (SegmentRow row : catalog.segments()) {
            if (row.segment() >= 0 && row.segment() < known.length) {
                known[row.segment()] = row;
            }
        }
        this.readers = new ReaderPool(folders, geometry, readThreads);
    }

    /**
     * Reads the header of every segment.
     *
     * @throws OrbitKvException when a file is missing or short, or a segment is of another store, version or place
     */
    void readHeaders() {
        requireFiles();
        long[] counted = new long[1];
        int[] present = FolderSet.segmentsPresent(geometry, lost, absent);
        readers.each(present, this::readHeader, reader -> {
            int segment = reader.segment();
            uses[segment] = reader.useSequence();
            headerUses[segment] = uses[segment];
            lastUse = Math.max(lastUse, reader.useSequence());
            if (++counted[0] % SEGMENT_PROGRESS == 0 || counted[0] == present.length) {
                progress.onProgress("reading segment headers", counted[0], present.length);
            }
        });
    }

    private void requireFiles() {
        for (int number = 0; number < geometry.files(); number++) {
            if (lost.get(geometry.folderOfFile(number))) {
                continue;
            }
            DataFolder folder = folders.get(geometry.folderOfFile(number));
            String name = LogGeometry.fileName(number);
            long needed = CapPlan.bytesNeeded(geometry, number, absent);
            if (needed == 0 && !folder.exists(name)) {
                continue;
            }
            if (!folder.exists(name)) {
                throw new OrbitKvException(
                        ErrorCode.SEGMENT_FILE,
                        "the segment file " + folder.path() + "/" + name
                                + " is missing; put it back, or move the folder away and start with an empty one."
                                + " Nothing was changed");
            }
            try (StorageFile file = folder.open(name, false)) {
                if (file.bytes() < needed || file.bytes() > geometry.fileBytes(number)) {
                    throw new OrbitKvException(
                            ErrorCode.SEGMENT_FILE,
                            "the segment file " + folder.path() + "/" + name + " has " + file.bytes()
                                    + " bytes and should have " + geometry.fileBytes(number)
                                    + "; put the whole file back, or move the folder away and start with an empty one."
                                    + " Nothing was changed");
                }
            }
        }
    }

    private void readHeader(SegmentReader reader, int segment) {
        Verdict verdict = reader.readHeader(segment);
        switch (verdict) {
            case VALID:
                break;
            case OTHER_VERSION:
                throw refused(ErrorCode.OTHER_VERSION, segment, reader, "open it with the program that wrote it");
            case OTHER_STORE:
                throw refused(ErrorCode.OTHER_STORE, segment, reader, "put this store's own file back");
            case OTHER_SEGMENT:
                throw refused(ErrorCode.SEGMENT_HEADER, segment, reader, "files were exchanged: put each in its place");
            default:
                // Zeros are what a segment has before its first use.
                boolean inUse = !isFreeInCatalog(segment);
                damagedHeaders[segment] = inUse || !reader.isZeroHeader();
        }
    }

    private OrbitKvException refused(ErrorCode code, int segment, SegmentReader reader, String remedy) {
        return new OrbitKvException(
                code,
                "segment " + segment + " in "
                        + folders.get(geometry.folderOfSegment(segment)).path() + "/"
                        + LogGeometry.fileName(geometry.file(segment))
                        + " is not of this store (" + reader.headerText() + "); " + remedy
                        + ", or move the folder away. Nothing was changed");
    }

    /** Whether the segments are what the catalog says: only then may a snapshot be believed. */
    boolean agreesWithCatalog() {
        for (int segment = 0; segment < uses.length; segment++) {
            SegmentRow row = known[segment];
            boolean good = isFreeInCatalog(segment)
                    ? !damagedHeaders[segment]
                    : row.state() != SegmentRow.State.OPEN
                            && row.useSequence() == uses[segment]
                            && row.blocks() >= 1
                            && row.payloadPages() >= row.blocks()
                            && row.overheadPages() >= 1
                            && row.payloadPages() + row.overheadPages() == geometry.segmentPages();
            if (!good) {
                notes.add("segment " + segment + " is not what the catalog says (" + row + ", use-sequence "
                        + uses[segment] + "): the log is scanned");
                return false;
            }
        }
        return true;
    }

    /** After a clean stop: the catalog's counts hold. */
    void takeFromCatalog() {
        for (int segment = 0; segment < uses.length; segment++) {
            SegmentRow row = known[segment];
            if (isFreeInCatalog(segment)) {
                uses[segment] = 0;
            } else {
                blocks[segment] = row.blocks();
                payloadPages[segment] = row.payloadPages();
            }
        }
    }

    /**
     * Reads the listings of all segments in use.
     *
     * @param into takes them, oldest use first
     * @param checkUnsure whether payloads that the catalog doesn't know as durable are read and checked
     */
    void readBlocks(Indexing into, boolean checkUnsure) {
        for (int segment = 0; segment < uses.length; segment++) {
            if (damagedHeaders[segment]) {
                lookBehindHeader(segment);
            }
        }
        int[] order = IntStream.range(0, uses.length)
                .filter(segment -> uses[segment] != 0)
                .boxed()
                .sorted(Comparator.comparingLong(segment -> uses[segment]))
                .mapToInt(Integer::intValue)
                .toArray();
        long[] counted = new long[1];
        readers.each(
                order,
                (reader, segment) -> {
                    boolean unsure = checkUnsure && !isDurable(segment);
                    reader.read(segment, uses[segment]);
                    if (damagedHeaders[segment] || unsure) {
                        reader.checkPayloads();
                    }
                },
                reader -> {
                    take(reader, into, checkUnsure);
                    if (++counted[0] % SEGMENT_PROGRESS == 0 || counted[0] == order.length) {
                        progress.onProgress("reading segments", counted[0], order.length);
                    }
                });
    }

    private void lookBehindHeader(int segment) {
        segmentsDamaged++;
        long use = readers.own().useBehindHeader(segment);
        // A use-sequence that was never given out can't be right.
        uses[segment] = use < catalog.counter(io.orbitkv.index.CatalogCounter.NEXT_USE_SEQUENCE) ? use : 0;
        lastUse = Math.max(lastUse, uses[segment]);
        notes.add("the header of segment " + segment + " is damaged; "
                + (uses[segment] == 0 ? "nothing behind it counts" : "its blocks are checked one by one"));
    }

    private boolean isDurable(int segment) {
        SegmentRow row = known[segment];
        return row != null && row.state() == SegmentRow.State.DURABLE && row.useSequence() == uses[segment];
    }

    private void take(SegmentReader reader, Indexing into, boolean checkUnsure) {
        int segment = reader.segment();
        if (reader.count() == 0) {
            uses[segment] = 0;
            return;
        }
        blocks[segment] = reader.count();
        payloadPages[segment] = reader.payloadPages();
        if (reader.isFromFooter()) {
            footersRead++;
            if (damagedHeaders[segment] || (checkUnsure && !isDurable(segment))) {
                unsureFooters.add(segment);
            }
        } else {
            batchesWalked++;
            unsealed.add(segment);
            noteIfOdd(reader);
        }
        if (damagedHeaders[segment] || (checkUnsure && !isDurable(segment))) {
            blocksChecked += reader.count();
        }
        into.take(reader);
    }

    private void noteIfOdd(SegmentReader reader) {
        int segment = reader.segment();
        SegmentRow row = known[segment];
        boolean sealed = row != null
                && row.useSequence() == uses[segment]
                && (row.state() == SegmentRow.State.SEALED || row.state() == SegmentRow.State.DURABLE);
        if (sealed || reader.footerVerdict() == Verdict.TORN) {
            segmentsDamaged++;
            notes.add("the footer of segment " + segment + " does not count (" + reader.footerVerdict()
                    + "); its batches were read: " + reader.count() + " blocks"
                    + (sealed ? " of " + row.blocks() : ""));
        }
    }

    /** Seals what was found unsealed, repairs headers, and makes everything that was found durable. */
    void repair() {
        SegmentReader reader = readers.own();
        for (int segment : unsealed) {
            reader.readBatches(segment, uses[segment]);
            if (reader.writeFooter()) {
                footersWritten++;
            }
        }
        for (int segment : unsureFooters) {
            reader.readBatches(segment, uses[segment]);
            if (reader.count() != blocks[segment]) {
                // The power loss kept the footer and took a batch header, which proves nothing any more; but a reader
                // that finds the footer rotten one day has nothing else.
                notes.add("a batch header of segment " + segment + " is written again from its footer");
                reader.readFooter(segment, uses[segment]);
                reader.writeBatchHeaders();
            }
        }
        TreeSet<Integer> files = new TreeSet<>();
        for (int segment = 0; segment < uses.length; segment++) {
            if (damagedHeaders[segment]) {
                repairHeader(reader, segment);
            }
            if (uses[segment] != 0 && !isDurable(segment)) {
                files.add(geometry.file(segment));
            }
        }
        for (int file : files) {
            DataFolder folder = folders.get(geometry.folderOfFile(file));
            try (StorageFile opened = folder.open(LogGeometry.fileName(file), true)) {
                opened.flush();
            }
        }
    }

    /** A free segment gets a blank one: left as it is, it would cost a scan after each clean stop until its next use. */
    private void repairHeader(SegmentReader reader, int segment) {
        if (uses[segment] != 0) {
            reader.writeHeader(segment, uses[segment]);
        } else {
            reader.blankHeader(segment);
        }
        headersRepaired++;
    }

    /** Rows of the catalog that are to be changed now. */
    List<SegmentRow> changedRows() {
        List<SegmentRow> changed = new ArrayList<>();
        for (int segment = 0; segment < uses.length; segment++) {
            SegmentRow row = known[segment];
            if (absent.get(segment)) {
                continue;
            }
            if (uses[segment] == 0) {
                if (row != null && row.state() != SegmentRow.State.FREE) {
                    changed.add(new SegmentRow(segment, row.useSequence(), SegmentRow.State.FREE, 0, 0, 0));
                }
                continue;
            }
            SegmentRow now = new SegmentRow(
                    segment,
                    uses[segment],
                    SegmentRow.State.DURABLE,
                    blocks[segment],
                    payloadPages[segment],
                    geometry.segmentPages() - payloadPages[segment]);
            if (!now.equals(row)) {
                changed.add(now);
            }
        }
        return changed;
    }

    LogState state(long nextUseSequence, long lastPosition) {
        LogState state = new LogState(uses.length);
        for (int segment = 0; segment < uses.length; segment++) {
            if (uses[segment] != 0) {
                state.seal(segment, uses[segment]);
            } else if (absent.get(segment)) {
                state.absent(segment);
            } else {
                state.emptyUse(segment, headerUses[segment]);
            }
        }
        return state.passUse(nextUseSequence - 1).positions(lastPosition, lastPosition);
    }

    /** The accounting once everything is indexed. */
    Accounting accounting(
            long indexedPages, long indexedBlocks, java.util.Map<DeadReason, Long> deadBlocks, long deadPages) {
        long overhead = 0;
        int used = 0;
        for (int segment = 0; segment < uses.length; segment++) {
            if (uses[segment] != 0) {
                used++;
                overhead += geometry.segmentPages() - payloadPages[segment];
            }
        }
        int free = uses.length - used - absent.cardinality();
        return new Accounting(
                indexedPages,
                deadPages,
                overhead,
                (long) free * geometry.segmentPages(),
                (long) (uses.length - absent.cardinality()) * geometry.segmentPages(),
                indexedBlocks,
                deadBlocks,
                used,
                free);
    }

    long useSequence(int segment) {
        return uses[segment];
    }

    boolean isFree(int segment) {
        return uses[segment] == 0;
    }

    /** Whether the catalog has blocks in a segment. */
    boolean isSealedInCatalog(int segment) {
        return !isFreeInCatalog(segment);
    }

    private boolean isFreeInCatalog(int segment) {
        SegmentRow row = known[segment];
        return row == null || row.state() == SegmentRow.State.FREE || row.state() == SegmentRow.State.ABSENT;
    }

    int blocksInCatalog(int segment) {
        return isSealedInCatalog(segment) ? known[segment].blocks() : 0;
    }

    int payloadPagesInCatalog(int segment) {
        return isSealedInCatalog(segment) ? known[segment].payloadPages() : 0;
    }

    /** Blocks listed in a segment, live or dead. */
    int blocks(int segment) {
        return blocks[segment];
    }

    int payloadPages(int segment) {
        return payloadPages[segment];
    }

    /** The largest use-sequence that stands anywhere. */
    long lastUse() {
        return lastUse;
    }

    OpeningReport report(long nanos, List<String> foreignNames, long foreignBytes, List<String> lostFolders) {
        return new OpeningReport(
                nanos,
                footersRead,
                batchesWalked,
                blocksChecked,
                footersWritten,
                headersRepaired,
                segmentsDamaged,
                foreignNames,
                foreignBytes,
                lostFolders,
                notes.list());
    }

    @Override
    public void close() {
        readers.close();
    }
}
