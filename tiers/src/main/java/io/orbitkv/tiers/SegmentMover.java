package io.orbitkv.tiers;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.Resources;

/**
 * Appends the used blocks of victims to the log again, before their segments are given up.
 *
 * <pre>
 * FREE -> FOOTER -> PAYLOADS -> WRITING -> FLUSHING -> DONE -> FREE
 *           |           +- no block is wanted any more -> DONE
 *           +- half of the blocks are used after all: the segment stays -> FREE
 * </pre>
 *
 * <p>A slot holds one victim: its footer is read, then each used block that the index still has there, into staging, and
 * proved by its checksum; a lane of its own writes what is right, and the listener learns the new place. A victim is DONE
 * only when all that was written is flushed too, whatever durability is asked for: until it is reused its own copy is there,
 * and from then on the other one is durable, so that a crash at any moment finds one of them. Bounded: slots are few, and a
 * slot has room for a whole segment.
 *
 * <p>The lane takes blocks from here as others do from host memory: of an extent, the segment is the slot and the page the
 * number of a staged block. All on the agent's thread.
 */
final class SegmentMover implements HostBlocks, AutoCloseable {
    private static final long STAGING_BYTES = 8 << 20;
    private static final int SLOTS_MAX = 8;

    /** One victim for so many segments of a log; a smaller log appends nothing again. */
    private static final int SEGMENTS_A_SLOT = 16;

    private enum Phase {
        FREE,
        FOOTER,
        PAYLOADS,
        WRITING,
        FLUSHING,
        DONE
    }

    private final LogContext context;
    private final int segmentPages;
    private final int footerPagesMax;
    private final Slot[] slots;
    private final MemoryRegion memory;
    private final MemoryRegion listings;
    private final Generations generations;
    private final Footer footer;
    private final BlockListing look = new BlockListing();
    private final BlockListing staged = new BlockListing();
    private final BlockChecksum checksum = new BlockChecksum();
    private LaneQueue queue;
    private Flusher flusher;
    private int busy;
    private int done;

    /** What is going on with one victim. */
    private static final class Slot {
        Phase phase = Phase.FREE;
        int victim;
        int generation;
        int footerPages;
        int listed;
        int cursor;
        int nextPage;
        boolean submitted;
        int reading;
        int stagedCount;
        int writing;
        long flushRound;
        final int[] oldPages;
        final long[] movedTo;
        final int[] stagedPages;
        final boolean[] isWrong;

        Slot(int blocksMax) {
            oldPages = new int[blocksMax];
            movedTo = new long[blocksMax];
            stagedPages = new int[blocksMax];
            isWrong = new boolean[blocksMax];
        }
    }

    SegmentMover(LogContext context) {
        this.context = context;
        LogGeometry geometry = context.geometry;
        this.segmentPages = geometry.segmentPages();
        this.footerPagesMax = Footer.pagesMax(geometry);
        this.footer = new Footer(geometry);
        int count = slots(geometry);
        this.slots = new Slot[count];
        for (int i = 0; i < count; i++) {
            slots[i] = new Slot(segmentPages);
        }
        Resources made = new Resources();
        try {
            memory = made.keep(region((long) Math.max(1, count) * geometry.segmentBytes()));
            listings = made.keep(region((long) Math.max(1, count) * footerPagesMax * DiskFormat.PAGE_BYTES));
            generations = made.keep(new Generations(Math.max(1, count)));
            made.release();
        } finally {
            made.close();
        }
    }

    private static MemoryRegion region(long bytes) {
        return MemoryRegion.anonymous(bytes, PageKind.SMALL, MemoryPurpose.STAGING);
    }

    /** Most victims at a time in such a log. */
    static int slots(LogGeometry geometry) {
        long fitting = Math.max(1, STAGING_BYTES / geometry.segmentBytes());
        return (int) Math.min(Math.min(SLOTS_MAX, fitting), geometry.segmentsPerFolder() / SEGMENTS_A_SLOT);
    }

    /** Most blocks that can wait for the lane. */
    static int queueBlocks(LogGeometry geometry) {
        return Math.max(1, slots(geometry) * geometry.segmentPages());
    }

    void appendTo(LaneQueue laneQueue, Flusher logFlusher) {
        queue = laneQueue;
        flusher = logFlusher;
    }

    // ---- the supply's side ----

    /** Victims whose blocks are on their way. */
    int busy() {
        return busy;
    }

    boolean hasRoom() {
        // A log that the cap has made small has no segments to spare: what it was made for does not count.
        return busy + done < slots.length
                && busy + done < context.exchange.present() / SEGMENTS_A_SLOT
                && !context.exchange.hasSurplus();
    }

