package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.CatalogIdentity;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.tiers.LogGeometry;
import java.nio.ByteBuffer;
import org.agrona.concurrent.NanoClock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Opens the data folders of a store, mostly one, whatever state the last life of the store left them in, or makes a new store
 * in empty ones.
 *
 * <p>Steps: lock; read catalog and lock page; look at every segment's header, and at what the catalog can't tell of the log.
 * Up to here nothing was changed but the pid in the lock page, so that an opening that refuses harms nothing. Then: remove
 * the snapshot's marker, seal what was left open, begin the new epoch in the catalog, and say in the lock page that this boot
 * of the machine has it. Where a store has several folders and some of them hold nothing, those are lost: they are made
 * anew before that, with their segments free. The index is filled afterwards, while the store serves: {@link IndexFill}.
 *
 * <p>Positions and use-sequences never repeat: the catalog holds an upper bound for each. A clean stop sets the exact
 * numbers, any other opening goes on behind the bound, and every opening raises the bounds by so much that no life can
 * reach them; so nothing has to be written while the store runs.
 */
public final class Opening {
    /** More positions than one life can give out (35 years of a million a second); 2^23 lives fit. */
    static final long POSITION_STRIDE = 1L << 40;

    /** More segments than one life can put to use; 2^31 lives fit. */
    static final long USE_SEQUENCE_STRIDE = 1L << 32;

    private static final Logger LOG = LoggerFactory.getLogger(Opening.class);

    private final DataFolders given;
    private final OpeningOptions options;
    private final IndexFactory factory;
    private final NanoClock clock;
    private final WindowProbe probe;
    private final Notes notes;
    private final long startNanos;

    private FolderSet set;
    private DataFolders folders;
    private Creation creation;
    private Catalog catalog;
    private PrefixIndex index;
    private CapPlan plan;
    private LogScan scan;
    private long lockedNanos;
    private long catalogNanos;
    private long headersNanos;

    private Opening(
            DataFolders given, OpeningOptions options, IndexFactory factory, NanoClock clock, WindowProbe probe) {
        this.given = given;
        this.options = options;
        this.factory = factory;
        this.clock = clock;
        this.probe = probe;
        this.notes = new Notes(given.path());
        this.startNanos = clock.nanoTime();
    }

    /**
     * Opens the folder of a store that has one; see {@link #open(DataFolders, OpeningOptions, IndexFactory, NanoClock,
     * WindowProbe)}.
     *
     * @param folder not locked yet; stays the caller's, to close it in any case
     * @param options how
     * @param factory makes the index
     * @param clock for the time it took
     * @param probe is told of crash windows
     * @return the open folder; its catalog and index are the caller's
     */
    public static OpenedFolder open(
            DataFolder folder, OpeningOptions options, IndexFactory factory, NanoClock clock, WindowProbe probe) {
        return open(DataFolders.of(folder), options, factory, clock, probe);
    }

    /**
     * Opens the folders of a store.
     *
     * @param given not locked yet, in any order; stay the caller's, to close them in any case
     * @param options how
     * @param factory makes the index
     * @param clock for the time it took
     * @param probe is told of crash windows
     * @return the open folders; their catalog and index are the caller's
     * @throws OrbitKvException {@link ErrorCode#FOLDER_IN_USE}, {@link ErrorCode#FOREIGN_FILE},
     *     {@link ErrorCode#CAP_TOO_SMALL}, {@link ErrorCode#NO_SPACE}, {@link ErrorCode#CATALOG},
     *     {@link ErrorCode#OTHER_VERSION}, {@link ErrorCode#OTHER_STORE}, {@link ErrorCode#OTHER_GEOMETRY},
     *     {@link ErrorCode#SEGMENT_FILE}, {@link ErrorCode#SEGMENT_HEADER}, {@link ErrorCode#DRIVE},
     *     {@link ErrorCode#ACCOUNTING}, {@link ErrorCode#FOLDER_SET}: the folders were left as they were, and what was
     *     opened is closed
     */
    public static OpenedFolder open(
            DataFolders given, OpeningOptions options, IndexFactory factory, NanoClock clock, WindowProbe probe) {
        Opening opening = new Opening(given, options, factory, clock, probe);
        boolean good = false;
        try {
            OpenedFolder opened = opening.run();
            good = true;
            return opened;
        } finally {
            if (!good) {
                opening.closeAll();
            }
        }
    }

    private void closeAll() {
        if (scan != null) {
            scan.close();
        }
        if (index != null) {
            index.close();
        }
        if (catalog != null) {
            catalog.close();
        }
    }

