package io.orbitkv.tiers;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.Resources;
import java.util.Arrays;

/**
 * Host memory as a log: a pool cut into equal segments, filled page by page, given up as a whole in the order that an
 * {@link EvictionPolicy} decides.
 *
 * <p>Beside each segment stand the listings of its blocks, in the layout of the drive, so that write-back copies them
 * and a restore can compare full keys:
 *
 * <pre>
 * memory    segment 0 | segment 1 | ...            payloads, each from a page's start, zero-padded to whole pages
 * listings  segment s: segmentPages x 104 bytes    the n-th block of the segment at n x 104
 * map       segment s: segmentPages x 2 bytes      first page of a block -> n
 * </pre>
 *
 * <p>A victim with used blocks is set aside where the policy appends them again: whoever has claimed pages asks with
 * {@link #beginMove} whether one waits, copies its used blocks without any lock, and ends it. A few may wait; beyond,
 * and where nothing else can be given up, used blocks go with their segment.
 *
 * <p>The pool may be used in part at first, and more of it later ({@link #use}): a segment that was never used takes no memory.
 *
 * <p>Claims, moves, lanes, {@link #use} and {@link #evictOldest} are called by one thread at a time (the store's writer
 * lock); pins, marks and reads are safe from any thread. A pin protects a segment's bytes for milliseconds; a segment with
 * pins is never reused.
 */
public final class HostTier implements HostBlocks, AutoCloseable {
    private static final int NOBODY = HostVictims.NOBODY;

    private final int segmentBytes;
    private final int segmentPages;
    private final int segments;
    private final MemoryRegion memory;
    private final MemoryRegion listings;
    private final MemoryRegion listingOfPage;
    private final Generations generations;
    private final SegmentPins pins;
    private final SegmentUse use;
    private final HostVictims victims;

    private final int[] openSegment;
    private final int lanes;
    private final int[] nextPage;
    private final int[] blocks;
    private int sealNext;

    private volatile int usableSegments;

    /**
     * Maps the pool, which may be used as a whole.
     *
     * @param poolBytes its size; rounded down to whole segments
     * @param segmentBytes size of a segment, a multiple of the page
     * @param openSegments segments that take blocks at the same time
     * @param pageKind the pages to ask for
     * @param eviction what leaves first
     * @throws OrbitKvException {@link ErrorCode#POOL_TOO_SMALL} below two segments for each open one
     */
    public HostTier(long poolBytes, int segmentBytes, int openSegments, PageKind pageKind, EvictionPolicy eviction) {
        this(poolBytes, segmentBytes, openSegments, pageKind, eviction, "", poolBytes);
    }

