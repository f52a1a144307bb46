package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.CatalogCopies;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.NamespaceRow;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.nativeio.StorageFiles;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.Verdict;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Makes a catalog again that is damaged or lost, from the log and what knows the rest: the catalogs of the store's other
 * folders, or the spare copy beside it. Neither counts unless it is of the folder's last life: an older one would bring back
 * what was cleared since. The bytes of every block are checked, so that what was in quarantine for its bytes stays there.
 */
public final class CatalogRebuild {
    private final DataFolders given;
    private final OpeningOptions options;
    private final List<String> damage = new ArrayList<>();
    private final Map<DeadReason, Long> dead = new HashMap<>();
    private final List<QuarantineRow> wrong = new ArrayList<>();
    private final CatalogContents[] read;
    private final int[] numbers;
    private String source = "";
    private CatalogContents known;
    private LogGeometry geometry;
    private long blocks;
    private long listed;

    private CatalogRebuild(DataFolders given, OpeningOptions options) {
        this.given = given;
        this.options = options;
        this.read = new CatalogContents[given.count()];
        this.numbers = new int[given.count()];
    }

    /**
     * What a rebuilding has found, and done.
     *
     * @param damage what is wrong with which catalog; empty where none is
     * @param source what tells namespaces, epochs and counters
     * @param namespaces those that the new catalog has
     * @param listedBlocks blocks that the log lists in the folders concerned
     * @param blocks of them those that count, before later listings of the same key
     * @param deadBlocks of them the others, by reason
     * @param kept where the old catalogs are now; empty before it is done
     */
    public record Report(
            List<String> damage,
            String source,
            List<NamespaceInfo> namespaces,
            long listedBlocks,
            long blocks,
            Map<DeadReason, Long> deadBlocks,
            List<String> kept) {}

    /**
     * Looks what can be rebuilt, and does it where that is wanted.
     *
     * @param folders all folders of the store, not locked yet; stay the caller's
     * @param options read threads, wait for the lock, progress
     * @param apply whether to do it; otherwise nothing is changed
     * @return what was found; with empty {@code damage} nothing is to be done
     * @throws OrbitKvException {@link ErrorCode#FOLDER_IN_USE}; {@link ErrorCode#CATALOG} where it can't be proven what was
     *     cleared; {@link ErrorCode#SEGMENT_FILE}, {@link ErrorCode#OTHER_STORE}. Nothing was changed then
     */
    public static Report run(DataFolders folders, OpeningOptions options, boolean apply) {
        CatalogRebuild rebuild = new CatalogRebuild(folders, options);
        for (DataFolder folder : folders.list()) {
            if (!folder.exists(FolderNames.CATALOG) && !folder.exists(LogGeometry.FOLDER)) {
                throw new OrbitKvException(
                        ErrorCode.FOLDER_UNUSABLE, "there is no store in " + folder.path() + "; name another folder");
            }
            folder.lock(FolderNames.LOCK, options.lockWaitNanos());
        }
        rebuild.readCatalogs();
        if (rebuild.damage.isEmpty()) {
            return rebuild.report(List.of());
        }
        rebuild.known = rebuild.findSource();
        rebuild.geometry = Opening.geometry(rebuild.known.identity());
        rebuild.numberFolders();
        rebuild.readLog();
        return rebuild.report(apply ? rebuild.write() : List.of());
    }

    private void readCatalogs() {
        for (int i = 0; i < read.length; i++) {
            try {
                read[i] = Catalog.read(FolderNames.catalogPath(given.get(i)));
            } catch (OrbitKvException e) {
                if (e.code() != ErrorCode.CATALOG) {
                    throw e;
                }
                damage.add(e.getMessage());
            }
        }
    }

    /** What knows identity, namespaces and counters of the last life of every folder. */
    private CatalogContents findSource() {
        CatalogContents found = null;
        if (Arrays.stream(read).anyMatch(one -> one != null)) {
            CatalogCopies copies = new CatalogCopies(Arrays.asList(read));
            found = copies.together();
            source = "the catalogs of the other folders";
        }
        for (int i = 0; i < read.length; i++) {
            if (read[i] != null) {
                continue;
            }
            LockPage page = LockPage.read(given.get(i));
            if (page == null) {
                throw refused(given.get(i), "its lock page is damaged, so its last life is not known");
            }
            if (found == null || source.startsWith("the spare")) {
                CatalogContents spare = readSpare(given.get(i));
                requireFresh(given.get(i), page, spare.counter(CatalogCounter.EPOCH), "spare copy");
                requireStore(given.get(i), page, spare);
                found = found == null ? spare : newer(found, spare);
                source = "the spare copy beside the catalog";
            } else {
                requireStore(given.get(i), page, found);
                if (page.epoch() != found.counter(CatalogCounter.EPOCH)) {
                    throw refused(
                            given.get(i),
                            "it was in use last in epoch " + page.epoch() + ", and the other folders are at "
                                    + found.counter(CatalogCounter.EPOCH));
                }
            }
        }
        return found;
    }

