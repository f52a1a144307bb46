package io.orbitkv.recovery;

import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.Footer;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.Verdict;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/**
 * Reads everything in a data folder and says what is wrong with it: catalog, segment headers, batches, footers, every
 * block's bytes, snapshot, accounting. Changes nothing, and reads beside a process that holds the folder if it must.
 */
public final class Verify {
    private static final int PROBLEMS_MAX = 1000;

    private final DataFolders given;
    private final OpeningOptions options;
    private final List<Problem> problems = new ArrayList<>();
    private final Map<Integer, SegmentRow> rows = new HashMap<>();
    private final Set<List<Long>> quarantine = new HashSet<>();
    private long problemsFound;
    private StoreView view;
    private Repairs repairs;
    private long repaired;
    private DataFolders folders;
    private BitSet lost = new BitSet();
    private BitSet absent = new BitSet();
    private LogGeometry geometry;
    private boolean sameBoot = true;
    private String note = "";
    private int used;
    private int free;
    private long footers;
    private long batches;
    private long blocks;
    private long bytesChecked;
    private long wrongBlocks;
    private long quarantinedBlocks;
    private long unsureBlocks;
    private long payloadPages;
    private long overheadPages;
    private long freePages;
    private boolean snapshot;

    private Verify(DataFolders given, OpeningOptions options) {
        this.given = given;
        this.folders = given;
        this.options = options;
    }

    /**
     * Verifies the folder of a store that has one; see {@link #run(DataFolders, OpeningOptions)}.
     *
     * @param folder not locked yet; stays the caller's
     * @param options read threads, wait for the lock, progress; sizes don't matter
     * @return what was found
     */
    public static VerifyReport run(DataFolder folder, OpeningOptions options) {
        return run(DataFolders.of(folder), options);
    }

    /**
     * Verifies the folders of a store. They are locked as long as they stay open; where another process holds one, it is read
     * beside that one, and the report's note says so.
     *
     * @param folders not locked yet, in any order; stay the caller's
     * @param options read threads, wait for the lock, progress; sizes don't matter
     * @return what was found
     * @throws OrbitKvException {@link ErrorCode#FOLDER_UNUSABLE} when there is no store; {@link ErrorCode#DRIVE};
     *     {@link ErrorCode#OTHER_STORE}, {@link ErrorCode#OTHER_GEOMETRY}, {@link ErrorCode#FOLDER_SET} where the folders don't
     *     belong together
     */
    public static VerifyReport run(DataFolders folders, OpeningOptions options) {
        return new Verify(folders, options).run(false, steps -> {});
    }

    /**
     * Verifies the folders of a store and puts right what can be: wrong blocks go into quarantine, pages that others imply
     * are written again. Nothing is deleted or shortened.
     *
     * @param folders not locked yet, in any order; stay the caller's
     * @param options read threads, wait for the lock, progress; sizes don't matter
     * @param plan is told what will be done, the first hundred steps, before anything is
     * @return what was found, and how much of it was done
     * @throws OrbitKvException as {@link #run}; {@link ErrorCode#FOLDER_IN_USE} where another process has a folder
     */
    public static VerifyReport repair(DataFolders folders, OpeningOptions options, Consumer<List<String>> plan) {
        return new Verify(folders, options).run(true, plan);
    }

    private VerifyReport run(boolean repair, Consumer<List<String>> plan) {
        view = StoreView.of(given, options);
        if (repair) {
            view.requireLocked("a repair");
        }
        if (view.isInUse()) {
            note("the folder is in use: what is being written during the reading may look wrong (" + view.owner()
                    + ")");
        }
        view.unreadable()
                .forEach((folder, reason) -> problem(
                        ErrorCode.CATALOG, view.shown(folder, FolderNames.CATALOG), -1, -1, reason.getMessage()));
        CatalogContents catalog = view.catalog();
        if (catalog != null) {
            folders = view.folders();
            lost = view.lost();
            absent = view.absent();
            geometry = view.geometry();
            noteLost();
            catalog.segments().forEach(row -> rows.put(row.segment(), row));
            for (QuarantineRow row : catalog.quarantine()) {
                quarantine.add(List.of((long) row.segment(), row.useSequence(), (long) row.page()));
            }
            repairs = new Repairs(view);
            if (filesAreWhole()) {
                readSegments();
                checkAccounting();
            }
            readSnapshot(catalog);
            if (repair && repairs.planned() > 0) {
                plan.accept(repairs.shown());
                repaired = repairs.apply();
            }
        }
        return report();
    }

    private void noteLost() {
        sameBoot = view.isOfThisBoot();
        lost.stream().forEach(number -> {
            if (view.isUnused()) {
                note(folders.get(number).path()
                        + " was not made to its end, and the store was never used: the next opening makes it anew");
            } else {
                String text = "it holds nothing of the store, of which it is folder " + number
                        + ": its blocks are lost," + " and the next opening makes it anew";
                problem(ErrorCode.FOLDER_SET, folders.get(number).path(), -1, -1, text);
            }
        });
    }

