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
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.NvmeTier;
import java.util.BitSet;
import java.util.concurrent.atomic.AtomicLongArray;
import org.agrona.concurrent.Agent;
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
 * the next opening takes away, never fewer pages than the catalog says. An agent: {@link #doWork} by one thread.
 */
final class CapKeeper implements Agent {
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
    private final NvmeTier nvme;
    private final SegmentBook book;
    private final Upkeep upkeep;
    private final NanoClock clock;
    private final WindowProbe probe;
    private final int placesEach;

    /** Segments whose pages are gone. Guarded by this, as all that is not final below. */
    private final BitSet absent = new BitSet();

    private final int[] having;
    private final int[] targets;
    private final int[] growTo;
    private final long[] foreignBefore;
    private final long[] excess;
    private final AtomicLongArray foreign;
    private final int[] left = new int[BATCH];
    private int leftCount;
    private final int[] back = new int[BATCH];
    private int backCount;
    private Budget budget;
    private long lookedNanos;
    private long retryNanos;
    private long looks;
    private boolean mustMeasure = true;
    private boolean isDriveFull;
    private boolean cannotShrink;
    private String lastProblem = "";
    private volatile CapCondition condition = CapCondition.WITHIN;
    private volatile boolean lookNow;

    CapKeeper(OpenedFolder opened, NvmeTier nvme, SegmentBook book, Upkeep upkeep, NanoClock clock, WindowProbe probe) {
        this.folders = opened.folders();
        this.geometry = opened.geometry();
        this.catalog = opened.catalog();
        this.catalogBytes = opened.budget().catalogBytes();
        this.budget = opened.budget();
        this.nvme = nvme;
        this.book = book;
        this.upkeep = upkeep;
        this.clock = clock;
        this.probe = probe;
        this.placesEach = geometry.segments() / geometry.folders();
        int count = geometry.folders();
        this.having = new int[count];
        this.targets = new int[count];
        this.growTo = new int[count];
        this.foreignBefore = new long[count];
        this.excess = new long[count];
        this.foreign = new AtomicLongArray(count);
        for (int segment = 0; segment < geometry.segments(); segment++) {
            boolean isAbsent = opened.logState().isAbsent(segment);
            absent.set(segment, isAbsent);
            having[geometry.folderOfSegment(segment)] += isAbsent ? 0 : 1;
        }
        look(clock.nanoTime());
    }

    @Override
    public String roleName() {
        return "orbitkv-cap";
    }

    @Override
    public synchronized int doWork() {
        long now = clock.nanoTime();
        int work = 0;
        if (lookNow || now - lookedNanos >= LOOK_NANOS) {
            lookNow = false;
            look(now);
            work++;
        }
        if (now - retryNanos < 0) {
            return work;
        }
        try {
            work += takePages() + giveBack() + givePages();
        } catch (OrbitKvException e) {
            retryNanos = now + RETRY_NANOS;
            note(e);
        }
        condition = conditionNow();
        return work;
    }

    private void note(OrbitKvException problem) {
        isDriveFull |= problem.code() == ErrorCode.NO_SPACE;
        cannotShrink |= problem.code() == ErrorCode.NOT_AVAILABLE;
        if (!lastProblem.equals(problem.getMessage())) {
            lastProblem = problem.getMessage();
            LOG.warn("{}: the store can't follow its cap for now: {}", folders.path(), problem.getMessage());
        }
    }

    // ---- how much each folder may have ----

    private void look(long now) {
        boolean measures = mustMeasure || geometry.files() <= FILES_MEASURED_ALWAYS || looks % LOOKS_A_MEASUREMENT == 0;
        looks++;
        mustMeasure = false;
        isDriveFull = false;
        for (int folder = 0; folder < having.length; folder++) {
            lookAt(folder, measures);
        }
        lookedNanos = now;
        condition = conditionNow();
    }

    private void lookAt(int folder, boolean measures) {
        long bytes;
        if (measures) {
            FolderBytes seen = FolderBytes.look(folders.get(folder));
            bytes = seen.foreignBytes();
            long fixed = seen.ownBytes() - (long) having[folder] * geometry.segmentBytes();
            excess[folder] = Math.max(0, fixed - budget.fixedBytes(placesEach));
        } else {
            bytes = FolderBytes.foreignBytes(folders.get(folder));
        }
        long before = foreign.getAndSet(folder, bytes);
        targets[folder] = segmentsBeside(bytes + excess[folder]);
        // A file that comes and goes is not followed in both directions: room has to be there twice.
        growTo[folder] = Math.min(targets[folder], segmentsBeside(Math.max(before, bytes) + excess[folder]));
        nvme.segmentsTarget(folder, cannotShrink ? placesEach : targets[folder]);
    }

    private int segmentsBeside(long bytes) {
        return Math.min(placesEach, budget.segmentsBeside(bytes, placesEach));
    }

    // ---- smaller ----

    /** Takes the pages of segments that the log has let go of; how many. */
    private int takePages() {
        while (leftCount < BATCH) {
            int segment = nvme.takeLeftSegment();
            if (segment < 0) {
                break;
            }
            left[leftCount++] = segment;
        }
        if (leftCount == 0) {
            return 0;
        }
        int taken = leftCount;
        probe.enter(CrashWindow.CAP_CHANGE);
        try {
            for (int i = 0; i < leftCount; i++) {
                book.noteAbsent(left[i]);
            }
            upkeep.commit();
            while (leftCount > 0) {
                nvme.punch(left[leftCount - 1]);
                isGone(left[--leftCount]);
            }
        } finally {
            probe.leave(CrashWindow.CAP_CHANGE);
        }
        mustMeasure = true;
        return taken;
    }

    private void isGone(int segment) {
        absent.set(segment);
        having[geometry.folderOfSegment(segment)]--;
    }

    // ---- larger ----

    /** Gives the log what has pages again and was too much for it before. */
    private int giveBack() {
        int given = 0;
        while (backCount > 0 && nvme.giveSegment(back[backCount - 1])) {
            backCount--;
            given++;
        }
        return given;
    }

    private int givePages() {
        if (backCount > 0 || leftCount > 0 || isDriveFull || !wantsPages()) {
            return 0;
        }
        probe.enter(CrashWindow.CAP_CHANGE);
        int allocated = 0;
        try {
            for (int folder = 0; folder < having.length; folder++) {
                allocated = allocateIn(folder, allocated);
            }
            if (allocated == 0) {
                return 0; // no room on the drive
            }
            BitSet files = new BitSet();
            for (int i = 0; i < allocated; i++) {
                files.set(geometry.file(back[i]));
            }
            files.stream().forEach(nvme::flushFile);
            for (int i = 0; i < allocated; i++) {
                book.notePresent(back[i]);
            }
            upkeep.commit();
            backCount = allocated;
        } finally {
            probe.leave(CrashWindow.CAP_CHANGE);
            mustMeasure |= allocated > 0;
            // Where something failed, the pages stay, counted as left by the log, and are taken away again.
            for (int i = 0; i < allocated && backCount == 0; i++) {
                left[leftCount++] = back[i];
            }
        }
        return allocated + giveBack();
    }

    private boolean wantsPages() {
        for (int folder = 0; folder < having.length; folder++) {
            if (having[folder] < growTo[folder]) {
                return true;
            }
        }
        return false;
    }

    private int allocateIn(int folder, int already) {
        int allocated = already;
        int places = geometry.folders();
        for (int segment = absent.nextSetBit(0);
                segment >= 0 && allocated < BATCH && having[folder] < growTo[folder];
                segment = absent.nextSetBit(segment + 1)) {
            if (segment % places != folder) {
                continue;
            }
            try {
                nvme.allocate(segment);
            } catch (OrbitKvException e) {
                note(e);
                if (e.code() != ErrorCode.NO_SPACE) {
                    throw e;
                }
                return allocated;
            }
            absent.clear(segment);
            having[folder]++;
            back[allocated++] = segment;
        }
        return allocated;
    }

    // ---- for others ----

    /**
     * Commits a new cap, which the store follows from now on. Any thread.
     *
     * @throws OrbitKvException {@link ErrorCode#CAP_TOO_SMALL}: nothing was changed
     */
    synchronized void change(long capBytes) {
        Budget changed = Budget.fitting(capBytes, catalog.identity(), catalogBytes)
                .requireSegments(OpeningOptions.SEGMENTS_MIN, catalog.identity());
        probe.enter(CrashWindow.CAP_CHANGE);
        try (Catalog.Batch batch = catalog.begin()) {
            batch.resize(capBytes, geometry.segments());
            batch.commit();
        } finally {
            probe.leave(CrashWindow.CAP_CHANGE);
        }
        budget = changed;
        mustMeasure = true;
        look(clock.nanoTime());
        for (int folder = 0; folder < growTo.length; folder++) {
            growTo[folder] = targets[folder];
        }
    }

    /** Whether nothing more is to be done for the cap now. Any thread. */
    synchronized boolean isSettled() {
        for (int folder = 0; folder < having.length; folder++) {
            boolean grows = having[folder] < growTo[folder] && !isDriveFull;
            if (grows || (having[folder] > targets[folder] && !cannotShrink)) {
                return false;
            }
        }
        return leftCount + backCount == 0;
    }

    /** Whether what the folders have is within the cap, or can't be brought there. Any thread. */
    synchronized boolean hasShrunk() {
        for (int folder = 0; folder < having.length; folder++) {
            if (having[folder] > targets[folder] && !cannotShrink) {
                return false;
            }
        }
        return true;
    }

    private CapCondition conditionNow() {
        boolean grows = false;
        for (int folder = 0; folder < having.length; folder++) {
            if (having[folder] > targets[folder]) {
                return cannotShrink ? CapCondition.CANNOT_SHRINK : CapCondition.SHRINKING;
            }
            grows |= having[folder] < growTo[folder];
        }
        if (grows) {
            return isDriveFull ? CapCondition.DRIVE_FULL : CapCondition.GROWING;
        }
        return nvme.isStarved() ? CapCondition.STARVED : CapCondition.WITHIN;
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
        for (int folder = 0; folder < foreign.length(); folder++) {
            bytes += foreign.get(folder);
        }
        return bytes;
    }

    /** Measures all of it now. Any thread; walks the folders. */
    synchronized CapState measure() {
        long own = 0;
        for (int folder = 0; folder < having.length; folder++) {
            FolderBytes seen = FolderBytes.look(folders.get(folder));
            own += seen.ownBytes();
            foreign.set(folder, seen.foreignBytes());
        }
        condition = conditionNow();
        return new CapState(capBytes(), own, foreignBytes(), condition);
    }

    /** Most bytes that a snapshot may take in each folder, at a stop. */
    synchronized long snapshotBytesMax() {
        long most = budget.snapshotBytes();
        for (int folder = 0; folder < having.length; folder++) {
            FolderBytes seen = FolderBytes.look(folders.get(folder));
            most = Math.min(most, capBytes() / folders.count() - seen.ownBytes() - seen.foreignBytes());
        }
        return Math.max(0, most);
    }
}