    private CatalogContents readSpare(DataFolder folder) {
        try {
            return Catalog.readSpare(FolderNames.catalogPath(folder));
        } catch (OrbitKvException e) {
            if (e.code() != ErrorCode.CATALOG) {
                throw e;
            }
            throw refused(folder, "there is no spare copy of it that counts");
        }
    }

    private static void requireFresh(DataFolder folder, LockPage page, long epoch, String what) {
        if (epoch < page.epoch()) {
            throw refused(
                    folder,
                    "the " + what + " is of epoch " + epoch + ", and the folder was in use in epoch " + page.epoch()
                            + " by a program that does not write one");
        }
    }

    private static void requireStore(DataFolder folder, LockPage page, CatalogContents contents) {
        if (!Arrays.equals(page.storeId(), Opening.geometry(contents.identity()).storeId())) {
            throw new OrbitKvException(
                    ErrorCode.OTHER_STORE,
                    "the lock page of " + folder.path() + " is of another store than "
                            + contents.identity().storeId() + "; give the folders of one store. Nothing was changed");
        }
    }

    /** A clear that reached one of several spare copies holds: the higher epoch of each namespace. */
    private static CatalogContents newer(CatalogContents one, CatalogContents other) {
        CatalogContents base =
                one.counter(CatalogCounter.COMMITS) >= other.counter(CatalogCounter.COMMITS) ? one : other;
        Map<Long, NamespaceRow> rows = new HashMap<>();
        for (CatalogContents each : List.of(one, other)) {
            each.namespaces()
                    .forEach(row -> rows.merge(
                            row.id64(), row, (a, b) -> Integer.compareUnsigned(a.epoch(), b.epoch()) >= 0 ? a : b));
        }
        return with(base, new ArrayList<>(rows.values()), List.of());
    }

    private static CatalogContents with(
            CatalogContents base, List<NamespaceRow> namespaces, List<QuarantineRow> quarantine) {
        return new CatalogContents(
                base.identity(),
                base.transaction(),
                base.mapBytes(),
                base.counters(),
                namespaces,
                List.of(),
                quarantine);
    }

    private static OrbitKvException refused(DataFolder folder, String why) {
        return new OrbitKvException(
                ErrorCode.CATALOG,
                "the catalog of " + folder.path() + " can't be rebuilt: " + why
                        + ", and without that what was cleared could come back. Put " + FolderNames.catalogPath(folder)
                        + " back from a copy, or empty the folder and start anew. Nothing was changed");
    }