    private boolean filesAreWhole() {
        boolean whole = true;
        for (int number = 0; number < geometry.files(); number++) {
            if (lost.get(geometry.folderOfFile(number))) {
                continue;
            }
            DataFolder folder = folders.get(geometry.folderOfFile(number));
            String name = LogGeometry.fileName(number);
            long needed = CapPlan.bytesNeeded(geometry, number, absent);
            if (needed == 0 && !folder.exists(name)) {
                continue; // a larger cap has places for it, and the next opening makes it
            }
            if (!folder.exists(name)) {
                problem(ErrorCode.SEGMENT_FILE, view.shown(folder, name), -1, -1, "it is missing");
                whole = false;
                continue;
            }
            try (StorageFile file = folder.open(name, false)) {
                if (file.bytes() < needed || file.bytes() > geometry.fileBytes(number)) {
                    String text = "it has " + file.bytes() + " bytes and should have " + geometry.fileBytes(number);
                    problem(ErrorCode.SEGMENT_FILE, view.shown(folder, name), -1, -1, text);
                    whole = false;
                }
            }
        }
        return whole;
    }

    private void readSegments() {
        try (ReaderPool readers = new ReaderPool(folders, geometry, options.readThreads())) {
            Found[] found = new Found[geometry.segments()];
            int[] present = FolderSet.segmentsPresent(geometry, lost, absent);
            int ofLost = found.length - present.length - absent.cardinality();
            free += ofLost;
            freePages += (long) ofLost * geometry.segmentPages();
            int[] done = new int[1];
            readers.each(present, (reader, segment) -> found[segment] = read(reader, segment), reader -> {
                take(reader, found[reader.segment()]);
                found[reader.segment()] = null;
                done[0]++;
                options.progress().onProgress("verifying segments", done[0], present.length);
            });
        }
    }

    /** What a reading thread found in a segment; the reader holds its listings. */
    private record Found(
            int segment,
            Verdict header,
            boolean headerIsZero,
            long use,
            Verdict footer,
            boolean footerAgrees,
            int footerBlocks,
            Verdict end,
            int endPage) {}

    private Found read(SegmentReader reader, int segment) {
        Verdict header = reader.readHeader(segment);
        boolean zero = header == Verdict.ABSENT && reader.isZeroHeader();
        long use = reader.useSequence();
        boolean ours = header == Verdict.VALID
                || header == Verdict.ABSENT
                || header == Verdict.TORN
                || header == Verdict.MALFORMED;
        if (use == 0 && ours && !(zero && isFreeInCatalog(segment))) {
            use = reader.useBehindHeader(segment);
        }
        if (use == 0) {
            reader.begin(segment, 0);
            return new Found(segment, header, zero, 0, Verdict.ABSENT, true, 0, Verdict.ABSENT, 0);
        }
        Verdict footer = reader.readFooter(segment, use);
        int footerBlocks = reader.count();
        List<byte[]> fromFooter = new ArrayList<>();
        for (int i = 0; footer == Verdict.VALID && i < footerBlocks; i++) {
            fromFooter.add(reader.listingBytes(i));
        }
        reader.readBatches(segment, use);
        int endPage = reader.endPage();
        Verdict end = reader.endVerdict();
        boolean agrees = footer != Verdict.VALID || reader.count() == footerBlocks;
        for (int i = 0; agrees && footer == Verdict.VALID && i < footerBlocks; i++) {
            agrees = Arrays.equals(fromFooter.get(i), reader.listingBytes(i));
        }
        if (footer == Verdict.VALID && !agrees) {
            reader.readFooter(segment, use); // the footer is what an opening believes
        }
        reader.checkPayloads();
        return new Found(segment, header, zero, use, footer, agrees, footerBlocks, end, endPage);
    }

    private boolean isFreeInCatalog(int segment) {
        SegmentRow row = rows.get(segment);
        return row == null || row.state() == SegmentRow.State.FREE;
    }

    private void take(SegmentReader reader, Found found) {
        int segment = found.segment();
        checkHeader(found);
        if (found.use() == 0 || reader.count() == 0) {
            free++;
            freePages += geometry.segmentPages();
            return;
        }
        used++;
        SegmentRow row = rows.get(segment);
        boolean ofThisUse = row != null && row.useSequence() == found.use();
        // What a power loss took before it was durable is no damage: the next opening puts it right.
        boolean sure = sameBoot || (ofThisUse && row.state() == SegmentRow.State.DURABLE);
        boolean sealed = ofThisUse && row.state() != SegmentRow.State.OPEN && row.state() != SegmentRow.State.FREE;
        if (sure) {
            checkFooter(found, sealed, reader);
        }
        footers += found.footer() == Verdict.VALID ? 1 : 0;
        batches += reader.batches();
        blocks += reader.count();
        payloadPages += reader.payloadPages();
        overheadPages += geometry.segmentPages() - reader.payloadPages();
        for (int i = 0; i < reader.count(); i++) {
            checkBlock(reader, i, sure);
        }
    }