    private OpenedFolder run() {
        Foreign foreign = new Foreign(given);
        boolean traceless = true;
        for (DataFolder folder : given.list()) {
            boolean untouched = !folder.exists(FolderNames.LOCK) && FolderSet.isEmpty(folder);
            traceless &= untouched;
            if (untouched) {
                // What can be refused without a trace is refused before the lock file is made.
                foreign.refuse(folder);
            }
        }
        if (traceless) {
            new Creation(given, options, probe).requireRoom();
        }
        for (DataFolder folder : given.list()) {
            folder.lock(FolderNames.LOCK, options.lockWaitNanos());
        }
        lockedNanos = elapsed();
        set = FolderSet.look(given);
        folders = set.folders();
        creation = new Creation(folders, options, probe);
        if (set.isFresh()) {
            folders.list().forEach(foreign::refuse);
            catalog = creation.create(nowMillis());
        }
        if (!set.isFresh()) {
            requireSameGeometry(set.copies().together().identity());
        }
        plan = set.isFresh()
                ? CapPlan.fresh(catalog.atOpening())
                : CapPlan.of(set, options.capBytes(), options.segmentsMin());
        CatalogContents contents = plan.contents();
        LogGeometry geometry = geometry(contents.identity());
        if (options.capBytes() != 0 && plan.isNew()) {
            creation.requireRoomToGrow(plan);
        }
        set.lost().stream().forEach(number -> {
            foreign.refuse(folders.get(number));
            creation.requireRoomFor(number, contents);
        });
        foreign.note(notes);
        set.announce(options.pid(), geometry.storeId());
        catalogNanos = elapsed();
        scan = new LogScan(folders, set.lost(), geometry, plan, notes, options.readThreads(), options.progress());
        if (!options.flushesBeforeReuse()) {
            scan.vouchesForNothing();
        }
        scan.readHeaders();
        if (catalog == null) {
            catalog = Catalog.open(
                    set.catalogPaths(), set.copies(), probe); // late: until here its library loads meanwhile
        }
        headersNanos = elapsed();
        return finish(contents, geometry, foreign);
    }

    /** Whether any of the folders holds a store already, whose sizes stand. */
    public static boolean holdsStore(DataFolders folders) {
        return folders.list().stream().anyMatch(folder -> Catalog.exists(FolderNames.catalogPath(folder)));
    }

    static LogGeometry geometry(CatalogIdentity identity) {
        byte[] id = ByteBuffer.allocate(LogGeometry.STORE_ID_BYTES)
                .putLong(identity.storeIdHigh())
                .putLong(identity.storeIdLow())
                .array();
        return new LogGeometry((int) identity.segmentBytes(), identity.segments(), id, identity.folders());
    }

    private void requireSameGeometry(CatalogIdentity identity) {
        if (options.segmentBytes() != 0 && options.segmentBytes() != identity.segmentBytes()) {
            throw otherGeometry("segments of " + identity.segmentBytes() + " bytes", options.segmentBytes());
        }
    }

    private OrbitKvException otherGeometry(String made, long asked) {
        return new OrbitKvException(
                ErrorCode.OTHER_GEOMETRY,
                "the store in " + folders.path() + " was made with " + made + ", and " + asked
                        + " are asked for; give the old number, or use another folder");
    }

    /** Makes folders anew that are lost. */
    private void remake() {
        set.lost().stream().forEach(number -> {
            String which = "the data folder " + folders.get(number).path() + " (number " + number + " of "
                    + folders.count() + ")";
            notes.add(
                    set.isUnused()
                            ? which + " was not made to its end, and the store was never used: it is made anew"
                            : which + " holds nothing of the store, so its blocks are lost: it is made anew");
            creation.remake(number, plan, geometry(set.copies().together().identity()), catalog);
        });
    }

    private long elapsed() {
        return clock.nanoTime() - startNanos;
    }

