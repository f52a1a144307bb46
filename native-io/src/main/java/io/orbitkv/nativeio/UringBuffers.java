package io.orbitkv.nativeio;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The memory that a ring's kernel side knows already (fixed buffers), in pieces of at most 1 GiB, which is the kernel's
 * bound of one buffer.
 */
final class UringBuffers {
    private static final Logger LOG = LoggerFactory.getLogger(UringBuffers.class);

    /** One warning a process: every ring would say the same. */
    private static final AtomicBoolean WARNED = new AtomicBoolean();

    /** Pieces of all regions together: 1 TiB of memory in 64 KiB of the kernel's. */
    static final int PIECES_MAX = 1024;

    /** Regions of a ring: the host pool, staging and a few of callers. */
    static final int REGIONS_MAX = 64;

    static final int NONE = -1;

    private static final int PIECE_SHIFT = 30;
    private static final long PIECE_BYTES = 1L << PIECE_SHIFT;

    private final Uring ring;
    private final MemoryRegion[] regions = new MemoryRegion[REGIONS_MAX];
    private final long[] start = new long[REGIONS_MAX];
    private final long[] bytes = new long[REGIONS_MAX];
    private final int[] firstPiece = new int[REGIONS_MAX];
    private int regionCount;
    private int pieceCount;
    private boolean tableMade;

    UringBuffers(Uring ring) {
        this.ring = ring;
    }

    /** See {@link IoRing#register(MemoryRegion, long)}. */
    boolean register(MemoryRegion region, long upTo) {
        int known = find(region);
        if (known == NONE && region.bytes() > 0 && pieceFor(region.address(0, 1), 1) != NONE) {
            return true; // a part of another one
        }
        if (known == NONE) {
            int pieces = (int) ((region.bytes() + PIECE_BYTES - 1) >> PIECE_SHIFT);
            if (region.bytes() == 0 || regionCount == REGIONS_MAX || pieces > PIECES_MAX - pieceCount) {
                return refused(
                        region, "a ring takes at most " + REGIONS_MAX + " regions of together " + PIECES_MAX + " GiB");
            }
            known = regionCount++;
            regions[known] = region;
            start[known] = region.address(0, region.bytes());
            bytes[known] = 0;
            firstPiece[known] = pieceCount;
            pieceCount += pieces;
        }
        return registerMore(known, Math.min(upTo, region.bytes()));
    }

    private int find(MemoryRegion region) {
        for (int i = 0; i < regionCount; i++) {
            if (regions[i] == region) {
                return i;
            }
        }
        return NONE;
    }

    /** Registers whole pieces; the last one of a region may be shorter. */
    private boolean registerMore(int known, long upTo) {
        MemoryRegion region = regions[known];
        while (bytes[known] < upTo) {
            long end = Math.min(bytes[known] + PIECE_BYTES, region.bytes());
            if (end > upTo) {
                return true;
            }
            int result = setBuffer(known, end);
            if (result < 0) {
                return refused(
                        region,
                        Errno.text(-result)
                                + (result == -LibC.ENOMEM
                                        ? "; raise the limit on locked memory (ulimit -l, LimitMEMLOCK), now "
                                                + Machine.lockedBytesMax() + " bytes"
                                        : ""));
            }
            bytes[known] = end;
        }
        return true;
    }

    private int setBuffer(int known, long end) {
        if (!tableMade) {
            int result = ring.registerBuffers(PIECES_MAX);
            if (result < 0) {
                return result;
            }
            tableMade = true;
        }
        int piece = firstPiece[known] + (int) (bytes[known] >> PIECE_SHIFT);
        return ring.setBuffer(piece, start[known] + bytes[known], end - bytes[known]);
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

    /** The registered piece in which a transfer lies wholly, or {@link #NONE}. */
    int pieceFor(long address, int length) {
        for (int i = 0; i < regionCount; i++) {
            long offset = address - start[i];
            if (offset >= 0 && offset <= bytes[i] - length) {
                long piece = offset >> PIECE_SHIFT;
                return (offset + length - 1) >> PIECE_SHIFT == piece ? firstPiece[i] + (int) piece : NONE;
            }
        }
        return NONE;
    }
}
