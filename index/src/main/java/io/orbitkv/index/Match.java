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
    /** Look-ups in flight at once, so that their cache misses overlap; a core keeps about this many open. */
    static final int AHEAD_MAX = 16;

    final long[] host;
    final long[] nvme;
    final long[] sizes;

    /** The caller's keys of the match under way, so that the hot loop sees one class of buffer whatever it was given. */
    final UnsafeBuffer keys = new UnsafeBuffer(0, 0);

    /** Working room of {@link Matcher}: hashes, slots, places of the look-ups under way. */
    final long[] hashes = new long[AHEAD_MAX];

    final long[] slots = new long[AHEAD_MAX];
    final long[] places = new long[AHEAD_MAX];

    /** Only ever added to, so that look-ups whose result nobody needs yet are not optimised away. */
    long touched;

    int length;

    /**
     * Creates an empty match.
     *
     * @param capacity most blocks that it can hold, at least 1
     */
    public Match(int capacity) {
        if (capacity < 1) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "a match needs a capacity of at least 1 block, got " + capacity);
        }
        this.host = new long[capacity];
        this.nvme = new long[capacity];
        this.sizes = new long[capacity];
    }

    void begin(DirectBuffer allKeys, int keysOffset, int count) {
        if (count < 0 || count > host.length) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "cannot match " + count + " blocks into a match of capacity " + host.length
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
        return host.length;
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
        return tier == Tier.HOST ? host[i] : nvme[i];
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
        long[] extents = tier == Tier.HOST ? host : nvme;
        int blocks = 0;
        for (int i = 0; i < length; i++) {
            blocks += extents[i] == Extent.NONE ? 0 : 1;
        }
        return blocks;
    }
}
