package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.tiers.LogGeometry;
import java.util.List;
import java.util.Objects;
import org.agrona.concurrent.NanoClock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fills the index of a folder that was opened, while the store serves already: from the snapshot of a clean stop, otherwise
 * from the listings of the log, oldest use first.
 *
 * <pre>
 * SNAPSHOT -> REST -> ENDED       a snapshot that proves bad: SNAPSHOT -> LOG
 * LOG ------> REST -> ENDED       REST: what was checked and repaired is made durable and written down
 * </pre>
 *
 * <p>One thread steps it; others read what the index has by then. It publishes pieces of some 100 blocks under the store's
 * writer lock, and holds that lock across no I/O. A segment that the log gives up before its turn is skipped. Whatever
 * this life has published of a key counts more than what the log lists. Where it ends early the folder is as after a kill.
 */
public final class IndexFill implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(IndexFill.class);

    private enum Phase {
        SNAPSHOT,
        LOG,
        REST,
        ENDED
    }

    private final DataFolders folders;
    private final LogGeometry geometry;
    private final LogScan scan;
    private final Indexing indexing;
    private final Catalog catalog;
    private final Snapshot.Marker marker;
    private final LockPages lockPages;
    private final NanoClock clock;
    private final WindowProbe probe;
    private final OpeningProgress progress;
    private final Notes notes;
    private final long startNanos;

    private FillGround ground;
    private Phase phase;
    private SnapshotReader snapshot;
    private SnapshotLoad load;
    private SegmentReader reader;
    private int from;
    private boolean isReading;
    private boolean closed;

    private volatile FillState state = FillState.FILLING;
    private volatile long done;
    private volatile long of;
    private volatile Accounting accounting;
    private volatile OpeningReport report;
    private volatile OpeningTimes times;
    private volatile OrbitKvException failure;

    /** What an end of the whole opening has to write besides. */
    @FunctionalInterface
    interface LockPages {
        /** Says in the lock pages that this boot of the machine has the folders; null: said already. */
        void write();
    }

    /** What is reported of an opening beside what the fill counts. */
    record Met(Foreign foreign, List<String> lostFolders) {}

    private final Met met;

    IndexFill(
            DataFolders folders,
            LogGeometry geometry,
            LogScan scan,
            Indexing indexing,
            Catalog catalog,
            Snapshot.Marker marker,
            LockPages lockPages,
            Met met,
            NanoClock clock,
            WindowProbe probe,
            OpeningProgress progress,
            Notes notes,
            long startNanos,
            OpeningTimes times) {
        this.folders = folders;
        this.geometry = geometry;
        this.scan = scan;
        this.indexing = indexing;
        this.catalog = catalog;
        this.marker = marker;
        this.lockPages = lockPages;
        this.met = met;
        this.clock = clock;
        this.probe = probe;
        this.progress = progress;
        this.notes = notes;
        this.startNanos = startNanos;
        this.times = times;
        this.phase = marker != null ? Phase.SNAPSHOT : Phase.LOG;
        this.of = marker != null ? marker.indexBytes() : scan.segmentsUsed();
    }

    /** How far it is. Any thread. */
    public FillState state() {
        return state;
    }

    /** The part of the work that is done, 0 to 1. Any thread. */
    public double share() {
        long all = of;
        return state == FillState.WHOLE || all == 0 ? 1 : Math.min(1, (double) done / all);
    }

    /** Why it ended early, or null. Any thread. */
    public OrbitKvException failure() {
        return failure;
    }

    /** Where every page of the log went; null before the index is whole. Any thread. */
    public Accounting accounting() {
        return accounting;
    }

    /** What the opening met; null before the index is whole. Any thread. */
    public OpeningReport report() {
        return report;
    }

    /** Where the time went. Any thread. */
    public OpeningTimes times() {
        return times;
    }

    /** A clear has given a namespace a new epoch and number. The caller holds the writer lock. */
    public void cleared(long id64, int epoch, int number) {
        indexing.cleared(id64, epoch, number);
    }

    /** Says what runs beside it; before the first step. */
    public void start(FillGround with) {
        ground = Objects.requireNonNull(with, "with");
    }

    /** Fills the index to the end, where no store runs beside it. */
    public IndexFill run() {
        start(FillGround.ALONE);
        while (step()) {
            // a piece a step
        }
        if (failure != null) {
            throw failure;
        }
        return this;
    }

    /**
     * Does the next piece of work; it may wait for reads, with no lock held.
     *
     * @return false when there is nothing left to do
     */
    public boolean step() {
        if (phase == Phase.ENDED) {
            return false;
        }
        try {
            switch (phase) {
                case SNAPSHOT -> stepSnapshot();
                case LOG -> stepLog();
                default -> end();
            }
        } catch (OrbitKvException e) {
            fail(e);
        } catch (RuntimeException e) {
            fail(new OrbitKvException(ErrorCode.BUG, "filling the index met " + e, e));
        }
        return phase != Phase.ENDED;
    }

    // ---- a snapshot ----

    private void stepSnapshot() {
        if (snapshot == null) {
            load = new SnapshotLoad(indexing, scan, geometry.segments());
            snapshot = new SnapshotReader(folders, geometry, marker, load::rowsOf, ground.writerLock());
        }
        if (enterAndLeave(snapshot::step)) {
            done = snapshot.pagesRead() * Snapshot.PAGE_BYTES;
            return;
        }
        String odd = snapshot.odd() != null ? snapshot.odd() : load.odd();
        snapshot.close();
        snapshot = null;
        if (odd != null) {
            notes.add("the snapshot does not count: " + odd + "; the log is scanned");
            indexing.startOver();
            done = 0;
            of = scan.segmentsUsed();
            phase = Phase.LOG;
            return;
        }
        for (int segment = 0; segment < geometry.segments(); segment++) {
            if (!scan.isFree(segment)) {
                indexing.bury(DeadReason.EVICTED, load.evictedBlocks(segment), load.evictedPages(segment));
            }
        }
        phase = Phase.REST;
    }

    /** A piece is a window in which a crash is of interest, and in which a test may slow the fill. */
    private boolean enterAndLeave(java.util.function.BooleanSupplier piece) {
        probe.enter(CrashWindow.FILL);
        try {
            return piece.getAsBoolean();
        } finally {
            probe.leave(CrashWindow.FILL);
        }
    }

    // ---- the log ----

    private void stepLog() {
        if (!isReading) {
            isReading = true;
            scan.begin(ground, indexing);
        }
        if (reader == null) {
            reader = scan.next();
            from = 0;
            if (reader == null) {
                phase = Phase.REST;
                return;
            }
            indexing.begin(reader.segment());
        }
        if (from < reader.count()) {
            enterAndLeave(this::publishPiece);
        }
        if (from >= reader.count()) {
            SegmentReader last = reader;
            reader = null;
            noteWrong(last);
            scan.finish(last);
            done++;
            progress.onProgress("indexing segments", done, of);
        }
    }

    private boolean publishPiece() {
        int blocks = indexing.prepare(reader, from);
        boolean isCurrent;
        synchronized (ground.writerLock()) {
            isCurrent = ground.isCurrent(reader.segment(), reader.useSequence());
            if (isCurrent) {
                indexing.publish();
            }
        }
        if (!isCurrent) {
            indexing.skip(reader, from);
            blocks = reader.count() - from;
        }
        from += blocks;
        return true;
    }

    private void noteWrong(SegmentReader last) {
        int wrong = last.wrongCount();
        if (wrong > 0) {
            notes.add(wrong + " of " + last.count() + " blocks of segment " + last.segment()
                    + " do not match their checksums and are not used");
        }
    }

    // ---- the end ----

    private void end() {
        Accounting found = scan.accounting(indexing).requireWhole(folders.path());
        scan.flushFilled();
        List<QuarantineRow> wrong = indexing.found();
        try (Catalog.Batch batch = catalog.begin()) {
            List<SegmentRow> rows = scan.filledRows();
            if (!rows.isEmpty() || !wrong.isEmpty()) {
                rows.forEach(batch::putSegment);
                wrong.forEach(batch::putQuarantine);
                batch.addCounter(CatalogCounter.WRONG_BLOCKS, wrong.size());
                batch.commit();
            }
        }
        if (lockPages != null) {
            lockPages.write();
        }
        if (marker != null) {
            Snapshot.removeRest(folders);
        }
        long nanos = clock.nanoTime() - startNanos;
        accounting = found;
        report = scan.report(nanos, met.foreign().names(), met.foreign().bytes(), met.lostFolders());
        times = times.withWhole(nanos);
        LOG.info("{}: index whole after {} ms: {}", folders.path(), nanos / 1_000_000, found);
        state = FillState.WHOLE;
        close();
    }

    private void fail(OrbitKvException reason) {
        failure = reason;
        LOG.error(
                "{}: the index could not be filled to its end; what is indexed is served, the rest is missed until the"
                        + " store is opened again: {}",
                folders.path(),
                reason.getMessage(),
                reason);
        state = FillState.FAILED;
        close();
    }

    /** Ends it, wherever it is, and frees its memory. On the thread that steps it, or when that has ended. */
    @Override
    public void close() {
        phase = Phase.ENDED;
        if (closed) {
            return;
        }
        closed = true;
        if (snapshot != null) {
            snapshot.close();
            snapshot = null;
        }
        if (isReading) {
            if (reader != null && !scan.isGivenUp(reader)) {
                ground.letGo(reader.segment());
            }
            reader = null;
            scan.endReading();
        }
        scan.close();
    }
}