    /**
     * The same, in memory that other processes may map for reading, and used in part at first.
     *
     * @param sharedName shown in /proc as the name of the pool's memfd; empty: pool and generations are no memfds
     * @param usableBytes how much of the pool may be used at first; see {@link #use}
     */
    public HostTier(
            long poolBytes,
            int segmentBytes,
            int openSegments,
            PageKind pageKind,
            EvictionPolicy eviction,
            String sharedName,
            long usableBytes) {
        boolean shared = !sharedName.isEmpty();
        this.segmentBytes = segmentBytes;
        this.segmentPages = segmentBytes / MemoryRegion.PAGE_BYTES;
        this.segments = (int) Math.min(poolBytes / segmentBytes, Extent.SEGMENTS_MAX);
        if (segments < 2 * openSegments) {
            throw new OrbitKvException(
                    ErrorCode.POOL_TOO_SMALL,
                    "a pool of " + poolBytes + " bytes holds " + segments + " segments of " + segmentBytes
                            + " bytes, but " + openSegments + " open ones need " + 2 * openSegments
                            + "; make the pool at least " + 2L * openSegments * segmentBytes
                            + " bytes, or segments smaller");
        }
        this.lanes = openSegments;
        this.openSegment = new int[openSegments + (HostVictims.movesMax(segments) > 0 ? 1 : 0)];
        Arrays.fill(openSegment, NOBODY);
        this.nextPage = new int[segments];
        this.blocks = new int[segments];
        Resources made = new Resources();
        try {
            long bytes = (long) segments * segmentBytes;
            memory = made.keep(
                    shared
                            ? MemoryRegion.sealed(sharedName, bytes, pageKind, MemoryPurpose.HOST_POOL)
                            : MemoryRegion.anonymous(bytes, pageKind, MemoryPurpose.HOST_POOL));
            long pages = (long) segments * segmentPages;
            listings = made.keep(
                    MemoryRegion.anonymous(pages * BlockListing.BYTES, PageKind.SMALL, MemoryPurpose.HOST_LISTINGS));
            listingOfPage =
                    made.keep(MemoryRegion.anonymous(pages * Short.BYTES, PageKind.SMALL, MemoryPurpose.HOST_LISTINGS));
            generations = made.keep(new Generations(segments, shared));
            pins = made.keep(new SegmentPins(segments));
            use = made.keep(new SegmentUse(segments, segmentPages));
            made.release();
        } finally {
            made.close();
        }
        this.victims = new HostVictims(segments, eviction.make(), use, generations, pins);
        use(usableBytes);
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
    public long unitBytes() {
        return segmentBytes;
    }

    /** Size of a segment in bytes. */
    public int segmentBytes() {
        return segmentBytes;
    }

    /** How many segments the pool has. */
    public int segments() {
        return segments;
    }

    /**
     * Lets more of the pool be used, from its start on. Never less: what blocks lie in stays theirs. Takes no memory by itself.
     *
     * @param bytes how much; rounded down to whole segments, up to two for each open one, and down to the pool
     */
    public void use(long bytes) {
        int wanted = (int) Math.max(2L * lanes, Math.min(segments, bytes / segmentBytes));
        if (wanted > usableSegments) {
            victims.use(wanted);
            usableSegments = wanted;
        }
    }

    /** Bytes of the pool that may be used. Any thread. */
    public long usableBytes() {
        return (long) usableSegments * segmentBytes;
    }

    /** Bytes of usable segments that hold nothing: so much fits before anything is evicted. Under the same lock as claims. */
    public long freeBytes() {
        return (long) victims.freeSegments() * segmentBytes;
    }

    /** How many segments take blocks at the same time. */
    public int lanes() {
        return lanes;
    }

    /** Segments reused so far. */
    public long evictedSegments() {
        return victims.evictedSegments();
    }

    /** Segments that stayed so far because at least half of their blocks were used. */
    public long secondChances() {
        return use.secondChances();
    }

    /** Used blocks that went with their segment so far, though the policy would have appended them again. */
    public long usedBlocksDropped() {
        return victims.usedBlocksDropped();
    }

    // ---- use: any thread ----

    /** A number for one use of any blocks, for {@link #markUsed}. Any thread. */
    public long nextUse() {
        return use.nextUse();
    }

    /** Notes that a block was used; a stale extent is ignored. Any thread. */
    public void markUsed(long extent, long number) {
        if (generations.isLive(extent)) {
            use.mark(extent, number);
        }
    }

    // ---- claims and eviction: one thread at a time ----

    /**
     * Claims pages for a block in a lane's open segment, opening another where it is full; the claim holds a pin.
     *
     * @param lane which open segment, below the number of them
     * @param bytes the block's length, at most a segment
     * @return where the block goes, or {@link Extent#NONE} when every other segment is pinned
     */
    public long claim(int lane, int bytes) {
        assert lane < lanes : "lane " + lane + " of " + lanes;
        return claimIn(lane, bytes);
    }

    /** As {@link #claim}, for a block that is appended again: such blocks have an open segment of their own. */
    public long claimAgain(int bytes) {
        return claimIn(openSegment.length - 1, bytes);
    }

    private long claimIn(int lane, int bytes) {
        int pages = Extent.pages(bytes);
        assert pages > 0 && pages <= segmentPages : "a block of " + bytes + " bytes was let through";
        int segment = openSegment[lane];
        if (segment == NOBODY || nextPage[segment] + pages > segmentPages) {
            int next = victims.take();
            if (next == NOBODY) {
                return Extent.NONE;
            }
            if (segment != NOBODY) {
                victims.seal(segment, blocks[segment]);
            }
            openSegment[lane] = next;
            nextPage[next] = 0;
            blocks[next] = 0;
            segment = next;
        }
        int page = nextPage[segment];
        nextPage[segment] = page + pages;
        listingOfPage.putShort(mapOffset(segment, page), (short) blocks[segment]++);
        pins.add(segment);
        return Extent.pack(segment, page, generations.current(segment));
    }

    /** The lane that a request takes when it leaves what is stored, chosen by the first 8 bytes of a key of it. */
    public int laneFor(long key0) {
        return (int) Long.remainderUnsigned(key0, lanes);
    }

    /** The lane of a block that goes on behind another one: that one's while it is open, else {@link #laneFor(long)}. */
    public int laneFor(long otherExtent, long key0) {
        int open = laneOf(otherExtent);
        return open == NOBODY ? laneFor(key0) : open;
    }

    /** The lane whose open segment holds this extent, or -1. */
    public int laneOf(long extent) {
        if (generations.isLive(extent)) {
            for (int lane = 0; lane < lanes; lane++) {
                if (openSegment[lane] == Extent.segment(extent)) {
                    return lane;
                }
            }
        }
        return NOBODY;
    }

    /**
     * Frees the policy's next victim with all its blocks, those that are being filled included: one of them is sealed each
     * time. Whether there was one.
     */
    public boolean evictOldest() {
        sealOne();
        return victims.evictWhole();
    }

    /**
     * Seals an open segment, of each lane in turn. Without it, blocks in open segments would outlive all others while
     * refused claims fill and free sealed ones, and a full index would stay full.
     */
    private void sealOne() {
        for (int tried = 0; tried < openSegment.length; tried++) {
            int lane = sealNext;
            sealNext = lane + 1 == openSegment.length ? 0 : lane + 1;
            int segment = openSegment[lane];
            if (segment != NOBODY && pins.isFree(segment)) {
                victims.seal(segment, blocks[segment]);
                openSegment[lane] = NOBODY;
                return;
            }
        }
    }

    /**
     * How many blocks a segment has that nobody fills, copies into or has given up; 0 for any other. Their places stay what
     * they are while the segment is pinned. Under the same lock as claims.
     */
    public int restingBlocks(int segment) {
        return victims.isResting(segment) && pins.isFree(segment) ? blocks[segment] : 0;
    }

    /**
     * How many blocks a segment has that is open or rests, those that are being filled included; 0 for any other. Under the
     * same lock as claims.
     */
    public int heldBlocks(int segment) {
        for (int open : openSegment) {
            if (open == segment) {
                return blocks[segment];
            }
        }
        return victims.isResting(segment) ? blocks[segment] : 0;
    }

    /** The number of the use that a segment saw last; see {@link #nextUse}. */
    public long lastUse(int segment) {
        return use.lastUse(segment);
    }

    /** Where a block would lie that starts at a page of a segment's present life. */
    public long extentAt(int segment, int page) {
        return Extent.pack(segment, page, generations.current(segment));
    }

    /** Which of its segment's blocks lies at an extent; of a page on which none starts anything. The caller holds a pin. */
    public int listingNumber(long extent) {
        return Short.toUnsignedInt(listingOfPage.getShort(mapOffset(Extent.segment(extent), Extent.page(extent))));
    }

    // ---- moving used blocks ----

    /** Whether a victim waits whose used blocks are to be appended again. Any thread. */
    public boolean hasMoves() {
        return victims.hasMoves();
    }

    /**
     * Takes a victim whose used blocks are to be appended again, and pins it; one at a time.
     *
     * @return its number, to be given back with {@link #endMove}; -1 when none waits or one is being moved
     */
    public int beginMove() {
        return victims.beginMove();
    }

    /**
     * The first used block of a segment from a page on.
     *
     * @return its extent, or {@link Extent#NONE} when there is none
     */
    public long nextUsed(int segment, int fromPage) {
        int page = fromPage < segmentPages ? use.nextUsed(segment, fromPage) : NOBODY;
        return page == NOBODY ? Extent.NONE : Extent.pack(segment, page, generations.current(segment));
    }

    /** Gives a victim up whose used blocks lie elsewhere now, but for some. */
    public void endMove(int segment, int usedBlocksLeft) {
        victims.endMove(segment, usedBlocksLeft);
    }

    /**
     * Pins the segment of an extent, then checks its generation (partner: giving up raises, then checks pins).
     *
     * @return false when the extent is stale: nothing is pinned then
     */
    public boolean pin(long extent) {
        return pins.pin(extent, generations);
    }

    @Override
    public void unpin(long extent) {
        pins.remove(Extent.segment(extent));
    }

    @Override
    public long payloadOffset(long extent) {
        return (long) Extent.segment(extent) * segmentBytes + (long) Extent.page(extent) * MemoryRegion.PAGE_BYTES;
    }

    @Override
    public BlockListing listing(long extent, BlockListing into) {
        int segment = Extent.segment(extent);
        int number = Short.toUnsignedInt(listingOfPage.getShort(mapOffset(segment, Extent.page(extent))));
        return into.wrap(listings, ((long) segment * segmentPages + number) * BlockListing.BYTES);
    }

    private long mapOffset(int segment, int page) {
        return ((long) segment * segmentPages + page) * Short.BYTES;
    }

    /** Frees the pool; nobody may read it any more. */
    @Override
    public void close() {
        memory.close();
        listings.close();
        listingOfPage.close();
        generations.close();
        pins.close();
        use.close();
    }
}
