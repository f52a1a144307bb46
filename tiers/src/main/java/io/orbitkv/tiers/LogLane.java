package io.orbitkv.tiers;

import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.tiers.SegmentTable.Life;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes blocks of one queue into one open segment, one batch at a time.
 *
 * <pre>
 *  IDLE --a batch is due--> PAYLOADS --all ended--> HEADER --ended--> IDLE
 *  IDLE --the next block doesn't fit, or the log stops--> FOOTER --ended--> IDLE, without a segment
 * </pre>
 *
 * <p>Stepped by the agent; nothing here blocks. Payloads go to the drive from the host pages where they lie, neighbours in
 * one transfer.
 */
final class LogLane {
    private static final Logger LOG = LoggerFactory.getLogger(NvmeTier.class);

    /** How many queued blocks a step looks at, so that one lane can't hold up the others. */
    private static final int LOOK_MAX = 256;

    /** A segment is nearly full when less than so many batches' room is left in it. */
    private static final int NEARLY_FULL_BATCHES = 2;

    private enum Phase {
        IDLE,
        PAYLOADS,
        HEADER,
        FOOTER
    }

    private final LogContext context;
    private final SegmentSupply supply;
    private final Flusher flusher;
    private final int number;
    private final HostBlocks source;
    private final Written written;
    private final boolean isAgain;
    private final LaneQueue queue;
    private final BatchHeader headerCodec;
    private final Footer footerCodec;
    private final BlockListing from = new BlockListing();
    private final BlockListing to = new BlockListing();

    private Phase phase = Phase.IDLE;
    private int pending;
    private boolean submitted;
    private boolean waiting;

    /** The drive went out under a batch: what lies behind the last whole one is unknown, so nothing more is appended. */
    private boolean broken;

    private long nowNanos;

    // ---- queued blocks that were looked at ----
    private long looked;
    private long waitingPages;
    private long waitingSince;

    // ---- the open segment ----
    private int segment = SegmentSupply.NONE;
    private long useSequence;
    private int nextPage;
    private int batchSequence;
    private int listings;
    private int payloadPages;

    // ---- the batch in flight ----
    private final long[] hostExtents = new long[BatchHeader.LISTINGS_MAX];
    private final long[] nvmeExtents = new long[BatchHeader.LISTINGS_MAX];
    private final long[] sources = new long[BatchHeader.LISTINGS_MAX];
    private final int[] blockPages = new int[BatchHeader.LISTINGS_MAX];
    private int batchCount;
    private int batchPages;
    private int cursor;
    private int footerPages;

    /** Hears of batches. */
    interface Written {
        /** A batch lies in the log: blocks, and where they lie there. */
        void onBatchWritten(long[] sourceExtents, long[] nvmeExtents, int count);
    }

    /** A lane for blocks that were saved. */
    LogLane(LogContext context, SegmentSupply supply, Flusher flusher, int number) {
        this(
                context,
                supply,
                flusher,
                number,
                context.host,
                context.listener::onBatchWritten,
                context.options.queueBlocks());
    }

    /** The lane for blocks that are appended again. */
    LogLane(LogContext context, SegmentSupply supply, Flusher flusher, int number, SegmentMover mover) {
        this(
                context,
                supply,
                flusher,
                number,
                mover,
                mover::onBatchWritten,
                SegmentMover.queueBlocks(context.geometry));
    }

    private LogLane(
            LogContext context,
            SegmentSupply supply,
            Flusher flusher,
            int number,
            HostBlocks source,
            Written written,
            int queueBlocks) {
        this.context = context;
        this.supply = supply;
        this.flusher = flusher;
        this.number = number;
        this.source = source;
        this.written = written;
        this.isAgain = source != context.host;
        this.queue = new LaneQueue(queueBlocks);
        this.headerCodec = new BatchHeader(context.geometry);
        this.footerCodec = new Footer(context.geometry);
    }

    LaneQueue queue() {
        return queue;
    }

    /** Whether a batch is due and no segment is ready for it. */
    boolean isWaiting() {
        return waiting;
    }

    /**
     * Whether this lane will soon need another segment: blocks come, and little room is left. Preparing one takes a flush,
     * in which the drive would stand still if lanes asked for segments only when they need them, all at about the same
     * time.
     */
    boolean isNearlyFull() {
        if (segment == SegmentSupply.NONE || (phase == Phase.IDLE && looked == queue.taken())) {
            return false;
        }
        boolean inFlight = phase == Phase.PAYLOADS || phase == Phase.HEADER;
        int left = context.geometry.segmentPages() - nextPage - (inFlight ? BatchHeader.PAGES + batchPages : 0);
        long near = (long) NEARLY_FULL_BATCHES * context.options.batchBytesMax() / DiskFormat.PAGE_BYTES;
        return left < Math.min(near, context.geometry.segmentPages() / 2);
    }

