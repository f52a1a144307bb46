package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;

/**
 * The numbers under which the index knows namespaces, handed out one per (namespace, epoch).
 *
 * <pre>
 * 8 bytes a number:  0 never used | 1 open | 2 + s retired when s sweeps had been completed
 * </pre>
 *
 * <p>A retired number is handed out again only after a sweep that began after it was retired has looked at every run.
 * Single writer; {@link #isOpen} by any thread.
 */
final class NamespaceNumbers implements AutoCloseable {
    static final int NUMBERS_MAX = 1 << 16;

    private static final long OPEN = 1;
    private static final long RETIRED = 2;

    /** The sweep under way when a number was retired doesn't count, the next one does. */
    private static final long SWEEPS_TO_FORGET = 2;

    private final MemoryRegion states =
            MemoryRegion.anonymous((long) NUMBERS_MAX * Long.BYTES, PageKind.SMALL, MemoryPurpose.INDEX);
    private int used;

    /** Where to look for a number that can be used again; numbers are retired rarely, so a walk is good enough. */
    private int searchFrom;

    int open(long completedSweeps) {
        if (used < NUMBERS_MAX) {
            states.putLongRelease((long) used * Long.BYTES, OPEN);
            return used++;
        }
        for (int n = 0; n < NUMBERS_MAX; n++) {
            int number = (searchFrom + n) & (NUMBERS_MAX - 1);
            long state = states.getLong((long) number * Long.BYTES);
            if (state >= RETIRED && state - RETIRED + SWEEPS_TO_FORGET <= completedSweeps) {
                searchFrom = number + 1;
                states.putLongRelease((long) number * Long.BYTES, OPEN);
                return number;
            }
        }
        throw new OrbitKvException(
                ErrorCode.OVER_LIMIT,
                "the index knows " + NUMBERS_MAX + " namespaces already, its limit; close families that are not needed,"
                        + " or wait until the index has swept those that were cleared");
    }

    void retire(int number, long completedSweeps) {
        requireOpen(number);
        states.putLongRelease((long) number * Long.BYTES, RETIRED + completedSweeps);
    }

    /** Whether a number is in use; partner: the releases in open and retire. */
    boolean isOpen(int number) {
        return number >= 0 && number < NUMBERS_MAX && states.getLongAcquire((long) number * Long.BYTES) == OPEN;
    }

    void requireOpen(int number) {
        if (!isOpen(number)) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "the index has no open namespace number " + number
                            + "; numbers come from newNamespace() and end with" + " retire()");
        }
    }

    @Override
    public void close() {
        states.close();
    }
}
