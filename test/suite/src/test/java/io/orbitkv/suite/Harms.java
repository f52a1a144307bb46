package io.orbitkv.suite;

import io.orbitkv.kit.Fault;
import io.orbitkv.kit.Harm;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.suite.CrashLedger.Claim;
import java.util.List;
import java.util.function.Supplier;

/**
 * Which blocks a lying drive may have cost: those whose payload it harmed, and those whose listing it harmed. A loss
 * anywhere else is the store's fault. Not thread-safe.
 */
final class Harms {
    private static final int PAGE_BYTES = 4096;
    private static final long FILE_BYTES_MAX = 64L << 20;

    /** How the first four bytes of our header pages read as a little-endian number: OKVB and OKVS. */
    private static final int BATCH = 0x42564b4f;

    private static final int SEGMENT = 0x53564b4f;

    private final Supplier<List<SimulatedFolder>> folders;
    private final int segmentBytes;

    /** Looks into the folders of a store, in the order of their numbers. */
    Harms(Supplier<List<SimulatedFolder>> folders, int segmentBytes) {
        this.folders = folders;
        this.segmentBytes = segmentBytes;
    }

    /** Whether the drive may have cost the block of a claim. */
    boolean excuse(Claim claim, int blockBytes) {
        return excuse(claim.segment, claim.page, blockBytes);
    }

    /** The same of a block by its place; a page of -1 is anywhere in its segment. */
    boolean excuse(int segment, int page, int blockBytes) {
        List<SimulatedFolder> all = folders.get();
        long perFile = Math.max(1, FILE_BYTES_MAX / segmentBytes);
        int count = all.size();
        long inFolder = segment / count;
        String file = String.format("%012d.seg", inFolder / perFile * count + segment % count);
        int base = (int) (inFolder % perFile * (segmentBytes / PAGE_BYTES));
        for (Harm harm : all.get(segment % count).harms("segments/" + file)) {
            if (concerns(harm, base, page, blockBytes)) {
                return true;
            }
        }
        return false;
    }

    private boolean concerns(Harm harm, int base, int page, int blockBytes) {
        int within = harm.page() - base;
        if (within < 0 || within >= segmentBytes / PAGE_BYTES) {
            return false;
        }
        int kind = (int) harm.was();
        boolean ofPayload = within >= page && within < page + (blockBytes + PAGE_BYTES - 1) / PAGE_BYTES;
        return ofPayload || within == 0 || kind == BATCH || kind == SEGMENT || isStale(harm, within);
    }

    /** A footer that never came leaves its segment to its batches; one that lies over a batch is the batch's harm. */
    private boolean isStale(Harm harm, int within) {
        return harm.fault() == Fault.MISDIRECTED_WRITE
                && within < segmentBytes / PAGE_BYTES - 1
                && isOurs(harm.first());
    }

    private static boolean isOurs(long first) {
        return ((int) first & 0xffffff) == (BATCH & 0xffffff);
    }
}
