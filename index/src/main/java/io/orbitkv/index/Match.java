package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.Tier;
import java.util.Objects;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The answer of {@link PrefixIndex#match}: for each matched block its extents, bytes and checksum. Made once and
 * filled again and again.
 *
 * <p>Not thread-safe: one caller at a time.
 */
public final class Match {
    /** Most blocks of a match: 32 bytes of key each make less than an int's worth. */
    public static final int CAPACITY_MAX = 1 << 24;

    /** Look-ups in flight at once, so that their cache misses overlap; a core keeps about this many open. */
    static final int AHEAD_MAX = 16;

    /** Longs of a row: as a run holds a block, see {@link Runs}. */
    static final int ROW_LONGS = Runs.BLOCK_BYTES / Long.BYTES;

    static final int ROW_TAG = Runs.TAG / Long.BYTES;
    static final int ROW_HOST = Runs.HOST / Long.BYTES;
    static final int ROW_NVME = Runs.NVME / Long.BYTES;

    /** A row a block, copied from its run as it is, but for stale extents. */
    final long[] rows;

    /** Bytes and checksum of each block; null where nobody asks for them. */
    final long[] sizes;

    /** The caller's keys of the match under way, so that the hot loop sees one class of buffer whatever it was given. */
    final UnsafeBuffer keys = new UnsafeBuffer(0, 0);

    /** Working room of {@link Matcher}: hashes, slots, places of the look-ups under way. */
    final long[] hashes = new long[AHEAD_MAX];

    final long[] slots = new long[AHEAD_MAX];
    final long[] places = new long[AHEAD_MAX];
    final int[] fetched = new int[AHEAD_MAX];

    /** Where extents of the runs fetched turn to another segment: bit 0 is the first row fetched. */
    final long[] hostTurns = new long[AHEAD_MAX];

    final long[] nvmeTurns = new long[AHEAD_MAX];

    /** Only ever added to, so that look-ups whose result nobody needs yet are not optimised away. */
    long touched;

    private final int capacity;
    int length;

    /**
     * Creates an empty match.
     *
     * @param capacity most blocks that it can hold, 1 to {@link #CAPACITY_MAX}
     */
    public Match(int capacity) {
        this(capacity, true);
    }

    private Match(int capacity, boolean withSizes) {
        if (capacity < 1 || capacity > CAPACITY_MAX) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "a match has a capacity of 1 to " + CAPACITY_MAX + " blocks, asked for " + capacity);
        }
        this.capacity = capacity;
        this.rows = new long[capacity * ROW_LONGS];
        this.sizes = withSizes ? new long[capacity] : null;
    }

    /**
     * Creates an empty match that holds extents only, for who wants to know where blocks lie: a fifth less memory is
     * read for each.
     *
     * @param capacity most blocks that it can hold, 1 to {@link #CAPACITY_MAX}
     * @return a match whose {@link #bytes} and {@link #checksum} must not be asked for
     */
    public static Match ofExtents(int capacity) {
        return new Match(capacity, false);
    }

    void begin(DirectBuffer allKeys, int keysOffset, int count) {
        if (count < 0 || count > capacity) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "cannot match " + count + " blocks into a match of capacity " + capacity
                            + "; ask for 0 to that many");
        }
        long keysBytes = (long) count * PrefixIndex.KEY_BYTES;
        if (keysOffset < 0 || keysBytes > allKeys.capacity() - keysOffset) {
            throw new OrbitKvException(
                    ErrorCode.BAD_BUFFER,
                    count + " keys of " + PrefixIndex.KEY_BYTES + " bytes at offset " + keysOffset
                            + " do not lie within a buffer of " + allKeys.capacity() + " bytes");
        }
        keys.wrap(allKeys, keysOffset, (int) keysBytes);
        length = 0;
    }

    /** Most blocks that it can hold. */
    public int capacity() {
        return capacity;
    }

    /** Blocks matched: extents, bytes and checksums are defined below this index. */
    public int length() {
        return length;
    }

    /**
     * Where a block lies in a tier.
     *
     * @param tier the tier
     * @param i the block, 0 to {@link #length()} - 1
     * @return its extent, {@link Extent#NONE} when it is not in that tier
     */
    public long extent(Tier tier, int i) {
        Objects.checkIndex(i, length);
        return rows[i * ROW_LONGS + (tier == Tier.HOST ? ROW_HOST : ROW_NVME)];
    }

    /** Stored bytes of a block. */
    public int bytes(int i) {
        Objects.checkIndex(i, length);
        return (int) sizes[i];
    }

    /** Checksum of a block, over its key and its stored bytes. */
    public int checksum(int i) {
        Objects.checkIndex(i, length);
        return (int) (sizes[i] >>> 32);
    }

    /** How many of the matched blocks lie in a tier; a block that lies in both counts in both. */
    public int blocks(Tier tier) {
        int column = tier == Tier.HOST ? ROW_HOST : ROW_NVME;
        int blocks = 0;
        for (int i = 0; i < length; i++) {
            blocks += rows[i * ROW_LONGS + column] == Extent.NONE ? 0 : 1;
        }
        return blocks;
    }
}