    /** Nothing queued, nothing in flight, no segment open. */
    boolean isDone() {
        return phase == Phase.IDLE && segment == SegmentSupply.NONE && queue.taken() == queue.tail();
    }

    /** How long until a batch is due by itself. */
    long nextTimerNanos(long now) {
        if (phase != Phase.IDLE || waiting || queue.taken() == queue.tail()) {
            return Long.MAX_VALUE;
        }
        return looked == queue.taken() ? 0 : Math.max(0, waitingSince + context.options.lingerNanos() - now);
    }

    /**
     * One step; what it did, 0 for nothing.
     *
     * @param now the time
     * @param writeRequest blocks up to this position are due
     * @param stopping whether everything is due, and the segment is sealed then
     */
    int step(long now, long writeRequest, boolean stopping) {
        nowNanos = now;
        look();
        return switch (phase) {
            case IDLE -> begin(writeRequest, stopping);
            case PAYLOADS -> submitPayloads();
            case HEADER -> submitHeader();
            case FOOTER -> submitFooter();
        };
    }

    /** Adds up what waits. */
    private void look() {
        long end = Math.min(queue.tail(), looked + LOOK_MAX);
        if (looked == queue.taken() && looked < end) {
            waitingSince = nowNanos;
        }
        for (; looked < end; looked++) {
            waitingPages += source.listing(queue.extent(looked), from).pages();
        }
    }

    private int begin(long writeRequest, boolean stopping) {
        waiting = false;
        if (broken) {
            return endBroken();
        }
        int dropped = dropTooLarge();
        if (looked == queue.taken()) {
            boolean seals = segment != SegmentSupply.NONE && (stopping || (listings > 0 && context.takeSealRequest()));
            return dropped + (seals ? beginFooter() : 0);
        }
        if (!stopping && !isDue(writeRequest)) {
            return dropped;
        }
        if (segment == SegmentSupply.NONE && !openSegment()) {
            waiting = true;
            return dropped;
        }
        int count = countFitting();
        return dropped + (count == 0 ? beginFooter() : beginBatch(count));
    }

    /** Seals the segment with what it holds; one that holds nothing gets another header before it is used again. */
    private int endBroken() {
        broken = false;
        if (listings > 0) {
            return beginFooter();
        }
        supply.giveBack(segment);
        segment = SegmentSupply.NONE;
        return 1;
    }

    private boolean isDue(long writeRequest) {
        return waitingPages * DiskFormat.PAGE_BYTES >= context.options.batchBytesMax()
                || looked - queue.taken() >= BatchHeader.LISTINGS_MAX
                || nowNanos - waitingSince >= context.options.lingerNanos()
                || queue.position(queue.taken()) <= writeRequest;
    }

    /** A block that no segment can hold is the caller's mistake; it must not stop the others. */
    private int dropTooLarge() {
        int dropped = 0;
        while (queue.taken() < looked) {
            long extent = queue.extent(queue.taken());
            int pages = source.listing(extent, from).pages();
            if (pages <= context.geometry.blockPagesMax()) {
                break;
            }
            if (context.counters.blocksDropped() == 0) {
                LOG.warn(
                        "A block of {} pages was offered to a log whose segments hold at most {}; such are dropped",
                        pages,
                        context.geometry.blockPagesMax());
            }
            waitingPages -= pages;
            queue.take(1);
            source.unpin(extent);
            queue.settleTaken();
            NvmeCounters.add(context.counters.blocksDropped, 1);
            dropped++;
        }
        return dropped;
    }

    private boolean openSegment() {
        segment = supply.take();
        if (segment == SegmentSupply.NONE) {
            return false;
        }
        useSequence = context.table.useSequence(segment);
        nextPage = SegmentHeader.PAGES;
        batchSequence = 0;
        listings = 0;
        payloadPages = 0;
        context.listener.onSegment(segment, useSequence, SegmentState.OPEN, 0, 0, 0);
        return true;
    }

