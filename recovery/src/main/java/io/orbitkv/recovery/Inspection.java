package io.orbitkv.recovery;

import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.Family;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.tiers.Verdict;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Looks into a store: as a whole, at a segment, at a batch, at a block. Changes nothing, and reads beside a process that
 * holds the folders if it must; {@link #owner()} says so.
 */
public final class Inspection {
    private static final int SHOWN_MAX = 20;

    private final StoreView view;
    private final OpeningOptions options;

    private Inspection(StoreView view, OpeningOptions options) {
        this.view = view;
        this.options = options;
    }

    /**
     * Looks at the folders of a store.
     *
     * @param folders not locked yet, in any order; stay the caller's, and are locked as long as they stay open, unless another
     *     process has them
     * @param options read threads, wait for the lock, progress; sizes don't matter
     * @return what to look with
     * @throws OrbitKvException {@link ErrorCode#FOLDER_UNUSABLE} where there is no store; {@link ErrorCode#CATALOG}; others as an
     *     opening would
     */
    public static Inspection of(DataFolders folders, OpeningOptions options) {
        return new Inspection(StoreView.of(folders, options).requireCatalog(), options);
    }

    /** Who holds the folders, for people; empty where they are locked for this inspection. */
    public String owner() {
        return view.owner();
    }

    /** When the catalog was read, in milliseconds since 1970. */
    public long atMillis() {
        return view.atMillis();
    }

    /** The life of the store that the catalog is of. */
    public long epoch() {
        return view.catalog().counter(CatalogCounter.EPOCH);
    }

    /**
     * Looks at the store as a whole.
     *
     * @param checkUnsure whether blocks that a power loss may have taken are read and checked, as an opening would
     */
    public StoreInfo store(boolean checkUnsure) {
        try (LogView log = new LogView(view, options)) {
            log.fill(checkUnsure);
            Map<CatalogCounter, Long> counters = new EnumMap<>(CatalogCounter.class);
            for (CatalogCounter counter : CatalogCounter.values()) {
                counters.put(counter, view.catalog().counter(counter));
            }
            Map<String, Long> named = new LinkedHashMap<>();
            counters.forEach((counter, value) -> named.put(counter.name().toLowerCase(Locale.ROOT), value));
            return new StoreInfo(
                    view.catalog().identity(),
                    folders(),
                    epoch(),
                    view.catalog().transaction(),
                    view.owner(),
                    view.atMillis(),
                    log.lastEnd(),
                    log.isFromSnapshot(),
                    log.namespaces(),
                    states(),
                    named,
                    view.catalog().quarantine().size(),
                    first(view.catalog().quarantine()),
                    log.accounting(),
                    view.isInUse() ? log.segmentsChanged() : 0,
                    log.headersNanos(),
                    log.indexNanos(),
                    log.report());
        }
    }

    private List<StoreInfo.FolderInfo> folders() {
        List<StoreInfo.FolderInfo> all = new ArrayList<>();
        for (int number = 0; number < view.folders().count(); number++) {
            DataFolder folder = view.folders().get(number);
            LockPage page = view.lockPages().get(number);
            List<String> foreign = FolderNames.foreign(folder);
            all.add(new StoreInfo.FolderInfo(
                    folder.path(),
                    folder.allocatedBytes(""),
                    folder.freeBytes(),
                    first(foreign),
                    foreign.stream().mapToLong(folder::allocatedBytes).sum(),
                    view.lost().get(number),
                    page == null ? -1 : page.epoch(),
                    page == null ? -1 : page.pid()));
        }
        return all;
    }

    private Map<String, Integer> states() {
        Map<String, Integer> states = new LinkedHashMap<>();
        for (SegmentRow.State state : SegmentRow.State.values()) {
            states.put(state.name().toLowerCase(Locale.ROOT), 0);
        }
        view.catalog()
                .segments()
                .forEach(row -> states.merge(row.state().name().toLowerCase(Locale.ROOT), 1, Integer::sum));
        int rows = view.catalog().segments().size();
        states.merge("free", view.geometry().segments() - rows, Integer::sum);
        return states;
    }

    private static <T> List<T> first(List<T> list) {
        return List.copyOf(list.subList(0, Math.min(SHOWN_MAX, list.size())));
    }

    /**
     * Looks at a segment.
     *
     * @throws OrbitKvException {@link ErrorCode#BAD_ARGUMENT} for a number that the store doesn't have
     */
    public SegmentInfo segment(int segment) {
        requireSegment(segment);
        if (view.absent().get(segment)) {
            return absent(segment);
        }
        try (SegmentReader reader = new SegmentReader(view.folders(), view.geometry())) {
            Verdict header = reader.readHeader(segment);
            long use = reader.useSequence();
            boolean fromHeader = use != 0;
            boolean zero = header == Verdict.ABSENT && reader.isZeroHeader();
            boolean ours = header == Verdict.TORN || header == Verdict.MALFORMED || header == Verdict.ABSENT;
            if (use == 0 && ours) {
                use = reader.useBehindHeader(segment);
            }
            Verdict footer = use == 0 ? Verdict.ABSENT : reader.readFooter(segment, use);
            int footerBlocks = footer == Verdict.VALID ? reader.count() : 0;
            List<SegmentInfo.BatchInfo> batches = new ArrayList<>();
            if (use != 0) {
                reader.readBatches(
                        segment,
                        use,
                        (page, sequence, count, pages) ->
                                batches.add(new SegmentInfo.BatchInfo(page, sequence, count, pages)));
            }
            Verdict end = use == 0 ? Verdict.ABSENT : reader.endVerdict();
            int endPage = reader.endPage();
            if (use != 0) {
                reader.read(segment, use);
            } else {
                reader.begin(segment, 0);
            }
            SegmentRow row = row(segment);
            String why = why(header, zero, use, footer, reader);
            return new SegmentInfo(
                    segment,
                    view.file(segment),
                    view.geometry().fileOffset(segment),
                    header,
                    use,
                    fromHeader,
                    footer,
                    footerBlocks,
                    batches,
                    end,
                    endPage,
                    row,
                    reader.count(),
                    why,
                    places(reader));
        }
    }

    /** Whatever stands in its place, nothing of it counts; its file may even end before it. */
    private SegmentInfo absent(int segment) {
        return new SegmentInfo(
                segment,
                view.file(segment),
                view.geometry().fileOffset(segment),
                Verdict.ABSENT,
                0,
                false,
                Verdict.ABSENT,
                0,
                List.of(),
                Verdict.ABSENT,
                0,
                row(segment),
                0,
                "absent: it has no pages, since the cap has no room for it",
                List.of());
    }

    private SegmentRow row(int segment) {
        return view.catalog().segments().stream()
                .filter(one -> one.segment() == segment)
                .findFirst()
                .orElse(null);
    }

    private static String why(Verdict header, boolean zero, long use, Verdict footer, SegmentReader reader) {
        if (use == 0) {
            return zero
                    ? "free: it was never used"
                    : "free: its header does not count (" + header
                            + "), and neither a first batch nor a footer behind it";
        }
        String whose = header == Verdict.VALID
                ? "use " + use + " by its header"
                : "use " + use + " by what stands behind its damaged header (" + header + "): every block is checked";
        if (reader.count() == 0) {
            return whose + "; nothing of this use is there yet: it counts as free";
        }
        return whose + "; "
                + (footer == Verdict.VALID
                        ? "its footer counts, so batch headers are not read"
                        : "no footer counts (" + footer + "), so batches are walked up to the first that doesn't");
    }

    private List<BlockPlace> places(SegmentReader reader) {
        Set<BlockSearch.Key> keys = new HashSet<>();
        for (int i = 0; i < reader.count(); i++) {
            keys.add(BlockSearch.Key.of(reader.listing(i)));
        }
        if (keys.isEmpty()) {
            return List.of();
        }
        List<BlockPlace> mine = new ArrayList<>();
        new BlockSearch(view, options)
                .find(keys)
                .values()
                .forEach(all -> all.stream()
                        .filter(place -> place.segment() == reader.segment())
                        .forEach(mine::add));
        mine.sort(java.util.Comparator.comparingInt(BlockPlace::page));
        return mine;
    }

    private void requireSegment(int segment) {
        int segments = view.geometry().segments();
        if (segment < 0
                || segment >= segments
                || view.lost().get(view.geometry().folderOfSegment(segment))) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "the log has segments 0 to " + (segments - 1)
                            + (view.lost().isEmpty() ? "" : " less those of lost folders") + ", asked for " + segment);
        }
    }

    /**
     * Looks at the block that a segment lists at a page, and reads its bytes.
     *
     * @return the block, or null where none is listed there
     */
    public BlockInfo block(int segment, int page) {
        for (BlockPlace place : segment(segment).places()) {
            if (place.page() == page) {
                return read(place);
            }
        }
        return null;
    }

    /**
     * Looks at all places that list a key, and reads the bytes of each.
     *
     * @param key 32 bytes
     * @return the places, newest first
     */
    public List<BlockInfo> blocks(byte[] key) {
        BlockSearch.Key wanted = BlockSearch.Key.of(new UnsafeBuffer(key), 0);
        return new BlockSearch(view, options)
                .find(Set.of(wanted)).getOrDefault(wanted, List.of()).stream()
                        .map(this::read)
                        .toList();
    }

    /** The families that the catalog knows, each once. */
    public List<Family> families() {
        Set<Family> families = new LinkedHashSet<>();
        view.catalog().namespaces().forEach(row -> {
            Family family = NamespaceInfo.family(row);
            if (family != null) {
                families.add(family);
            }
        });
        return List.copyOf(families);
    }

    /**
     * Says block by block why a prefix hits or misses.
     *
     * @param family whose prefix
     * @param keys keys of its blocks, 32 bytes each, back to back
     * @param count how many
     * @return an answer for each
     */
    public List<BlockAnswer> explain(Family family, DirectBuffer keys, int count) {
        return new Explanation(view, family).answers(keys, count, options);
    }

    /**
     * Writes the blocks of a family that a query would find, each with its bytes proven, as docs/format.md draws it.
     *
     * @param family one of {@link #families()}
     * @param out takes the bytes; stays the caller's
     * @return what was written
     */
    public ExportResult export(Family family, OutputStream out) throws IOException {
        return new FamilyExport(view, options).write(family, epoch(), out);
    }

    private BlockInfo read(BlockPlace place) {
        byte[] key = java.util.HexFormat.of().parseHex(place.key());
        BlockSearch.Key wanted = BlockSearch.Key.of(new UnsafeBuffer(key), 0);
        List<BlockPlace> others = new BlockSearch(view, options)
                .find(Set.of(wanted)).getOrDefault(wanted, List.of()).stream()
                        .filter(other -> other.segment() != place.segment() || other.page() != place.page())
                        .toList();
        try (SegmentReader reader = new SegmentReader(view.folders(), view.geometry())) {
            byte[] bytes = new byte[Math.min(place.storedBytes(), 64)];
            int computed = reader.checksumOf(place.segment(), place.page(), place.storedBytes(), key, bytes);
            return new BlockInfo(place, computed, bytes, others);
        }
    }
}
