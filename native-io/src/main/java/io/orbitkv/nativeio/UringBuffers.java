package io.orbitkv.nativeio;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The memory that a ring's kernel side knows already (fixed buffers), in pieces of at most 1 GiB, which is the kernel's bound
 * of one buffer.
 *
 * <p>A piece becomes known with the first transfer from or to it. To make one known pins it, and takes memory for what was
 * never touched of it: a pool of 1 GiB at once took the log's thread 0.3 to 2 s of every start, and a pool that is to be used
 * in part only would be taken whole.
 */
final class UringBuffers {
    private static final Logger LOG = LoggerFactory.getLogger(UringBuffers.class);

    /** One warning a process: every ring would say the same. */
    private static final AtomicBoolean WARNED = new AtomicBoolean();

    /** Pieces of all regions together. */
    static final int PIECES_MAX = 1024;

    /** Pieces of one region, while that keeps them below 1 GiB. */
    private static final int REGION_PIECES_MAX = 512;

    /** Regions of a ring: the host pool, staging and a few of callers. */
    static final int REGIONS_MAX = 64;

    static final int NONE = -1;

    private static final int PAGE_SHIFT = 12;
    private static final int PIECE_SHIFT_MAX = 30;

    /** Whether the kernel knows a piece. */
    private enum Piece {
        UNTOUCHED,
        KNOWN,
        REFUSED
    }

    private final Uring ring;
    private final MemoryRegion[] regions = new MemoryRegion[REGIONS_MAX];
    private final long[] start = new long[REGIONS_MAX];
    private final long[] bytes = new long[REGIONS_MAX];
    private final int[] firstPiece = new int[REGIONS_MAX];
    private final int[] pieceShift = new int[REGIONS_MAX];
    private final Piece[] states = new Piece[PIECES_MAX];
    private int regionCount;
    private int pieceCount;
    private boolean tableMade;

    UringBuffers(Uring ring) {
        this.ring = ring;
    }

    /** See {@link IoRing#register(MemoryRegion, long)}. */
    boolean register(MemoryRegion region, long unitBytes) {
        long length = region.bytes();
        long address = region.address(0, length);
        if (length > 0 && regionOf(address, 1) != NONE) {
            return true; // known already
        }
        int shift = PAGE_SHIFT;
        while (shift < PIECE_SHIFT_MAX && (1L << shift < unitBytes || pieces(length, shift) > REGION_PIECES_MAX)) {
            shift++;
        }
        long pieces = pieces(length, shift);
        if (length == 0 || regionCount == REGIONS_MAX || pieces > PIECES_MAX - pieceCount) {
            return refused(region, "a ring takes at most " + REGIONS_MAX + " regions in " + PIECES_MAX + " pieces");
        }
        if (!tableMade) {
            int result = ring.registerBuffers(PIECES_MAX);
            if (result < 0) {
                return refused(region, Errno.text(-result));
            }
            tableMade = true;
        }
        Arrays.fill(states, pieceCount, pieceCount + (int) pieces, Piece.UNTOUCHED);
        regions[regionCount] = region;
        start[regionCount] = address;
        bytes[regionCount] = length;
        firstPiece[regionCount] = pieceCount;
        pieceShift[regionCount] = shift;
        regionCount++;
        pieceCount += (int) pieces;
        return true;
    }

    private static long pieces(long length, int shift) {
        return length + (1L << shift) - 1 >> shift;
    }

    private boolean isKnown(int region, int piece) {
        int number = firstPiece[region] + piece;
        if (states[number] == Piece.UNTOUCHED) {
            states[number] = touch(region, piece) ? Piece.KNOWN : Piece.REFUSED;
        }
        return states[number] == Piece.KNOWN;
    }

    private boolean touch(int region, int piece) {
        long offset = (long) piece << pieceShift[region];
        long length = Math.min(1L << pieceShift[region], bytes[region] - offset);
        int result = ring.setBuffer(firstPiece[region] + piece, start[region] + offset, length);
        return result >= 0
                || refused(
                        regions[region],
                        Errno.text(-result)
                                + (result == -LibC.ENOMEM
                                        ? "; raise the limit on locked memory (ulimit -l, LimitMEMLOCK), now "
                                                + Machine.lockedBytesMax() + " bytes"
                                        : ""));
    }

    private static boolean refused(MemoryRegion region, String why) {
        if (WARNED.compareAndSet(false, true)) {
            LOG.warn(
                    "{} cannot be registered for I/O: {}. Transfers work without, at some more CPU time each",
                    region,
                    why);
        }
        return false;
    }

    /** The piece in which a transfer lies wholly, if the kernel knows it, or {@link #NONE}. */
    int pieceFor(long address, int length) {
        int region = regionOf(address, length);
        if (region == NONE) {
            return NONE;
        }
        long offset = address - start[region];
        int piece = (int) (offset >> pieceShift[region]);
        boolean crosses = offset + length - 1 >> pieceShift[region] != piece;
        return !crosses && isKnown(region, piece) ? firstPiece[region] + piece : NONE;
    }

    private int regionOf(long address, int length) {
        for (int i = 0; i < regionCount; i++) {
            long offset = address - start[i];
            if (offset >= 0 && offset <= bytes[i] - length) {
                return i;
            }
        }
        return NONE;
    }
}