    private void checkHeader(Found found) {
        boolean noHeader = found.header() == Verdict.ABSENT
                || found.header() == Verdict.TORN
                || found.header() == Verdict.MALFORMED;
        // A machine may have died while the header of a first use was written, and one that lost power in any: the next
        // opening looks behind it, and loses nothing that was promised.
        boolean unsure = noHeader && (isFreeInCatalog(found.segment()) || !sameBoot);
        if (found.header() == Verdict.VALID || unsure) {
            if (unsure && !found.headerIsZero()) {
                note("the header of segment " + found.segment()
                        + " is damaged, as a death while it was written leaves it");
            }
            return;
        }
        ErrorCode code = found.header() == Verdict.OTHER_STORE
                ? ErrorCode.OTHER_STORE
                : found.header() == Verdict.OTHER_VERSION ? ErrorCode.OTHER_VERSION : ErrorCode.SEGMENT_HEADER;
        problem(
                code,
                view.file(found.segment()),
                found.segment(),
                0,
                "the header does not check out: " + found.header());
        if (noHeader && found.use() != 0) {
            repairs.header(found.segment(), found.use());
        }
    }

    private void checkFooter(Found found, boolean sealed, SegmentReader reader) {
        int segment = found.segment();
        if (found.footer() == Verdict.VALID) {
            if (!found.footerAgrees()) {
                String text = "the batch header here (" + found.end() + ") ends the walk, and the footer lists "
                        + found.footerBlocks() + " blocks";
                problem(ErrorCode.BATCH_HEADER, view.file(segment), segment, found.endPage(), text);
                repairs.batchHeaders(segment, found.use(), found.endPage());
            }
            return;
        }
        boolean roomForOne = found.endPage() + Footer.pagesFor(reader.count()) <= geometry.segmentPages();
        if (sealed && roomForOne) {
            int page = geometry.segmentPages() - 1;
            problem(
                    ErrorCode.FOOTER,
                    view.file(segment),
                    segment,
                    page,
                    "the footer does not check out: " + found.footer());
            repairs.footer(segment, found.use());
        }
    }

    private void checkBlock(SegmentReader reader, int i, boolean sure) {
        BlockListing block = reader.listing(i);
        bytesChecked += block.storedBytes();
        if (!reader.isWrong(i)) {
            return;
        }
        int segment = reader.segment();
        if (quarantine.contains(List.of((long) segment, reader.useSequence(), (long) block.firstPage()))) {
            quarantinedBlocks++;
        } else if (sure) {
            wrongBlocks++;
            String text = String.format(
                    "block %016x of %d bytes does not match its checksum",
                    Long.reverseBytes(block.region().getLong(block.offset())), block.storedBytes());
            problem(ErrorCode.BLOCK_CHECKSUM, view.file(segment), segment, block.firstPage(), text);
            repairs.block(
                    segment,
                    reader.useSequence(),
                    block.firstPage(),
                    block.region().getLong(block.offset()));
        } else {
            unsureBlocks++;
        }
    }

    private void checkAccounting() {
        if (payloadPages + overheadPages + freePages != preallocatedPages()) {
            problem(ErrorCode.ACCOUNTING, LogGeometry.FOLDER, -1, -1, "the pages do not add up: " + report());
        }
    }

    private void readSnapshot(CatalogContents catalog) {
        Snapshot.Marker marker = null;
        for (DataFolder folder : folders.list()) {
            if (!folder.exists(FolderNames.MARKER)) {
                return; // of several folders one may lack it after a death: then it counts in none
            }
            Snapshot.Marker before = marker;
            marker = Snapshot.readMarkerPage(folder);
            if (marker == null || (before != null && !before.isSame(marker))) {
                problem(ErrorCode.SNAPSHOT, view.shown(folder, FolderNames.MARKER), -1, -1, "it does not check out");
                return;
            }
        }
        if (marker.transaction() != catalog.transaction()) {
            note("the snapshot is older than the catalog and will not be used");
            return;
        }
        String odd =
                Snapshot.readIndex(folders, geometry, marker, list -> (namespace, c, k, t, s, p, b, sum, d) -> true);
        snapshot = odd == null;
        if (odd != null) {
            problem(ErrorCode.SNAPSHOT, FolderNames.INDEX, -1, -1, odd);
        }
    }

    private void note(String text) {
        note += (note.isEmpty() ? "" : "; ") + text;
    }

    private void problem(ErrorCode code, String file, int segment, int page, String text) {
        problemsFound++;
        if (problems.size() < PROBLEMS_MAX) {
            long offset = segment < 0 || page < 0 ? -1 : geometry.fileOffset(segment, page);
            problems.add(new Problem(code, file, segment, page, offset, text));
        }
    }

    private long preallocatedPages() {
        return geometry == null ? 0 : (long) (geometry.segments() - absent.cardinality()) * geometry.segmentPages();
    }

    private VerifyReport report() {
        return new VerifyReport(
                used,
                free,
                footers,
                batches,
                blocks,
                blocks,
                bytesChecked,
                wrongBlocks,
                quarantinedBlocks,
                unsureBlocks,
                payloadPages,
                overheadPages,
                freePages,
                preallocatedPages(),
                snapshot,
                problemsFound,
                List.copyOf(problems),
                repairs == null ? 0 : repairs.planned(),
                repaired,
                note);
    }
}