    /** How many of the next blocks make a batch that leaves room for the footer; 0 when not even one does. */
    private int countFitting() {
        long bytesMax = context.options.batchBytesMax();
        int limit = (int) Math.min(looked - queue.taken(), BatchHeader.LISTINGS_MAX);
        int end = nextPage + BatchHeader.PAGES;
        long bytes = 0;
        int count = 0;
        for (; count < limit; count++) {
            int pages =
                    source.listing(queue.extent(queue.taken() + count), from).pages();
            bytes += (long) pages * DiskFormat.PAGE_BYTES;
            end += pages; // the queue's sizes were checked one by one: at most 38 segments' pages
            if ((count > 0 && bytes > bytesMax)
                    || end + Footer.pagesFor(listings + count + 1) > context.geometry.segmentPages()) {
                break;
            }
        }
        return count;
    }

    private int beginBatch(int count) {
        context.probe.enter(CrashWindow.BATCH_WRITE);
        long header = context.headerOffset(number);
        BatchHeader.begin(context.staging, header);
        int generation = context.table.generations().current(segment);
        int page = nextPage + BatchHeader.PAGES;
        for (int i = 0; i < count; i++) {
            long extent = queue.extent(queue.taken() + i);
            source.listing(extent, from);
            to.wrap(context.staging, header + BatchHeader.listingOffset(i))
                    .set(from)
                    .firstPage(page);
            from.wrap(context.staging, context.footerOffset(number) + Footer.listingOffset(listings + i))
                    .set(to);
            hostExtents[i] = extent;
            nvmeExtents[i] = Extent.pack(segment, page, generation);
            sources[i] = source.payloadOffset(extent);
            blockPages[i] = to.pages();
            page += blockPages[i];
        }
        batchCount = count;
        batchPages = page - nextPage - BatchHeader.PAGES;
        headerCodec.encode(context.staging, header, segment, useSequence, batchSequence, count, batchPages);
        queue.take(count);
        waitingPages -= batchPages;
        cursor = 0;
        phase = Phase.PAYLOADS;
        return 1 + submitPayloads();
    }

    private int submitPayloads() {
        int work = 0;
        while (cursor < batchCount) {
            int end = endOfNeighbours(cursor);
            long bytes = 0;
            for (int i = cursor; i < end; i++) {
                bytes += (long) blockPages[i] * DiskFormat.PAGE_BYTES;
            }
            if (!context.io.write(
                    segment,
                    Extent.page(nvmeExtents[cursor]),
                    source.memory(),
                    sources[cursor],
                    bytes,
                    Token.pack(Token.PAYLOAD, number, 0))) {
                break;
            }
            cursor = end;
            pending++;
            work++;
            NvmeCounters.add(context.counters.payloadWrites, 1);
        }
        return work;
    }

    /** Blocks from i on that lie back to back in one host segment, as all of a batch do in the log. */
    private int endOfNeighbours(int i) {
        int end = i + 1;
        while (end < batchCount
                && sources[end] == sources[end - 1] + (long) blockPages[end - 1] * DiskFormat.PAGE_BYTES
                && Extent.segment(hostExtents[end]) == Extent.segment(hostExtents[i])) {
            end++;
        }
        return end;
    }

    void onPayload(int result) {
        pending--;
        if (result < 0) {
            context.failDrive("writing payloads to segment", segment, result);
        }
        if (context.isHalted()) {
            return;
        }
        if (pending == 0 && cursor == batchCount) {
            phase = Phase.HEADER;
            submitted = false;
            submitHeader();
        }
    }

    private int submitHeader() {
        if (submitted
                || !context.io.write(
                        segment,
                        nextPage,
                        context.staging,
                        context.headerOffset(number),
                        DiskFormat.PAGE_BYTES,
                        Token.pack(Token.BATCH_HEADER, number, 0))) {
            return 0;
        }
        submitted = true;
        pending++;
        return 1;
    }

    void onHeader(int result) {
        pending--;
        if (context.hasFailed()) {
            return;
        }
        if (result < 0) {
            context.failDrive("writing a batch header to segment", segment, result);
            return;
        }
        context.probe.leave(CrashWindow.BATCH_WRITE);
        nextPage += BatchHeader.PAGES + batchPages;
        batchSequence++;
        listings += batchCount;
        payloadPages += batchPages;
        flusher.onWritten(segment, nowNanos);
        countBatch();
        phase = Phase.IDLE;
        written.onBatchWritten(hostExtents, nvmeExtents, batchCount);
        for (int i = 0; i < batchCount; i++) {
            source.unpin(hostExtents[i]);
        }
        queue.settleTaken();
    }

