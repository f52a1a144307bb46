package io.orbitkv.tiers;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.Resources;
import io.orbitkv.nativeio.WindowProbe;
import java.util.concurrent.atomic.AtomicReference;
import org.agrona.concurrent.NanoClock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the parts of one drive's log share, and whether the drive is out of service.
 *
 * <pre>
 * staging: a header page and a footer for each lane and the mover's | a header page for each segment being prepared
 *          | the probe's pages
 * </pre>
 */
final class LogContext implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NvmeTier.class);

    /** Beside one for each lane: one that is given up, and one that gets ready. */
    private static final int SPARE_SEGMENTS = 2;

    final LogGeometry geometry;
    final int drive;
    final LogShared shared;
    final NvmeOptions options;
    final HostBlocks host;
    final NvmeListener listener;
    final WindowProbe probe;
    final LogIo io;
    final SegmentTable table;
    final SegmentExchange exchange;
    final NvmeCounters counters = new NvmeCounters();
    final MemoryRegion staging;
    final int lanes;

    private final AtomicReference<TierState> state = new AtomicReference<>(TierState.SERVING);
    private volatile OrbitKvException failure;

    /** The agent knows that the drive is out: nothing goes on but what was submitted, and the probe. */
    private boolean out;

    private volatile boolean evictionRequested;
    private boolean sealRequested;

    LogContext(
            int drive,
            LogGeometry geometry,
            LogState initial,
            LogShared shared,
            Generations generations,
            HostBlocks host,
            NvmeListener listener,
            WindowProbe probe,
            NvmeOptions options,
            DataFolder folder,
            NanoClock clock) {
        this.drive = drive;
        this.shared = shared;
        this.geometry = geometry;
        this.options = options;
        this.host = host;
        this.listener = listener;
        this.probe = probe;
        this.lanes = lanes(geometry, options);
        this.exchange =
                new SegmentExchange(present(initial), Math.min(geometry.segmentsPerFolder(), lanes + SPARE_SEGMENTS));
        long pages = (lanes + 1L) * lanePages(geometry) + SegmentSupply.PREPARED_MAX + DriveProbe.PAGES;
        Resources made = new Resources();
        try {
            this.io = made.keep(new LogIo(folder, drive, geometry, options, clock));
            this.staging = made.keep(
                    MemoryRegion.anonymous(pages * DiskFormat.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING));
            this.table = made.keep(new SegmentTable(initial, generations, geometry, drive));
            made.release();
        } finally {
            made.close();
        }
    }

    private int present(LogState initial) {
        int present = 0;
        for (int segment = drive; segment < geometry.segments(); segment += geometry.folders()) {
            present += initial.isAbsent(segment) ? 0 : 1;
        }
        return present;
    }

    /** As many as are asked for, but few enough that as many segments again can be sealed, with two to spare. */
    private static int lanes(LogGeometry geometry, NvmeOptions options) {
        return Math.min(options.openSegments(), Math.max(1, geometry.segmentsPerFolder() / 2 - 1));
    }

    private static int lanePages(LogGeometry geometry) {
        return BatchHeader.PAGES + Footer.pagesMax(geometry);
    }

    /** Where a lane's header page stands in staging. */
    long headerOffset(int lane) {
        return (long) lane * lanePages(geometry) * DiskFormat.PAGE_BYTES;
    }

    /** Where a lane's footer is collected in staging. */
    long footerOffset(int lane) {
        return headerOffset(lane) + (long) BatchHeader.PAGES * DiskFormat.PAGE_BYTES;
    }

    /** Where header pages of segments being prepared stand in staging. */
    long prepareOffset(int i) {
        return ((lanes + 1L) * lanePages(geometry) + i) * DiskFormat.PAGE_BYTES;
    }

    /** Where the probe's pages stand in staging. */
    long probeOffset() {
        return prepareOffset(SegmentSupply.PREPARED_MAX);
    }

    /** Asks for the oldest segment to be given up, whether or not a lane needs one. Any thread. */
    void requestEviction() {
        evictionRequested = true;
    }

    /** Whether that was asked for since the last look. */
    boolean takeEvictionRequest() {
        boolean requested = evictionRequested;
        if (requested) {
            evictionRequested = false;
        }
        return requested;
    }

    /** Asks the next lane that has nothing else to do to seal its segment, so that it can be given up. Agent's thread. */
    void requestSeal() {
        sealRequested = true;
    }

    /** Whether that was asked for and no lane has done it yet; the one that asks does it. Agent's thread. */
    boolean takeSealRequest() {
        boolean requested = sealRequested;
        sealRequested = false;
        return requested;
    }

    boolean hasFailed() {
        return failure != null;
    }

    /** Whether the agent starts nothing but the probe. Agent's thread. */
    boolean isOut() {
        return out;
    }

    /** Whether a transfer that ends leads to nothing further. Agent's thread. */
    boolean isHalted() {
        return out || failure != null;
    }

    /** Any thread. */
    TierState state() {
        return state.get();
    }

    /** Moves the state unless it is another one by now. Any thread. */
    boolean move(TierState from, TierState to) {
        return state.compareAndSet(from, to);
    }

    OrbitKvException failure() {
        return failure;
    }

    /** A transfer has ended with an error: the drive is out, and what it holds of the transfer is unknown. */
    void failDrive(String what, int segmentOrFile, int result) {
        leave(what + " " + segmentOrFile + " failed with errno " + -result);
    }

    /** The drive is out from here on, for the agent too. Agent's thread. */
    void leave(String reason) {
        if (failure != null || (state.get() != TierState.OUT && !takeOut(reason))) {
            return;
        }
        if (!out) {
            out = true;
            listener.onOut(drive, outage(reason));
        }
    }

    private OrbitKvException outage(String reason) {
        return new OrbitKvException(
                ErrorCode.DRIVE,
                io.path() + ": " + reason
                        + "; the drive is out of service and comes back by itself once it is well. Look at the kernel log for"
                        + " errors of this drive");
    }

    /**
     * Any thread: the drive is out, though the agent may not know yet, and may even hang with it.
     *
     * @return false where it was out, or the log has ended
     */
    boolean takeOut(String reason) {
        if (move(TierState.SERVING, TierState.OUT)) {
            LOG.warn("{}", outage(reason).getMessage());
            return true;
        }
        return move(TierState.RETURNING, TierState.OUT); // a probe that failed is nothing new
    }

    /** The drive has passed its probe. Agent's thread. */
    boolean comeBack() {
        if (!move(TierState.RETURNING, TierState.SERVING)) {
            return false;
        }
        out = false;
        LOG.warn("{}: the drive is back in service", io.path());
        listener.onBack(drive);
        return true;
    }

    /** The log has stopped cleanly. Agent's thread. */
    void stopped() {
        move(TierState.SERVING, TierState.STOPPED);
    }

    /** Ends the log, by a mistake of its own; the first reason stays. */
    void fail(OrbitKvException reason) {
        if (failure == null) {
            failure = reason;
            state.set(TierState.FAILED);
            // a drive's error says it all; anything else is our mistake, and then the place matters
            LOG.error("The log has failed: {}", reason.getMessage(), reason.code() == ErrorCode.DRIVE ? null : reason);
            listener.onFailure(reason);
        }
    }

    @Override
    public void close() {
        io.close();
        table.close();
        staging.close();
    }
}
