package io.orbitkv.kit;

import io.orbitkv.nativeio.MemoryRegion;

/**
 * The payload of a block as a function of its key and a seed, so that any process can tell whether it got the right
 * bytes without having stored them.
 *
 * <p>Every eight bytes depend on key, seed and position: a payload of another key, one that is shifted, stale (of
 * another seed), torn or rotten differs somewhere, and nearly everywhere. Safe from any thread, allocates nothing.
 */
public final class Payload {
    /** What {@link #firstDifference} answers when all bytes are right. */
    public static final long NO_DIFFERENCE = -1;

    private static final long GOLDEN = 0x9e3779b97f4a7c15L;
    private static final long FACTOR = 0xbf58476d1ce4e5b9L;

    private static final int STRIDE_BYTES = 4 * Long.BYTES;

    private Payload() {}

    /**
     * Writes a payload.
     *
     * @param region where to
     * @param offset its first byte there
     * @param bytes its length
     * @param key the first eight bytes of the block's key
     * @param seed of the run
     */
    public static void fill(MemoryRegion region, long offset, long bytes, long key, long seed) {
        long word = start(key, seed);
        long end = offset + bytes;
        long at = offset;
        for (; at <= end - STRIDE_BYTES; at += STRIDE_BYTES) { // four independent words: the CPU overlaps them
            long second = word + GOLDEN;
            long third = second + GOLDEN;
            long fourth = third + GOLDEN;
            region.putLong(at, spread(word));
            region.putLong(at + 8, spread(second));
            region.putLong(at + 16, spread(third));
            region.putLong(at + 24, spread(fourth));
            word = fourth + GOLDEN;
        }
        for (; at <= end - Long.BYTES; at += Long.BYTES) {
            region.putLong(at, spread(word));
            word += GOLDEN;
        }
        for (long last = spread(word); at < end; at++, last >>>= Byte.SIZE) {
            region.putByte(at, (byte) last);
        }
    }

    /**
     * Compares memory with the payload that belongs there; see {@link #fill}.
     *
     * @return the first byte that differs, counted from the payload's start, or {@link #NO_DIFFERENCE}
     */
    public static long firstDifference(MemoryRegion region, long offset, long bytes, long key, long seed) {
        long word = start(key, seed);
        long end = offset + bytes;
        long at = offset;
        for (; at <= end - STRIDE_BYTES; at += STRIDE_BYTES) {
            long second = word + GOLDEN;
            long third = second + GOLDEN;
            long fourth = third + GOLDEN;
            long difference = region.getLong(at) ^ spread(word);
            difference |= region.getLong(at + 8) ^ spread(second);
            difference |= region.getLong(at + 16) ^ spread(third);
            difference |= region.getLong(at + 24) ^ spread(fourth);
            if (difference != 0) {
                break; // the loop below finds the byte
            }
            word = fourth + GOLDEN;
        }
        for (; at <= end - Long.BYTES; at += Long.BYTES) {
            long difference = region.getLong(at) ^ spread(word);
            if (difference != 0) {
                return at - offset + Long.numberOfTrailingZeros(difference) / Byte.SIZE;
            }
            word += GOLDEN;
        }
        for (long last = spread(word); at < end; at++, last >>>= Byte.SIZE) {
            if (region.getByte(at) != (byte) last) {
                return at - offset;
            }
        }
        return NO_DIFFERENCE;
    }

    private static long start(long key, long seed) {
        return Gen.mix(Gen.mix(key + GOLDEN) ^ seed);
    }

    /** One multiplication and two shifts: a bijection, so that no two positions hold the same eight bytes. */
    private static long spread(long word) {
        long z = (word ^ (word >>> 30)) * FACTOR;
        return z ^ (z >>> 27);
    }
}