    private OpenedFolder finish(CatalogContents contents, LogGeometry geometry, Foreign foreign) {
        long epoch = contents.counter(CatalogCounter.EPOCH) + 1;
        OpeningKind kind = kind(contents);
        Snapshot.Marker marker = kind == OpeningKind.FRESH ? null : snapshot(contents, geometry);
        if (marker != null) {
            kind = OpeningKind.CLEAN;
            scan.takeFromCatalog();
        } else {
            scan.judge(kind == OpeningKind.POWER_LOSS);
        }
        long judgedNanos = elapsed();
        index = factory.create(geometry);
        Indexing indexing = new Indexing(index, contents, nowMillis());
        remake();
        catalog.level();
        removeSnapshot(marker != null);
        scan.repair();
        long nextPosition = Math.max(1, contents.counter(CatalogCounter.NEXT_POSITION));
        long nextUse = Math.max(scan.lastUse() + 1, contents.counter(CatalogCounter.NEXT_USE_SEQUENCE));
        nextUse = Math.max(1, nextUse);
        begin(contents, kind, epoch, nextPosition, nextUse);
        settleFiles(geometry);
        IndexFill.LockPages lockPages = () -> writeLockPages(epoch, geometry);
        boolean checksFirst = kind == OpeningKind.POWER_LOSS;
        if (!checksFirst) {
            lockPages.write();
        }
        OpeningTimes times = new OpeningTimes(lockedNanos, catalogNanos, headersNanos, judgedNanos, elapsed(), 0);
        LOG.info(
                "{}: opened after {} in {} ms; {} segments are to be indexed",
                folders.path(),
                kind,
                times.readyNanos() / 1_000_000,
                scan.segmentsUsed());
        IndexFill fill = new IndexFill(
                folders,
                geometry,
                scan,
                indexing,
                catalog,
                marker,
                checksFirst ? lockPages : null,
                new IndexFill.Met(foreign, set.lostPaths()),
                clock,
                probe,
                options.progress(),
                notes,
                startNanos,
                times);
        if (marker == null && scan.segmentsUsed() == 0) {
            fill.run(); // nothing to wait for
        }
        return new OpenedFolder(
                folders,
                kind,
                epoch,
                catalog,
                geometry,
                scan.state(nextUse, nextPosition - 1),
                index,
                indexing.namespaces(),
                nextPosition,
                Budget.fitting(contents.identity().capBytes(), contents.identity(), contents.mapBytes()),
                set.lostPaths(),
                fill);
    }

    /** From here on a death of the process is no power loss any more: what the last one left was checked. */
    private void writeLockPages(long epoch, LogGeometry geometry) {
        for (DataFolder folder : folders.list()) {
            new LockPage(options.pid(), epoch, folder.bootId(), geometry.storeId()).write(folder);
        }
    }

    /** After the catalog has heard of it: a death before this is put right by the next opening. */
    private void settleFiles(LogGeometry geometry) {
        if (plan.absent().isEmpty()) {
            return;
        }
        probe.enter(CrashWindow.CAP_CHANGE);
        try {
            plan.settleFiles(folders, geometry);
        } finally {
            probe.leave(CrashWindow.CAP_CHANGE);
        }
    }

    private OpeningKind kind(CatalogContents contents) {
        if (contents.counter(CatalogCounter.EPOCH) == 0) {
            return OpeningKind.FRESH;
        }
        return set.isOfThisBoot(notes) ? OpeningKind.KILL : OpeningKind.POWER_LOSS;
    }

    /** The marker of a snapshot that counts for this state of catalog and log, or null. */
    private Snapshot.Marker snapshot(CatalogContents contents, LogGeometry geometry) {
        Snapshot.Marker marker = Snapshot.readMarker(folders, geometry, contents, notes);
        return marker != null && scan.agreesWithCatalog() ? marker : null;
    }

    /** Nothing is changed before the markers are gone: an index without marker counts for nothing, whoever dies when. */
    private void removeSnapshot(boolean isNeeded) {
        if (!Snapshot.exists(folders)) {
            return;
        }
        probe.enter(CrashWindow.SNAPSHOT);
        try {
            probe.enter(CrashWindow.SNAPSHOT_MARKER);
            Snapshot.removeMarkers(folders);
            probe.leave(CrashWindow.SNAPSHOT_MARKER);
            if (!isNeeded) {
                Snapshot.removeRest(folders);
            }
        } finally {
            probe.leave(CrashWindow.SNAPSHOT);
        }
    }

    private void begin(CatalogContents contents, OpeningKind kind, long epoch, long nextPosition, long nextUse) {
        try (Catalog.Batch batch = catalog.begin()) {
            plan.putInto(batch);
            for (SegmentRow row : scan.changedRows()) {
                batch.putSegment(row);
            }
            for (QuarantineRow row : contents.quarantine()) {
                boolean known = row.segment() >= 0
                        && row.segment() < contents.identity().segments();
                // The place has another use by now: its old bytes can't come back.
                if (!known || (scan.useSequence(row.segment()) != row.useSequence() && !scan.isFree(row.segment()))) {
                    batch.removeQuarantine(row);
                }
            }
            batch.setCounter(CatalogCounter.EPOCH, epoch);
            batch.setCounter(CatalogCounter.NEXT_POSITION, nextPosition + POSITION_STRIDE);
            batch.setCounter(CatalogCounter.NEXT_USE_SEQUENCE, nextUse + USE_SEQUENCE_STRIDE);
            if (kind == OpeningKind.KILL) {
                batch.addCounter(CatalogCounter.KILLS, 1);
            } else if (kind == OpeningKind.POWER_LOSS) {
                batch.addCounter(CatalogCounter.POWER_LOSSES, 1);
            }
            batch.commit();
        }
    }

    /** Wall-clock time, for people only; a simulation has its own clock and no date. */
    private long nowMillis() {
        return options.storeIdSeed() == 0 ? System.currentTimeMillis() : 0;
    }
}
