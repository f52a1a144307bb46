package io.orbitkv.tiers;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;

/**
 * What an index needs of the listings of one segment, in columns: loops over arrays are compiled soon and run well even
 * before that, which counts where a process has just started and takes in millions of blocks.
 *
 * <p>Listings that follow one another in a prefix, which most do, need their parents and their namespace once: they form
 * a <i>chain</i>. Not thread-safe; the arrays grow to the longest listing taken.
 */
public final class ListedBlocks {
    /** Listings that are copied and taken apart with one call, while they are in the processor's first cache. */
    private static final int PIECE = 64;

    private static final int WORDS = BlockListing.BYTES / Long.BYTES;
    private static final int TAG = 1;
    private static final int PARENT = BlockListing.PARENT / Long.BYTES;
    private static final int ID64 = BlockListing.NAMESPACE_ID64 / Long.BYTES;
    private static final int EPOCH_AND_STORED = BlockListing.NAMESPACE_EPOCH / Long.BYTES;
    private static final int LOGICAL_AND_CHECKSUM = BlockListing.LOGICAL_BYTES / Long.BYTES;
    private static final int PAGE_AND_FLAGS = BlockListing.FIRST_PAGE / Long.BYTES;
    private static final int PAGE_MASK = Extent.PAGES_MAX - 1;
    private static final long HAS_PARENT = (long) BlockListing.FLAG_HAS_PARENT << 24;
    private static final long HIGH_HALF = -1L << Integer.SIZE;

    private final long[] words = new long[PIECE * WORDS];
    private long[] key0s = {};
    private long[] tags = {};
    private long[] extents = {};
    private long[] sizes = {};
    private boolean[] follows = {};
    private long lastId64;
    private int lastEpoch;

    /** Nothing was taken yet. */
    public ListedBlocks() {}

    /**
     * Takes the listings of a segment.
     *
     * @param region holds them, sound ones, back to back
     * @param offset where the first begins
     * @param count how many
     * @param segment the segment whose they are
     * @param generation of the extents that they get
     */
    public void take(MemoryRegion region, long offset, int count, int segment, int generation) {
        if (count > key0s.length) {
            key0s = new long[count];
            tags = new long[count];
            extents = new long[count];
            sizes = new long[count];
            follows = new boolean[count];
        }
        for (int at = 0; at < count; at += PIECE) {
            int piece = Math.min(PIECE, count - at);
            region.copyTo(offset + (long) at * BlockListing.BYTES, words, 0, piece * WORDS);
            takeApart(at, piece, segment, generation);
        }
        if (count > 0) {
            follows[0] = false;
        }
    }

    private void takeApart(int at, int piece, int segment, int generation) {
        long key0 = at == 0 ? 0 : key0s[at - 1];
        long tag = at == 0 ? 0 : tags[at - 1];
        long id64 = lastId64;
        int epoch = lastEpoch;
        for (int i = 0; i < piece; i++) {
            int w = i * WORDS;
            long place = words[w + PAGE_AND_FLAGS];
            long epochAndStored = words[w + EPOCH_AND_STORED];
            follows[at + i] = (place & HAS_PARENT) != 0
                    && words[w + PARENT] == key0
                    && words[w + PARENT + TAG] == tag
                    && words[w + ID64] == id64
                    && (int) epochAndStored == epoch;
            key0 = words[w];
            tag = words[w + TAG];
            id64 = words[w + ID64];
            epoch = (int) epochAndStored;
            key0s[at + i] = key0;
            tags[at + i] = tag;
            extents[at + i] = Extent.pack(segment, (int) place & PAGE_MASK, generation);
            sizes[at + i] = words[w + LOGICAL_AND_CHECKSUM] & HIGH_HALF | epochAndStored >>> Integer.SIZE;
        }
        lastId64 = id64;
        lastEpoch = epoch;
    }

    /** How many blocks from one on, itself included and {@code max} at most, each follow the one before in one prefix. */
    public int chain(int from, int max) {
        int i = from + 1;
        while (i < from + max && follows[i]) {
            i++;
        }
        return i - from;
    }

    /** Bytes 0 to 7 of the keys; for reading only, as all that follow. */
    public long[] key0s() {
        return key0s;
    }

    /** Bytes 8 to 15 of the keys. */
    public long[] tags() {
        return tags;
    }

    /** Extents. */
    public long[] extents() {
        return extents;
    }

    /** Stored bytes in the low half, the block's checksum in the high one. */
    public long[] sizes() {
        return sizes;
    }

    /** Pages of some blocks together. */
    public long pages(int from, int count) {
        long pages = 0;
        for (int i = from; i < from + count; i++) {
            pages += Extent.pages((int) sizes[i]);
        }
        return pages;
    }
}