    /** Takes a victim over; it is held back from being chosen again. */
    void begin(int victim) {
        int number = 0;
        while (slots[number].phase != Phase.FREE) {
            number++;
        }
        Slot slot = slots[number];
        context.probe.enter(CrashWindow.REAPPEND);
        context.table.hold(victim);
        busy++;
        slot.phase = Phase.FOOTER;
        slot.victim = victim;
        slot.generation = context.table.generations().current(victim);
        int known = context.table.blocks(victim);
        slot.footerPages = known > 0 ? Footer.pagesFor(known) : footerPagesMax;
        slot.submitted = false;
        slot.reading = 0;
        slot.stagedCount = 0;
        slot.cursor = 0;
        slot.nextPage = 0;
        slot.writing = 0;
        submitFooter(number);
    }

    /** A victim that can be given up now, or -1. */
    int takeDone() {
        for (Slot slot : slots) {
            if (slot.phase == Phase.DONE) {
                slot.phase = Phase.FREE;
                done--;
                return slot.victim;
            }
        }
        return SegmentSupply.NONE;
    }

    // ---- the agent's side ----

    /** One step; what it did, 0 for nothing. */
    int step() {
        int work = 0;
        for (int number = 0; busy > 0 && number < slots.length; number++) {
            Slot slot = slots[number];
            switch (slot.phase) {
                case FOOTER -> work += submitFooter(number);
                case PAYLOADS -> work += submitPayloads(number);
                case FLUSHING -> {
                    if (flusher.isComplete(slot.flushRound)) {
                        finish(slot);
                        work++;
                    }
                }
                default -> {}
            }
        }
        return work;
    }

    /** Nothing is read or waits to be written or flushed. */
    boolean isIdle() {
        return busy == 0;
    }

    private long footerOffset(int number) {
        return (long) number * footerPagesMax * DiskFormat.PAGE_BYTES;
    }

    private int submitFooter(int number) {
        Slot slot = slots[number];
        int page = segmentPages - slot.footerPages;
        if (slot.submitted
                || !context.io.read(
                        Extent.pack(slot.victim, page, slot.generation),
                        listings,
                        footerOffset(number),
                        (long) slot.footerPages * DiskFormat.PAGE_BYTES,
                        Token.pack(Token.MOVE_FOOTER, number, 0))) {
            return 0;
        }
        slot.submitted = true;
        return 1;
    }

    void onFooter(int number, int result) {
        if (context.isHalted()) {
            return;
        }
        Slot slot = slots[number];
        SegmentTable table = context.table;
        slot.listed = result < 0 ? 0 : listed(number, slot);
        if (slot.listed == 0) {
            drop(table.use().usedBlocks(slot.victim));
            finish(slot);
            return;
        }
        table.contents(slot.victim, slot.listed, footer.payloadPages());
        table.use().count(slot.victim, slot.listed);
        if (table.use().isHot(slot.victim)) {
            table.use().giveSecondChance(slot.victim);
            table.release(slot.victim);
            slot.phase = Phase.FREE;
            busy--;
            context.probe.leave(CrashWindow.REAPPEND);
            return;
        }
        slot.phase = Phase.PAYLOADS;
        submitPayloads(number);
    }

    /** Moves the footer that was just read to the slot's start; how many blocks it lists, 0 when it does not count. */
    private int listed(int number, Slot slot) {
        long start = footerOffset(number);
        long use = context.table.useSequence(slot.victim);
        long lastPage = start + (slot.footerPages - 1L) * DiskFormat.PAGE_BYTES;
        if (footer.decodeTrailer(listings, lastPage, use) != Verdict.VALID || footer.pages() > slot.footerPages) {
            return 0;
        }
        int pages = footer.pages();
        long at = start + (long) (slot.footerPages - pages) * DiskFormat.PAGE_BYTES;
        if (footer.decode(listings, at, pages, slot.victim, use) != Verdict.VALID) {
            return 0;
        }
        for (int i = 0; i < footer.count() && at != start; i++) {
            look.wrap(listings, at + Footer.listingOffset(i));
            staged.wrap(listings, start + Footer.listingOffset(i)).set(look);
        }
        return footer.count();
    }

    /** Reads used blocks one by one; a listing moves to the front when its block is to be appended again. */
    private int submitPayloads(int number) {
        Slot slot = slots[number];
        int work = 0;
        for (; slot.cursor < slot.listed; slot.cursor++) {
            look.wrap(listings, footerOffset(number) + Footer.listingOffset(slot.cursor));
            int page = look.firstPage();
            if (!context.table.use().isUsed(slot.victim, page)) {
                continue;
            }
            long extent = Extent.pack(slot.victim, page, slot.generation);
            if (!context.listener.isWanted(look, extent)) {
                continue;
            }
            int n = slot.stagedCount;
            if (!context.io.read(
                    extent,
                    memory,
                    stagedOffset(number, slot.nextPage),
                    (long) look.pages() * DiskFormat.PAGE_BYTES,
                    Token.pack(Token.MOVE_PAYLOAD, number, n))) {
                return work;
            }
            slot.oldPages[n] = page;
            slot.stagedPages[n] = slot.nextPage;
            slot.isWrong[n] = false;
            slot.movedTo[n] = Extent.NONE;
            slot.nextPage += look.pages();
            slot.stagedCount++;
            slot.reading++;
            stagedListing(number, n, staged).set(look);
            work++;
        }
        if (slot.reading == 0) {
            offer(number);
            work++;
        }
        return work;
    }

