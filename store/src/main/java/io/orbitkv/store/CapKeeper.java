package io.orbitkv.store;

import io.orbitkv.index.Catalog;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.recovery.Budget;
import io.orbitkv.recovery.FolderBytes;
import io.orbitkv.recovery.OpenedFolder;
import io.orbitkv.recovery.OpeningOptions;
import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.NvmeTier;
import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.atomic.AtomicReference;
import org.agrona.concurrent.NanoClock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps what the data folders take within the cap, foreign files included: says how many segments each folder may have, takes
 * the pages of those that the log lets go of, and gives it pages again where there is room.
 *
 * <pre>
 * smaller: log gives a segment up (unlink, raise, pins zero, reads zero) -> catalog: absent -> pages punched
 * larger:  pages allocated -> flushed -> catalog: free -> the log's
 * </pre>
 *
 * <p>The catalog knows a new cap first, and what it calls absent holds nothing: a death anywhere in between leaves pages that
 * the next opening takes away, never fewer pages than the catalog says. One thread calls {@link #doWork}.
 */
final class CapKeeper {
    private static final Logger LOG = LoggerFactory.getLogger(CapKeeper.class);

    /** How often foreign files are looked for; what promise 5 calls "at most 5 s ago", with time to spare for the look. */
    private static final long LOOK_NANOS = 2_000_000_000L;

    /** After a commit, an allocation or a punch that failed. */
    private static final long RETRY_NANOS = 2_000_000_000L;

    /** Own files are measured with each look while they are so few, and seldom beyond. */
    private static final int FILES_MEASURED_ALWAYS = 256;

    private static final int LOOKS_A_MEASUREMENT = 32;

    /** Segments of one commit. */
    private static final int BATCH = 32;

    private final DataFolders folders;
    private final LogGeometry geometry;
    private final Catalog catalog;
    private final long catalogBytes;
    private final Drives nvme;
    private final SegmentBook book;
    private final CatalogKeeper keeper;
    private final NanoClock clock;
    private final WindowProbe probe;
    private final int placesEach;

    /** Segments whose pages are gone. Of the keeping thread, as all that is not final or volatile below. */
    private final BitSet absent = new BitSet();

    /** What a new cap gives, until the keeping thread has taken it over. */
    private final AtomicReference<Budget> changed = new AtomicReference<>();

    private final Share[] shares;
    private Budget budget;
    private long lookedNanos;
    private long retryNanos;
    private long looks;
    private String lastProblem = "";
    private volatile CapCondition condition = CapCondition.WITHIN;
    private volatile boolean hasShrunk;
    private volatile boolean isSettled;

    /** One folder's part of the cap: as much as every other's, whatever their drives do. */
    private static final class Share {
        final int folder;
        int having;
        int target;
        int growTo;
        long excess;
        volatile long foreign;
        final int[] left = new int[BATCH];
        int leftCount;
        final int[] back = new int[BATCH];
        int backCount;
        long retryNanos;
        boolean mustMeasure = true;
        boolean isDriveFull;
        boolean cannotShrink;

        Share(int folder) {
            this.folder = folder;
        }

        boolean isTooLarge() {
            return having > target;
        }

        boolean hasShrunk() {
            return !isTooLarge() || cannotShrink;
        }

        boolean isSettled() {
            return hasShrunk() && (having >= growTo || isDriveFull) && leftCount + backCount == 0;
        }
    }

    CapKeeper(
            OpenedFolder opened,
            Drives nvme,
            SegmentBook book,
            CatalogKeeper keeper,
            NanoClock clock,
            WindowProbe probe) {
        this.folders = opened.folders();
        this.geometry = opened.geometry();
        this.catalog = opened.catalog();
        this.catalogBytes = opened.budget().catalogBytes();
        this.budget = opened.budget();
        this.nvme = nvme;
        this.book = book;
        this.keeper = keeper;
        this.clock = clock;
        this.probe = probe;
        this.placesEach = geometry.segmentsPerFolder();
        this.shares = new Share[geometry.folders()];
        Arrays.setAll(shares, Share::new);
        for (int segment = 0; segment < geometry.segments(); segment++) {
            boolean isAbsent = opened.logState().isAbsent(segment);
            absent.set(segment, isAbsent);
            shareOf(segment).having += isAbsent ? 0 : 1;
        }
        lookedNanos = clock.nanoTime();
        retryNanos = lookedNanos;
        for (Share share : shares) {
            share.retryNanos = lookedNanos;
        }
        look(lookedNanos);
    }

    private Share shareOf(int segment) {
        return shares[geometry.folderOfSegment(segment)];
    }

    /** Whether a folder is looked at and changed now: not while its drive is out of service, since that may hang. */
    private boolean isReachable(Share share) {
        return nvme.drive(share.folder).isServing();
    }

    /** One step; what it did, 0 for nothing. */
    int doWork() {
        long now = clock.nanoTime();
        int work = takeChange(now);
        if (now - lookedNanos >= LOOK_NANOS) {
            look(now); // no work by itself: an idle thread would wake up a dozen times behind it
        }
        if (now - retryNanos >= 0) {
            try {
                work += takePages(now) + giveBack() + givePages(now);
            } catch (OrbitKvException e) {
                retryNanos = now + RETRY_NANOS;
                note(e);
            }
        }
        say();
        return work;
    }

    private void note(OrbitKvException problem) {
        if (!lastProblem.equals(problem.getMessage())) {
            lastProblem = problem.getMessage();
            LOG.warn("{}: the store can't follow its cap for now: {}", folders.path(), problem.getMessage());
        }
    }

    /** What one folder refuses keeps nothing from the others. */
    private void note(Share share, OrbitKvException problem, long now) {
        if (problem.code() == ErrorCode.NO_SPACE) {
            share.isDriveFull = true; // until the next look
        } else {
            share.cannotShrink |= problem.code() == ErrorCode.NOT_AVAILABLE;
            share.retryNanos = now + RETRY_NANOS;
        }
        note(problem);
    }

    private boolean isDue(Share share, long now) {
        return isReachable(share) && now - share.retryNanos >= 0;
    }

    // ---- how much each folder may have ----

    private void look(long now) {
        boolean measures = geometry.files() <= FILES_MEASURED_ALWAYS || looks % LOOKS_A_MEASUREMENT == 0;
        looks++;
        for (Share share : shares) {
            lookAt(share, measures || share.mustMeasure, now);
        }
        lookedNanos = now;
        say();
    }

    /** Of a drive that is out, what was seen last counts. */
    private void lookAt(Share share, boolean measuresOwn, long now) {
        long before = share.foreign;
        if (isReachable(share)) {
            try {
                measure(share, measuresOwn);
            } catch (OrbitKvException e) {
                note(share, e, now);
            }
        }
        share.target = segmentsBeside(share.foreign + share.excess);
        // A file that comes and goes is not followed in both directions: room has to be there twice.
        share.growTo = Math.min(share.target, segmentsBeside(Math.max(before, share.foreign) + share.excess));
        nvme.drive(share.folder).segmentsTarget(share.cannotShrink ? placesEach : share.target);
    }

    private void measure(Share share, boolean measuresOwn) {
        share.isDriveFull = false;
        if (measuresOwn) {
            FolderBytes seen = FolderBytes.look(folders.get(share.folder));
            long fixed = seen.ownBytes() - (long) share.having * geometry.segmentBytes();
            share.foreign = seen.foreignBytes();
            share.excess = Math.max(0, fixed - budget.fixedBytes(placesEach));
            share.mustMeasure = false;
        } else {
            share.foreign = FolderBytes.foreignBytes(folders.get(share.folder));
        }
    }

    private int segmentsBeside(long bytes) {
        return Math.min(placesEach, budget.segmentsBeside(bytes, placesEach));
    }

    // ---- smaller ----

    /** Takes the pages of segments that the log has let go of; how many. */
    private int takePages(long now) {
        int taken = 0;
        for (Share share : shares) {
            taken += isDue(share, now) ? takeLeft(share) : 0;
        }
        if (taken == 0) {
            return 0;
        }
        probe.enter(CrashWindow.CAP_CHANGE);
        try {
            for (Share share : shares) {
                for (int i = 0; i < share.leftCount; i++) {
                    book.noteAbsent(share.left[i]);
                }
            }
            keeper.commit();
            for (Share share : shares) {
                if (isDue(share, now)) {
                    punch(share, now);
                }
            }
        } finally {
            probe.leave(CrashWindow.CAP_CHANGE);
        }
        return taken;
    }

    private int takeLeft(Share share) {
        while (share.leftCount < BATCH) {
            int segment = nvme.drive(share.folder).takeLeftSegment();
            if (segment < 0) {
                break;
            }
            share.left[share.leftCount++] = segment;
        }
        return share.leftCount;
    }

    private void punch(Share share, long now) {
        share.mustMeasure |= share.leftCount > 0;
        try {
            while (share.leftCount > 0) {
                int segment = share.left[share.leftCount - 1];
                nvme.drive(share.folder).punch(segment);
                share.leftCount--;
                absent.set(segment);
                share.having--;
            }
        } catch (OrbitKvException e) {
            note(share, e, now);
        }
    }

    // ---- larger ----

    /** Gives the log what has pages again and was too much for it before. */
    private int giveBack() {
        int given = 0;
        for (Share share : shares) {
            while (share.backCount > 0 && nvme.drive(share.folder).giveSegment(share.back[share.backCount - 1])) {
                share.backCount--;
                given++;
            }
        }
        return given;
    }

    private int givePages(long now) {
        boolean wanted = false;
        for (Share share : shares) {
            wanted |= wantsPages(share, now);
        }
        if (!wanted) {
            return 0;
        }
        int allocated = 0;
        boolean committed = false;
        probe.enter(CrashWindow.CAP_CHANGE);
        try {
            for (Share share : shares) {
                allocated += wantsPages(share, now) ? allocateIn(share, now) : 0;
            }
            if (allocated == 0) {
                return 0; // no room on the drives
            }
            keeper.commit();
            committed = true;
        } finally {
            probe.leave(CrashWindow.CAP_CHANGE);
            for (Share share : shares) {
                if (!committed) {
                    takeAway(share);
                }
            }
        }
        return allocated + giveBack();
    }

    private boolean wantsPages(Share share, long now) {
        return isDue(share, now)
                && share.backCount + share.leftCount == 0
                && !share.isDriveFull
                && share.having < share.growTo;
    }

    /** Gives segments durable pages, and notes for the catalog that they have them; how many. */
    private int allocateIn(Share share, long now) {
        NvmeTier log = nvme.drive(share.folder);
        try {
            allocateBatch(share, log, now);
            BitSet files = new BitSet();
            for (int i = 0; i < share.backCount; i++) {
                files.set(geometry.file(share.back[i]));
            }
            files.stream().forEach(log::flushFile);
        } catch (OrbitKvException e) {
            note(share, e, now);
            takeAway(share);
            return 0;
        }
        for (int i = 0; i < share.backCount; i++) {
            book.notePresent(share.back[i]);
        }
        return share.backCount;
    }

    private void allocateBatch(Share share, NvmeTier log, long now) {
        for (int segment = absent.nextSetBit(0);
                segment >= 0 && share.backCount < BATCH && share.having < share.growTo;
                segment = absent.nextSetBit(segment + 1)) {
            if (shareOf(segment) != share) {
                continue;
            }
            try {
                log.allocate(segment);
            } catch (OrbitKvException e) {
                if (e.code() != ErrorCode.NO_SPACE) {
                    throw e;
                }
                note(share, e, now);
                return;
            }
            absent.clear(segment);
            share.having++;
            share.back[share.backCount++] = segment;
            share.mustMeasure = true;
        }
    }

    /** Where something failed, pages stay, counted as left by the log, and are taken away again. */
    private static void takeAway(Share share) {
        for (int i = 0; i < share.backCount; i++) {
            share.left[share.leftCount++] = share.back[i];
        }
        share.backCount = 0;
    }

    // ---- for others ----

    /**
     * Commits a new cap, which the store follows from now on. Any thread; it waits for nothing but the catalog.
     *
     * @throws OrbitKvException {@link ErrorCode#CAP_TOO_SMALL}: nothing was changed
     */
    synchronized void change(long capBytes) {
        Budget fitting = Budget.fitting(capBytes, catalog.identity(), catalogBytes)
                .requireSegments(OpeningOptions.SEGMENTS_MIN, catalog.identity());
        probe.enter(CrashWindow.CAP_CHANGE);
        try (Catalog.Batch batch = catalog.begin()) {
            batch.resize(capBytes, geometry.segments());
            batch.commit();
        } finally {
            probe.leave(CrashWindow.CAP_CHANGE);
        }
        changed.set(fitting);
    }

    /** A new cap is followed at once, in both directions. */
    private int takeChange(long now) {
        Budget fitting = changed.get();
        if (fitting == null) {
            return 0;
        }
        budget = fitting;
        for (Share share : shares) {
            share.mustMeasure = true;
        }
        look(now);
        for (Share share : shares) {
            share.growTo = share.target;
        }
        say();
        changed.compareAndSet(fitting, null); // partner: isSettled() looks at it first
        return 1;
    }

    /** Says for other threads how far it has come. A drive that is out is waited for by nobody. */
    private void say() {
        boolean shrunk = true;
        boolean settled = true;
        for (Share share : shares) {
            boolean counts = isReachable(share);
            shrunk &= !counts || share.hasShrunk();
            settled &= !counts || share.isSettled();
        }
        hasShrunk = shrunk;
        isSettled = settled;
        condition = conditionNow();
    }

    private CapCondition conditionNow() {
        boolean grows = false;
        boolean isFull = false;
        for (Share share : shares) {
            if (share.isTooLarge()) {
                return share.cannotShrink ? CapCondition.CANNOT_SHRINK : CapCondition.SHRINKING;
            }
            grows |= share.having < share.growTo;
            isFull |= share.isDriveFull;
        }
        if (grows) {
            return isFull ? CapCondition.DRIVE_FULL : CapCondition.GROWING;
        }
        return nvme.isStarved() ? CapCondition.STARVED : CapCondition.WITHIN;
    }

    /** Whether nothing more is to be done for the cap now, on drives in service. Any thread. */
    boolean isSettled() {
        return changed.get() == null && isSettled;
    }

    /** Whether what folders on drives in service have is within the cap, or can't be brought there. Any thread. */
    boolean hasShrunk() {
        return hasShrunk;
    }

    /** How the store stands to its cap. Any thread. */
    CapCondition condition() {
        return condition;
    }

    /** The cap. Any thread. */
    long capBytes() {
        return catalog.identity().capBytes();
    }

    /** Foreign bytes as they were seen last. Any thread. */
    long foreignBytes() {
        long bytes = 0;
        for (Share share : shares) {
            bytes += share.foreign;
        }
        return bytes;
    }

    /** Measures all of it now. The keeping thread; walks the folders, and a drive may hang in it. */
    CapState measure() {
        takeChange(clock.nanoTime());
        long own = 0;
        for (Share share : shares) {
            FolderBytes seen = FolderBytes.look(folders.get(share.folder));
            own += seen.ownBytes();
            share.foreign = seen.foreignBytes();
        }
        condition = conditionNow();
        return new CapState(capBytes(), own, foreignBytes(), condition);
    }

    /** Most bytes that a snapshot may take in each folder, at a stop. The keeping thread has ended. */
    long snapshotBytesMax() {
        takeChange(clock.nanoTime());
        long most = budget.snapshotBytes();
        for (Share share : shares) {
            FolderBytes seen = FolderBytes.look(folders.get(share.folder));
            most = Math.min(most, capBytes() / folders.count() - seen.ownBytes() - seen.foreignBytes());
        }
        return Math.max(0, most);
    }
}