    /** A folder's number stands in its catalog, else in the names of its segment files. */
    private void numberFolders() {
        BitSet taken = new BitSet();
        int folders = known.identity().folders();
        if (folders != given.count()) {
            throw new OrbitKvException(
                    ErrorCode.OTHER_GEOMETRY,
                    "the store in " + given.path() + " has " + folders + " folders, and " + given.count()
                            + " are given; give all of them. Nothing was changed");
        }
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = read[i] != null ? read[i].identity().folder() : numberByFiles(given.get(i), folders);
            if (taken.get(numbers[i])) {
                throw new OrbitKvException(
                        ErrorCode.FOLDER_SET,
                        given.get(i).path() + " is folder " + numbers[i]
                                + " of its store, as another one that is given; give each once. Nothing was changed");
            }
            taken.set(numbers[i]);
        }
        for (int i = 0; i < numbers.length; i++) {
            for (int file = numbers[i]; read[i] == null && file < geometry.files(); file += folders) {
                requireFile(given.get(i), file);
            }
        }
    }

    private static int numberByFiles(DataFolder folder, int folders) {
        int number = -1;
        for (String name : folder.list(LogGeometry.FOLDER)) {
            int file = LogGeometry.fileNumber(name);
            if (file >= 0) {
                int mine = file % folders;
                if (number >= 0 && mine != number) {
                    throw refused(folder, "its segment files are those of several folders");
                }
                number = mine;
            }
        }
        if (number < 0) {
            throw new OrbitKvException(
                    ErrorCode.SEGMENT_FILE,
                    "there is no segment file in " + folder.path()
                            + ", so nothing to make a catalog from; empty the folder");
        }
        return number;
    }

    private void requireFile(DataFolder folder, int file) {
        String name = LogGeometry.fileName(file);
        String odd = "is missing";
        if (folder.exists(name)) {
            try (StorageFile opened = folder.open(name, false)) {
                odd = opened.bytes() == geometry.fileBytes(file)
                        ? ""
                        : "has " + opened.bytes() + " bytes and should have " + geometry.fileBytes(file);
            }
        }
        if (!odd.isEmpty()) {
            throw new OrbitKvException(
                    ErrorCode.SEGMENT_FILE,
                    "the segment file " + folder.path() + "/" + name + " " + odd
                            + "; put the whole file back. Nothing was changed");
        }
    }

    private DataFolders inOrder() {
        int[] order = new int[numbers.length];
        for (int i = 0; i < numbers.length; i++) {
            order[numbers[i]] = i;
        }
        return given.inOrder(order);
    }

    /** Checks the bytes of every block in the folders concerned. */
    private void readLog() {
        BitSet good = new BitSet();
        for (int i = 0; i < numbers.length; i++) {
            good.set(numbers[i], read[i] != null);
        }
        Map<Long, Integer> epochs = new HashMap<>();
        known.namespaces().forEach(row -> epochs.put(row.id64(), row.epoch()));
        try (ReaderPool readers = new ReaderPool(inOrder(), geometry, options.readThreads())) {
            int[] segments = FolderSet.segmentsPresent(geometry, good, new BitSet());
            int[] done = new int[1];
            readers.each(segments, this::readSegment, reader -> {
                take(reader, epochs);
                done[0]++;
                options.progress().onProgress("checking segments", done[0], segments.length);
            });
        }
    }

    private void readSegment(SegmentReader reader, int segment) {
        Verdict header = reader.readHeader(segment);
        if (header == Verdict.OTHER_STORE || header == Verdict.OTHER_SEGMENT || header == Verdict.OTHER_VERSION) {
            throw new OrbitKvException(
                    header == Verdict.OTHER_VERSION ? ErrorCode.OTHER_VERSION : ErrorCode.OTHER_STORE,
                    "segment " + segment + " is not of this store (" + reader.headerText()
                            + "); put the store's own file back. Nothing was changed");
        }
        long use = header == Verdict.VALID ? reader.useSequence() : reader.useBehindHeader(segment);
        if (use == 0) {
            reader.begin(segment, 0);
            return;
        }
        reader.read(segment, use);
        reader.checkPayloads();
    }

    private void take(SegmentReader reader, Map<Long, Integer> epochs) {
        for (int i = 0; i < reader.count(); i++) {
            BlockListing block = reader.listing(i);
            listed++;
            Integer epoch = epochs.get(block.namespaceId64());
            int age = epoch == null ? 1 : Integer.compareUnsigned(block.namespaceEpoch(), epoch);
            if (reader.isWrong(i)) {
                count(DeadReason.WRONG_BYTES);
                wrong.add(new QuarantineRow(
                        reader.segment(),
                        reader.useSequence(),
                        block.firstPage(),
                        block.region().getLong(block.offset()),
                        System.currentTimeMillis()));
            } else if (age != 0) {
                count(age < 0 ? DeadReason.CLEARED : DeadReason.UNKNOWN_NAMESPACE);
            } else {
                blocks++;
            }
        }
    }

    private void count(DeadReason reason) {
        dead.merge(reason, 1L, Long::sum);
    }

    /** Makes each catalog beside the old one and puts it in its place. A death in between leaves the old or the new one. */
    private List<String> write() {
        List<String> kept = new ArrayList<>();
        long catalogBytes = Budget.catalogBytes(known);
        for (int i = 0; i < read.length; i++) {
            if (read[i] == null) {
                kept.add(write(given.get(i), numbers[i], catalogBytes));
            }
        }
        return kept;
    }

    private String write(DataFolder folder, int number, long catalogBytes) {
        String catalog = FolderNames.catalogPath(folder);
        StorageFiles.makeFolder(catalog);
        String made = catalog + "/rebuilt";
        StorageFiles.makeFolder(made);
        StorageFiles.unlink(made + "/data.mdb"); // of a rebuilding that died
        List<QuarantineRow> mine = wrong.stream()
                .filter(row -> geometry.folderOfSegment(row.segment()) == number)
                .toList();
        CatalogContents contents = with(known, known.namespaces(), mine);
        Catalog.remake(
                made,
                new CatalogContents(
                        known.identity().inFolder(number),
                        contents.transaction(),
                        catalogBytes,
                        contents.counters(),
                        contents.namespaces(),
                        contents.segments(),
                        contents.quarantine()),
                catalogBytes);
        boolean isThere = StorageFiles.exists(catalog + "/data.mdb");
        String kept = catalog + "/data.mdb.old-" + System.currentTimeMillis();
        StorageFiles.supersede(made + "/data.mdb", catalog + "/data.mdb", kept);
        StorageFiles.unlink(made);
        return isThere ? kept : catalog + "/data.mdb was missing";
    }

    private Report report(List<String> kept) {
        List<NamespaceInfo> namespaces = known == null
                ? List.of()
                : known.namespaces().stream()
                        .map(row -> NamespaceInfo.of(row, new long[3]))
                        .toList();
        return new Report(damage, source, namespaces, listed, blocks, dead, kept);
    }
}
