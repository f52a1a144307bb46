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
 * Reads the log: first the header of every segment, which changes nothing and refuses what is not ours, then what the
 * catalog can't tell, and when the store is open the listings of the segments in use, oldest use first.
 *
 * <p>A segment whose header is damaged is not given up: its first batch or its footer tell which use it is in. All its
 * payloads are checked then, for the header may be damaged because a new use had just begun.
 */
final class LogScan implements AutoCloseable {
    /** Listed blocks from which on it is worth a thread to have pages of the index ready. */
    private static final long READY_MIN = 1 << 16;

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
    /** Segments that were read before the store opened, for the catalog could not tell what they hold. */
    private final BitSet judged = new BitSet();

    private final List<Integer> unsealed = new ArrayList<>();

    /** Segments to be filled from that turned out to have been given up meanwhile. */
    private final BitSet givenUp = new BitSet();

    private final TreeSet<Integer> dirtyFiles = new TreeSet<>();
    private boolean checkUnsure;
    private FillGround ground = FillGround.ALONE;
    private long lastUse;
    private int footersRead;
    private int batchesWalked;
    private long blocksChecked;
    private int footersWritten;
    private int headersRepaired;

    /** Whether what is durable may stand in the catalog as durable. */
    private boolean vouches = true;

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

    /** Says that the store will put segments to use again without a flush, so that no row may vouch for one. */
    void vouchesForNothing() {
        vouches = false;
    }

