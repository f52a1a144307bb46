package io.orbitkv.tiers;

import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.Resources;
import io.orbitkv.nativeio.WindowProbe;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the parts of the log share, and whether it has failed.
 *
 * <pre>
 * staging: a header page and a footer for each lane and the mover's | a header page for each segment being prepared
 * </pre>
 */
final class LogContext implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NvmeTier.class);

    /** Beside one for each lane: one that is given up, and one that gets ready. */
    private static final int SPARE_SEGMENTS = 2;

    final LogGeometry geometry;
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

    private volatile OrbitKvException failure;

    private volatile boolean evictionRequested;
    private boolean sealRequested;

    LogContext(
            LogGeometry geometry,
            LogState initial,
            Generations generations,
            HostBlocks host,
            NvmeListener listener,
            WindowProbe probe,
            NvmeOptions options,
            DataFolders folders) {
        this.geometry = geometry;
        this.options = options;
        this.host = host;
        this.listener = listener;
        this.probe = probe;
        this.lanes = lanes(geometry, options);
        this.exchange = new SegmentExchange(geometry, initial, Math.min(geometry.segments(), lanes + SPARE_SEGMENTS));
        long pages = (lanes + 1L) * lanePages(geometry) + SegmentSupply.PREPARED_MAX;
        Resources made = new Resources();
        try {
            this.io = made.keep(new LogIo(folders, geometry, options));
            this.staging = made.keep(
                    MemoryRegion.anonymous(pages * DiskFormat.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING));
            this.table = made.keep(new SegmentTable(initial, generations, geometry.segmentPages()));
            made.release();
        } finally {
            made.close();
        }
    }

    /** As many as are asked for, but few enough that as many segments again can be sealed, with two to spare. */
    private static int lanes(LogGeometry geometry, NvmeOptions options) {
        return Math.min(options.openSegments(), Math.max(1, geometry.segments() / 2 - 1));
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

    OrbitKvException failure() {
        return failure;
    }

    /** A transfer has ended with an error, which ends the log: what the drive holds by now is unknown. */
    void failDrive(String what, int segmentOrFile, int result) {
        fail(new OrbitKvException(
                ErrorCode.DRIVE,
                what + " " + segmentOrFile + " failed with errno " + -result
                        + "; the log takes no more writes. Check the drive, then open the store again"));
    }

    /** Ends the log; the first reason stays. */
    void fail(OrbitKvException reason) {
        if (failure == null) {
            failure = reason;
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