    void onPayload(int number, int n, int result) {
        Slot slot = slots[number];
        slot.reading--;
        if (context.isHalted()) {
            return;
        }
        if (result < 0 || !isRight(number, n)) {
            slot.isWrong[n] = true;
            drop(1);
        }
        if (slot.reading == 0 && slot.cursor == slot.listed) {
            offer(number);
        }
    }

    /** A block that rotted is not made young again. */
    private boolean isRight(int number, int n) {
        stagedListing(number, n, staged);
        return checksum.reset()
                        .update(listings, staged.offset(), BlockListing.KEY_BYTES)
                        .update(memory, stagedOffset(number, slots[number].stagedPages[n]), staged.storedBytes())
                        .value()
                == staged.checksum();
    }

    private void offer(int number) {
        Slot slot = slots[number];
        for (int n = 0; n < slot.stagedCount; n++) {
            if (!slot.isWrong[n]) {
                queue.offer(Extent.pack(number, n, 1), Long.MAX_VALUE);
                slot.writing++;
            }
        }
        slot.phase = Phase.WRITING;
        if (slot.writing == 0) {
            finish(slot);
        }
    }

    /** The lane has written blocks: whoever looks for them finds them in their new place. */
    void onBatchWritten(long[] stagedExtents, long[] nvmeExtents, int count) {
        NvmeCounters counters = context.counters;
        for (int i = 0; i < count; i++) {
            int number = Extent.segment(stagedExtents[i]);
            Slot slot = slots[number];
            int n = Extent.page(stagedExtents[i]);
            stagedListing(number, n, staged);
            long old = Extent.pack(slot.victim, slot.oldPages[n], slot.generation);
            context.listener.onBlockMoved(staged, old, nvmeExtents[i]);
            slot.movedTo[n] = nvmeExtents[i];
            NvmeCounters.add(counters.reappendedBlocks, 1);
            NvmeCounters.add(counters.reappendedBytes, (long) staged.pages() * DiskFormat.PAGE_BYTES);
        }
    }

    /** The lane is done with a block. */
    @Override
    public void unpin(long extent) {
        Slot slot = slots[Extent.segment(extent)];
        slot.writing--;
        if (slot.writing == 0 && !context.isHalted()) {
            slot.phase = Phase.FLUSHING;
            slot.flushRound = flusher.requestRound();
        }
    }

    private void finish(Slot slot) {
        slot.phase = Phase.DONE;
        busy--;
        done++;
        context.probe.leave(CrashWindow.REAPPEND);
    }

    /**
     * The drive is out, and nothing is in flight: victims stay where they are. Blocks that were appended again are looked for
     * in their old place once more, which is durable as it ever was; the new one need not become so.
     */
    void giveUpAll() {
        for (int number = 0; number < slots.length; number++) {
            Slot slot = slots[number];
            if (slot.phase == Phase.FREE || slot.phase == Phase.DONE) {
                continue;
            }
            boolean moved = slot.phase == Phase.WRITING || slot.phase == Phase.FLUSHING;
            for (int n = 0; moved && n < slot.stagedCount; n++) {
                if (slot.movedTo[n] != Extent.NONE) {
                    long old = Extent.pack(slot.victim, slot.oldPages[n], slot.generation);
                    context.listener.onBlockMoved(stagedListing(number, n, staged), slot.movedTo[n], old);
                }
            }
            context.table.release(slot.victim);
            slot.phase = Phase.FREE;
            busy--;
            context.probe.leave(CrashWindow.REAPPEND);
        }
    }

    /** Used blocks that are not appended again. */
    void drop(int blocks) {
        NvmeCounters.add(context.counters.usedBlocksDropped, blocks);
    }

    private long stagedOffset(int number, int page) {
        return ((long) number * segmentPages + page) * DiskFormat.PAGE_BYTES;
    }

    private BlockListing stagedListing(int number, int n, BlockListing into) {
        return into.wrap(listings, footerOffset(number) + Footer.listingOffset(n));
    }

    @Override
    public Generations generations() {
        return generations;
    }

    @Override
    public MemoryRegion memory() {
        return memory;
    }

    @Override
    public long payloadOffset(long extent) {
        int number = Extent.segment(extent);
        return stagedOffset(number, slots[number].stagedPages[Extent.page(extent)]);
    }

    @Override
    public BlockListing listing(long extent, BlockListing into) {
        return stagedListing(Extent.segment(extent), Extent.page(extent), into);
    }

    /** The log's ring is closed: nothing reads into staging any more. */
    @Override
    public void close() {
        memory.close();
        listings.close();
        generations.close();
    }
}