    /**
     * Reads the header of every segment.
     *
     * @throws OrbitKvException when a file is missing or short, or a segment is of another store, version or place
     */
    void readHeaders() {
        requireFiles();
        int[] present = FolderSet.segmentsPresent(geometry, lost, absent);
        readers.eachApart(
                present,
                this::readHeader,
                done -> progress.onProgress("reading segment headers", done, present.length));
        for (int segment : present) {
            headerUses[segment] = uses[segment];
            lastUse = Math.max(lastUse, uses[segment]);
        }
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
        uses[segment] = reader.useSequence();
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
     * Finds out which segments hold blocks where the catalog can't tell: those that were open, or sealed, or made ready so
     * short before the end that it hadn't heard of it. Few, unless the catalog is not what it was.
     *
     * @param powerLost whether payloads that the catalog doesn't know as durable have to be checked before they are indexed
     */
    void judge(boolean powerLost) {
        checkUnsure = powerLost;
        for (int segment = 0; segment < uses.length; segment++) {
            if (damagedHeaders[segment]) {
                lookBehindHeader(segment);
            }
        }
        int[] doubtful = IntStream.range(0, uses.length)
                .filter(segment -> uses[segment] != 0)
                .filter(segment -> damagedHeaders[segment] || !isSealedAsKnown(segment))
                .toArray();
        readers.each(doubtful, (reader, segment) -> reader.read(segment, uses[segment]), this::judge);
        for (int segment = 0; segment < uses.length; segment++) {
            if (uses[segment] != 0 && !judged.get(segment)) {
                blocks[segment] = known[segment].blocks();
                payloadPages[segment] = known[segment].payloadPages();
            }
        }
    }

    private void judge(SegmentReader reader) {
        int segment = reader.segment();
        if (reader.count() == 0) {
            uses[segment] = 0;
            return;
        }
        judged.set(segment);
        blocks[segment] = reader.count();
        payloadPages[segment] = reader.payloadPages();
        countReading(reader);
        if (!reader.isFromFooter()) {
            unsealed.add(segment);
        }
    }

    /** Whether the catalog knows a segment as sealed, in the use that its header names. */
    private boolean isSealedAsKnown(int segment) {
        SegmentRow row = known[segment];
        return row != null
                && (row.state() == SegmentRow.State.SEALED || row.state() == SegmentRow.State.DURABLE)
                && row.useSequence() == uses[segment]
                && row.blocks() >= 1;
    }

    /** Whether a segment's payloads are compared with their checksums before they are indexed. */
    private boolean isUnsure(int segment) {
        return damagedHeaders[segment] || (checkUnsure && !isDurable(segment));
    }

    // ---- filling the index ----

    /** Begins to read the listings of all segments in use, oldest use first. */
    void begin(FillGround with, Indexing indexing) {
        ground = with;
        int[] segments = segmentsInOrder();
        long listed = 0;
        for (int segment : segments) {
            listed += blocks[segment];
        }
        readers.begin(segments, this::readForFill);
        if (listed >= READY_MIN) {
            long expected = listed;
            readers.beside(isEnded -> indexing.makeReady(expected, isEnded));
        }
    }

    private int[] segmentsInOrder() {
        return IntStream.range(0, uses.length)
                .filter(segment -> uses[segment] != 0)
                .boxed()
                .sorted(Comparator.comparingLong(segment -> uses[segment]))
                .mapToInt(Integer::intValue)
                .toArray();
    }

    /** A segment is held from before it is read until it is {@link #finish finished}, so that nothing is written over it. */
    private void readForFill(SegmentReader reader, int segment) {
        if (!ground.hold(segment)) {
            reader.begin(segment, 0);
            return;
        }
        boolean good = false;
        try {
            reader.read(segment, uses[segment], blocks[segment]);
            if (isUnsure(segment)) {
                reader.checkPayloads();
            }
            reader.list(Indexing.GENERATION);
            good = true;
        } finally {
            if (!good) {
                ground.letGo(segment);
            }
        }
    }

    /** The next segment that was read, or null when there is none left. */
    SegmentReader next() {
        return readers.next();
    }

    /** Whether a segment was given up before it was read: nothing of it counts. */
    boolean isGivenUp(SegmentReader reader) {
        return reader.useSequence() == 0;
    }

    /** A segment was read for the last time: repairs what is to be repaired, and lets it go. */
    void finish(SegmentReader reader) {
        int segment = reader.segment();
        try {
            if (isGivenUp(reader)) {
                givenUp.set(segment);
            } else {
                take(reader);
            }
        } finally {
            readers.giveBack(reader);
            if (!isGivenUp(reader)) {
                ground.letGo(segment);
            }
        }
    }

    /** The same for a look that changes nothing. */
    void finishLook(SegmentReader reader) {
        int segment = reader.segment();
        blocks[segment] = reader.count();
        payloadPages[segment] = reader.payloadPages();
        if (!judged.get(segment)) {
            countReading(reader);
        }
        if (isUnsure(segment)) {
            blocksChecked += reader.count();
        }
        readers.giveBack(reader);
    }

    /** Gives up reading: lets go of what was read and not handed on. */
    void endReading() {
        for (SegmentReader reader : readers.end()) {
            if (!isGivenUp(reader)) {
                ground.letGo(reader.segment());
            }
        }
    }

    private void take(SegmentReader reader) {
        int segment = reader.segment();
        blocks[segment] = reader.count();
        payloadPages[segment] = reader.payloadPages();
        if (!judged.get(segment)) {
            countReading(reader);
        }
        if (isUnsure(segment)) {
            blocksChecked += reader.count();
            dirtyFiles.add(geometry.file(segment));
        }
        if (!reader.isFromFooter()) {
            if (reader.writeFooter()) {
                footersWritten++;
                dirtyFiles.add(geometry.file(segment));
            }
        } else if (isUnsure(segment)) {
            repairBatches(reader);
        }
        if (damagedHeaders[segment]) {
            reader.writeHeader(segment, uses[segment]);
            headersRepaired++;
        }
    }

    /**
     * The power loss kept the footer and may have taken a batch header, which proves nothing any more; but a reader that
     * finds the footer rotten one day has nothing else.
     */
    private void repairBatches(SegmentReader reader) {
        int segment = reader.segment();
        reader.readBatches(segment, uses[segment]);
        if (reader.count() != blocks[segment]) {
            notes.add("a batch header of segment " + segment + " is written again from its footer");
            reader.readFooter(segment, uses[segment]);
            reader.writeBatchHeaders();
        }
    }

    private void countReading(SegmentReader reader) {
        if (reader.isFromFooter()) {
            footersRead++;
        } else {
            batchesWalked++;
            noteIfOdd(reader);
        }
    }

    /** Makes durable what was checked or repaired while the index was filled. */
    void flushFilled() {
        flush(dirtyFiles);
        dirtyFiles.clear();
    }

    /** Rows of the catalog that are to be changed when all is indexed, but for segments that were given up since. */
    List<SegmentRow> filledRows() {
        List<SegmentRow> changed = new ArrayList<>();
        for (int segment = 0; segment < uses.length; segment++) {
            if (uses[segment] != 0
                    && blocks[segment] > 0
                    && !givenUp.get(segment)
                    && ground.isCurrent(segment, uses[segment])
                    && !settledRow(segment).equals(known[segment])) {
                changed.add(settledRow(segment));
            }
        }
        return changed;
    }

    private SegmentRow settledRow(int segment) {
        return new SegmentRow(
                segment,
                uses[segment],
                vouches ? SegmentRow.State.DURABLE : SegmentRow.State.SEALED,
                blocks[segment],
                payloadPages[segment],
                geometry.segmentPages() - payloadPages[segment]);
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

    /**
     * Before the store opens: makes damaged headers of free segments blank, and after a kill seals what was found unsealed and
     * makes durable what the catalog doesn't know as durable. After a power loss that comes when payloads were checked.
     */
    void repair() {
        SegmentReader reader = readers.own();
        for (int segment = 0; segment < uses.length; segment++) {
            if (damagedHeaders[segment] && uses[segment] == 0) {
                // Left as it is, it would cost a scan after each clean stop until its next use.
                reader.blankHeader(segment);
                headersRepaired++;
            }
        }
        if (checkUnsure) {
            return;
        }
        for (int segment : unsealed) {
            if (!damagedHeaders[segment]) {
                reader.readBatches(segment, uses[segment]);
                if (reader.writeFooter()) {
                    footersWritten++;
                }
            }
        }
        TreeSet<Integer> files = new TreeSet<>();
        for (int segment = 0; segment < uses.length; segment++) {
            if (uses[segment] != 0 && !damagedHeaders[segment] && !isDurable(segment)) {
                files.add(geometry.file(segment));
            }
        }
        flush(files);
    }

    private void flush(TreeSet<Integer> files) {
        for (int file : files) {
            DataFolder folder = folders.get(geometry.folderOfFile(file));
            try (StorageFile opened = folder.open(LogGeometry.fileName(file), true)) {
                opened.flush();
            }
        }
    }

    /** Rows of the catalog that are to be changed when the store opens: nothing that has to be checked first. */
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
            } else if (!isUnsure(segment) && !settledRow(segment).equals(row)) {
                changed.add(settledRow(segment));
                known[segment] = settledRow(segment);
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

    /** The accounting once everything is indexed; what was given up before it was read counts as free. */
    Accounting accounting(Indexing indexing) {
        long overhead = 0;
        int used = 0;
        for (int segment = 0; segment < uses.length; segment++) {
            if (uses[segment] != 0 && !givenUp.get(segment)) {
                used++;
                overhead += geometry.segmentPages() - payloadPages[segment];
            }
        }
        int free = uses.length - used - absent.cardinality();
        return new Accounting(
                indexing.indexedPages(),
                indexing.deadPages(),
                overhead,
                (long) free * geometry.segmentPages(),
                (long) (uses.length - absent.cardinality()) * geometry.segmentPages(),
                indexing.indexedBlocks(),
                indexing.deadBlocks(),
                used,
                free);
    }

    /** Segments in use. */
    int segmentsUsed() {
        int used = 0;
        for (long use : uses) {
            used += use != 0 ? 1 : 0;
        }
        return used;
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
