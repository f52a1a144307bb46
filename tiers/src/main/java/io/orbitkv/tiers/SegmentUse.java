package io.orbitkv.tiers;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What was used of the segments of a tier: a bit for each page, set where a used block begins, and when a segment was used
 * last, counted in uses.
 *
 * <pre>
 * bits    segment s: (segmentPages + 63) / 64 words    page p: bit p % 64 of word p / 64
 * last    segment s: 8 bytes
 * </pre>
 *
 * <p>{@link #mark} and {@link #nextUse} are safe from any thread, without lock or allocation. Bits are hints: one that is
 * lost between a reader and a clear costs a block its second chance, nothing else. All else is the tier's own.
 */
final class SegmentUse implements AutoCloseable {
    /** A reader that meets so many others at one word leaves the bit to them. */
    private static final int TRIES_MAX = 4;

    private final int words;
    private final MemoryRegion bits;
    private final MemoryRegion last;
    private final int[] blocks;
    private final AtomicLong uses = new AtomicLong();
    private final AtomicLong secondChances = new AtomicLong();

    SegmentUse(int segments, int segmentPages) {
        words = (segmentPages + Long.SIZE - 1) / Long.SIZE;
        blocks = new int[segments];
        bits = MemoryRegion.anonymous(
                (long) segments * words * Long.BYTES, PageKind.SMALL, MemoryPurpose.SEGMENT_TABLE);
        last = MemoryRegion.anonymous((long) segments * Long.BYTES, PageKind.SMALL, MemoryPurpose.SEGMENT_TABLE);
    }

    // ---- any thread ----

    /** A number for one use of any blocks, larger than those before. */
    long nextUse() {
        return uses.incrementAndGet();
    }

    /** Notes that a block was used, in the use of that number. */
    void mark(long extent, long use) {
        int segment = Extent.segment(extent);
        int page = Extent.page(extent);
        long offset = word(segment, page / Long.SIZE);
        long bit = 1L << page;
        for (int tries = 0; tries < TRIES_MAX; tries++) {
            long now = bits.getLongVolatile(offset);
            if ((now & bit) != 0 || bits.compareAndSetLong(offset, now, now | bit)) {
                break;
            }
        }
        long lastOffset = (long) segment * Long.BYTES;
        if (last.getLong(lastOffset) < use) {
            last.putLong(lastOffset, use); // the later of two readers may lose: they are neighbours in time
        }
    }

    // ---- the tier's own ----

    /** A segment was filled: it holds so many blocks, 0 where nobody knows, and is as young as if it were used now. */
    void seal(int segment, int blockCount) {
        blocks[segment] = blockCount;
        last.putLong((long) segment * Long.BYTES, nextUse());
    }

    /** Says how many blocks a segment holds. */
    void count(int segment, int blockCount) {
        blocks[segment] = blockCount;
    }

    /** A segment starts a new life. */
    void clear(int segment) {
        for (int i = 0; i < words; i++) {
            bits.putLongVolatile(word(segment, i), 0);
        }
    }

    /** A segment stays for another turn, of which its blocks have to be worthy anew. */
    void giveSecondChance(int segment) {
        clear(segment);
        secondChances.setRelease(secondChances.getPlain() + 1);
    }

    /** Segments that stayed so far. Any thread. */
    long secondChances() {
        return secondChances.getAcquire();
    }

    /** Whether at least half of a segment's blocks were used since its last turn. */
    boolean isHot(int segment) {
        return blocks[segment] > 0 && usedBlocks(segment) * 2 >= blocks[segment];
    }

    /** Blocks of a segment that were used since its last turn. */
    int usedBlocks(int segment) {
        int used = 0;
        for (int i = 0; i < words; i++) {
            used += Long.bitCount(bits.getLongVolatile(word(segment, i)));
        }
        return used;
    }

    boolean isUsed(int segment, int page) {
        return (bits.getLongVolatile(word(segment, page / Long.SIZE)) & 1L << page) != 0;
    }

    /** The first page from one on where a used block begins, or -1. */
    int nextUsed(int segment, int fromPage) {
        long mask = -1L << fromPage;
        for (int i = fromPage / Long.SIZE; i < words; i++) {
            long found = bits.getLongVolatile(word(segment, i)) & mask;
            if (found != 0) {
                return i * Long.SIZE + Long.numberOfTrailingZeros(found);
            }
            mask = -1L;
        }
        return -1;
    }

    /** The number of the use, or the seal, that a segment saw last. */
    long lastUse(int segment) {
        return last.getLong((long) segment * Long.BYTES);
    }

    private long word(int segment, int i) {
        return ((long) segment * words + i) * Long.BYTES;
    }

    @Override
    public void close() {
        bits.close();
        last.close();
    }
}