    private void countBatch() {
        NvmeCounters counters = context.counters;
        NvmeCounters.add(counters.batches, 1);
        if (!isAgain) { // what is written again is the mover's to count
            NvmeCounters.add(counters.blocksWritten, batchCount);
            NvmeCounters.add(counters.payloadBytes, (long) batchPages * DiskFormat.PAGE_BYTES);
        }
        NvmeCounters.add(counters.headerBytes, DiskFormat.PAGE_BYTES);
    }

    private int beginFooter() {
        context.probe.enter(CrashWindow.SEAL);
        footerPages = footerCodec.encode(
                context.staging,
                context.footerOffset(number),
                segment,
                useSequence,
                listings,
                batchSequence,
                payloadPages);
        assert nextPage + footerPages <= context.geometry.segmentPages() : "no room for the footer";
        phase = Phase.FOOTER;
        submitted = false;
        return 1 + submitFooter();
    }

    private int submitFooter() {
        if (submitted
                || !context.io.write(
                        segment,
                        context.geometry.segmentPages() - footerPages,
                        context.staging,
                        context.footerOffset(number),
                        (long) footerPages * DiskFormat.PAGE_BYTES,
                        Token.pack(Token.FOOTER, number, 0))) {
            return 0;
        }
        submitted = true;
        pending++;
        return 1;
    }

    void onFooter(int result) {
        pending--;
        if (context.hasFailed()) {
            return;
        }
        if (result < 0) {
            submitted = false;
            context.failDrive("writing the footer of segment", segment, result);
            return;
        }
        context.probe.leave(CrashWindow.SEAL);
        NvmeCounters.add(context.counters.footerBytes, (long) footerPages * DiskFormat.PAGE_BYTES);
        NvmeCounters.add(context.counters.segmentsSealed, 1);
        int sealed = segment;
        context.table.contents(sealed, listings, payloadPages);
        context.table.move(sealed, Life.SEALED);
        flusher.onWritten(sealed, nowNanos);
        flusher.onSealed(sealed);
        segment = SegmentSupply.NONE;
        phase = Phase.IDLE;
        context.listener.onSegment(
                sealed,
                useSequence,
                SegmentState.SEALED,
                listings,
                payloadPages,
                context.geometry.segmentPages() - payloadPages);
    }

    /** After a failure: gives the pins of all blocks back, once the drive has let go of their pages; what it did. */
    int abandon() {
        if (pending > 0) {
            return 0;
        }
        int dropped = 0;
        long end = queue.tail();
        for (long i = queue.settled(); i < end; i++) {
            source.unpin(queue.extent(i));
            dropped++;
        }
        queue.take((int) (end - queue.taken()));
        queue.settleTaken();
        looked = end;
        NvmeCounters.add(context.counters.blocksDropped, dropped);
        return dropped;
    }

    /**
     * While the drive is out: what waits stays in host memory only, at once, and so does the batch in flight as soon as the
     * drive has let go of its pages; what it did.
     */
    int giveUp() {
        if (phase == Phase.IDLE && queue.settled() == queue.tail()) {
            return 0;
        }
        int done = giveUpWaiting();
        if (pending == 0 && (phase == Phase.PAYLOADS || phase == Phase.HEADER)) {
            context.probe.leave(CrashWindow.BATCH_WRITE);
            long first = queue.settled();
            lose(first, first + batchCount);
            for (int i = 0; i < batchCount; i++) {
                source.unpin(hostExtents[i]);
            }
            done += batchCount;
            phase = Phase.IDLE;
            broken = true;
        }
        if (phase == Phase.IDLE || phase == Phase.FOOTER) {
            queue.settleTaken();
        }
        return done;
    }

    private int giveUpWaiting() {
        long first = queue.taken();
        long end = queue.tail();
        for (long i = first; i < end; i++) {
            source.unpin(queue.extent(i));
        }
        lose(first, end);
        queue.take((int) (end - first));
        looked = end;
        waitingPages = 0;
        waiting = false;
        return (int) (end - first);
    }

    /** Blocks that are appended again have lost nothing: they still lie where they did. */
    private void lose(long first, long end) {
        if (!isAgain && first < end) {
            context.shared.lost.add(queue.position(first), queue.position(end - 1));
            NvmeCounters.add(context.counters.blocksDropped, end - first);
        }
    }

    /** A segment that this lane may write was given up: its flush has failed. Nothing of it is in flight. */
    void onGivenUp(int given) {
        if (segment == given) {
            segment = SegmentSupply.NONE;
            phase = Phase.IDLE;
            broken = false;
        }
    }
}
