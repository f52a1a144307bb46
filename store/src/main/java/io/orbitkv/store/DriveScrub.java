package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.recovery.FillState;
import io.orbitkv.recovery.IndexFill;
import io.orbitkv.recovery.SegmentScrub;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.Footer;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.NvmeTier;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.concurrent.UnsafeBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads sealed segments of the drive again, on its own thread and through its own descriptors, one block at a time under a
 * short pin. A segment that is given up meanwhile is left, and so is one on a drive that is out of service; a block that the
 * index does not look for any more is no damage.
 * One thread; counters from any.
 */
final class DriveScrub implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(DriveScrub.class);

    /** Looking at a segment that holds nothing costs next to nothing, and must not become a loop. */
    private static final long LOOK_BYTES = 4096;

    private static final int WARNINGS_MAX = 16;

    private final Object writerLock;
    private final Drives nvme;
    private final LogGeometry geometry;
    private final DataFolders folders;
    private final SegmentScrub reader;
    private final Quarantine quarantine;
    private final LogListener.IndexNumbers numbers;
    private final IndexFill fill;
    private final UnsafeBuffer key = new UnsafeBuffer(0, 0);

    /** By segment: the last use whose footer was found wrong. */
    private final long[] wrongFooters;

    private int segment = -1;
    private int blocks;
    private int next;
    private long life;
    private int warnings;

    final AtomicLong bytes = new AtomicLong();
    final AtomicLong found = new AtomicLong();
    final AtomicLong passes = new AtomicLong();
    final AtomicLong footersFound = new AtomicLong();
    final AtomicLong readErrors = new AtomicLong();

    DriveScrub(
            Object writerLock,
            Drives nvme,
            LogGeometry geometry,
            DataFolders folders,
            Quarantine quarantine,
            LogListener.IndexNumbers numbers,
            IndexFill fill) {
        this.writerLock = writerLock;
        this.nvme = nvme;
        this.geometry = geometry;
        this.folders = folders;
        this.quarantine = quarantine;
        this.numbers = numbers;
        this.fill = fill;
        this.wrongFooters = new long[geometry.segments()];
        this.reader = new SegmentScrub(folders, geometry);
    }

    double progress() {
        return (double) Math.max(0, segment) / geometry.segments();
    }

    /** Looks at the next block, or for the next segment; how many bytes that cost. */
    long step() {
        // While the index fills, what a power loss left is still being checked and sealed.
        if (fill.state() == FillState.FILLING) {
            return LOOK_BYTES;
        }
        try {
            return next < blocks ? checkBlock() : beginSegment();
        } catch (OrbitKvException e) {
            if (e.code() != ErrorCode.DRIVE) {
                throw e;
            }
            readErrors.incrementAndGet();
            warn(e.getMessage());
            return LOOK_BYTES;
        }
    }

    private void warn(String what) {
        if (warnings++ < WARNINGS_MAX) {
            LOG.warn(
                    "scrub: {}{}", what, warnings == WARNINGS_MAX ? " (further warnings are left out; see stats)" : "");
        }
    }

    private long beginSegment() {
        next = 0;
        blocks = 0;
        if (++segment >= geometry.segments()) {
            segment = 0;
            passes.incrementAndGet();
        }
        NvmeTier log = nvme.driveOfSegment(segment);
        if (!log.isSealed(segment)) {
            return LOOK_BYTES;
        }
        life = Extent.pack(segment, 0, log.generations().current(segment));
        if (!nvme.pin(life)) {
            return LOOK_BYTES;
        }
        try {
            long use = log.useSequence(segment);
            if (use == 0 || !log.isSealed(segment)) {
                return LOOK_BYTES;
            }
            blocks = reader.begin(segment, use);
            if (blocks > 0 && reader.isFooterWrong() && hasRoomForFooter() && wrongFooters[segment] != use) {
                wrongFooters[segment] = use; // each is counted once
                footersFound.incrementAndGet();
                warn("the footer of segment " + segment + " does not check out: " + place(geometry.segmentPages() - 1)
                        + "; its batch headers serve");
            }
            return LOOK_BYTES;
        } finally {
            nvme.unpin(life);
        }
    }

    /** An opening seals what it finds open, unless its batches leave no room for a footer. */
    private boolean hasRoomForFooter() {
        BlockListing last = reader.listing(blocks - 1);
        int end = last.firstPage() + last.pages();
        return end + Footer.pagesFor(blocks) <= geometry.segmentPages();
    }

    private String place(int page) {
        int file = geometry.file(segment);
        return folders.get(geometry.folderOfFile(file)).path() + "/" + LogGeometry.fileName(file) + " at byte "
                + geometry.fileOffset(segment, page);
    }

    private long checkBlock() {
        if (!nvme.pin(life)) {
            blocks = 0; // given up, or its drive is out
            return LOOK_BYTES;
        }
        try {
            int i = next++;
            int stored = reader.listing(i).storedBytes();
            boolean matches = reader.matches(i);
            bytes.addAndGet(stored);
            if (!matches) {
                drop(reader.listing(i));
            }
            return stored;
        } finally {
            nvme.unpin(life);
        }
    }

    private void drop(BlockListing block) {
        int number;
        synchronized (writerLock) {
            number = numbers.of(block.namespaceId64(), block.namespaceEpoch());
        }
        int page = block.firstPage();
        long extent = Extent.pack(segment, page, Extent.generation(life));
        block.region().wrap(key, block.offset(), PrefixIndex.KEY_BYTES);
        String where = "the drive (scrub; " + place(page) + ")";
        if (number >= 0 && quarantine.dropFound(number, key, Tier.NVME, extent, where)) {
            found.incrementAndGet();
        }
    }

    @Override
    public void close() {
        reader.close();
    }
}
