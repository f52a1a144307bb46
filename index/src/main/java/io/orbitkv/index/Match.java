package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.Tier;
import java.util.Arrays;
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

    private static final int PAGE_SHIFT = Long.numberOfTrailingZeros(~Runs.SEGMENT_AND_GENERATION);
    private static final int PAGE_MASK = Extent.PAGES_MAX - 1;

    /** Pages of each block, as a run holds them. */
    final int[] pages;

    /** Host and NVMe extent of each block that turns, one after the other; stale ones are {@link Extent#NONE}. */
    final long[] extents;

    /** How many blocks turn, of those matched up to now. */
    int turned;

    /**
     * A bit a block: set where it turns, as {@link Runs} has it, and at the first block that came from each run. So of 64
     * consecutive blocks at least one turns.
     */
    private final long[] turns;

    /** How many blocks turn before each word of the turns. */
    private final int[] turnsBefore;

    /** Bytes and checksum of each block; null where nobody asks for them. */
    final long[] sizes;

    /** The caller's keys of the match under way, so that the hot loop sees one class of buffer whatever it was given. */
    final UnsafeBuffer keys = new UnsafeBuffer(0, 0);

    /** Working room of {@link Matcher}: hashes, slots, places of the look-ups under way. */
    final long[] hashes = new long[AHEAD_MAX];

    final long[] slots = new long[AHEAD_MAX];
    final long[] places = new long[AHEAD_MAX];

    /** Of the runs fetched: how many blocks, whose bit 0 is in the turns, the tag of the last, and when that was true. */
    final int[] fetched = new int[AHEAD_MAX];

    final long[] fetchedTurns = new long[AHEAD_MAX];
    final long[] lastTags = new long[AHEAD_MAX];
    final long[] sequences = new long[AHEAD_MAX];
    final long[] lives = new long[AHEAD_MAX];

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
        this.pages = new int[capacity];
        this.extents = new long[2 * capacity];
        this.turns = new long[word(capacity) + 2];
        this.turnsBefore = new int[turns.length];
        this.sizes = withSizes ? new long[capacity] : null;
    }

    /**
     * Creates an empty match that holds extents only, for who wants to know where blocks lie: less memory is read for
     * each.
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
        Arrays.fill(turns, 0, word(count) + 2, 0);
        turned = 0;
        length = 0;
    }

    /** Takes in up to 64 blocks more: which of them turn. Their extents are there already. */
    void addTurns(int block, long bits) {
        int word = word(block);
        turns[word] |= bits << block;
        turns[word + 1] |= bits >>> 1 >>> ~block;
        turned += Long.bitCount(bits);
        turnsBefore[word + 1] = turned - Long.bitCount(turns[word + 1]);
    }

    private static int word(int block) {
        return block >>> 6;
    }

    /** The number of the last turn up to a matched block. */
    private int turnOf(int block) {
        int word = word(block);
        return turnsBefore[word] + Long.bitCount(turns[word] << ~block) - 1;
    }

    /** The first block from one on that turns, or the length. */
    private int nextTurning(int block) {
        int word = word(block);
        long from = turns[word] >>> block << block;
        while (from == 0 && word < word(length)) {
            from = turns[++word];
        }
        return from == 0 ? length : (word << 6) + Long.numberOfTrailingZeros(from);
    }

    private long extentAt(int turn, Tier tier) {
        return extents[2 * turn + (tier == Tier.HOST ? 0 : 1)];
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
        long atTurn = extentAt(turnOf(i), tier);
        long page = pages[i] >>> (tier == Tier.HOST ? 0 : Short.SIZE) & PAGE_MASK;
        return atTurn == Extent.NONE ? Extent.NONE : atTurn & Runs.SEGMENT_AND_GENERATION | page << PAGE_SHIFT;
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
        return blocks(tier, 0, length);
    }

    /**
     * How many blocks of a part of the match lie in a tier; a block that lies in both counts in both.
     *
     * @param tier the tier
     * @param from the first block of the part
     * @param to the block behind its last, at most {@link #length()}
     * @return 0 to {@code to - from}
     */
    public int blocks(Tier tier, int from, int to) {
        Objects.checkFromToIndex(from, to, length);
        int blocks = 0;
        int turn = from == to ? 0 : turnOf(from);
        for (int block = from; block < to; turn++) {
            int next = Math.min(to, nextTurning(block + 1));
            blocks += extentAt(turn, tier) == Extent.NONE ? 0 : next - block;
            block = next;
        }
        return blocks;
    }
}
