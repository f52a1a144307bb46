package io.orbitkv.tiers;

/**
 * What a transfer was for, packed into the number that the ring hands back.
 *
 * <pre>
 *  63     56 55         32 31          0
 * +---------+-------------+-------------+
 * | purpose | major (24)  | minor (32)  |
 * +---------+-------------+-------------+
 * </pre>
 */
final class Token {
    /** Payloads of a lane's batch. Major: the lane. */
    static final int PAYLOAD = 1;
    /** Header page of a lane's batch. Major: the lane. */
    static final int BATCH_HEADER = 2;
    /** Footer of a lane's segment. Major: the lane. */
    static final int FOOTER = 3;
    /** Header page of a segment that is prepared. */
    static final int SEGMENT_HEADER = 4;
    /** Flush of a file with prepared segments. */
    static final int PREPARE_FLUSH = 5;
    /** Flush of a file. */
    static final int FLUSH = 6;
    /** A read of a batch. Major: the batch's slot. Minor: the read. */
    static final int READ = 7;

    /** The footer of a victim whose used blocks are appended again. Major: the mover's slot. */
    static final int MOVE_FOOTER = 8;
    /** A used block of a victim. Major: the mover's slot. Minor: which block. */
    static final int MOVE_PAYLOAD = 9;

    /** A page that is read or written to see whether the drive is well. */
    static final int PROBE = 10;

    private static final int PURPOSE_SHIFT = 56;
    private static final int MAJOR_SHIFT = 32;
    private static final int MAJOR_MASK = (1 << 24) - 1;

    private Token() {}

    static long pack(int purpose, int major, int minor) {
        return (long) purpose << PURPOSE_SHIFT | (long) major << MAJOR_SHIFT | minor;
    }

    static int purpose(long token) {
        return (int) (token >>> PURPOSE_SHIFT);
    }

    static int major(long token) {
        return (int) (token >>> MAJOR_SHIFT) & MAJOR_MASK;
    }

    static int minor(long token) {
        return (int) token;
    }
}
