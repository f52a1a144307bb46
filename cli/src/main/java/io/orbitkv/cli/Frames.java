package io.orbitkv.cli;

/**
 * What the child of a demo or a replay says to its parent on stdout; numbers are big-endian, strings as {@code writeUTF}
 * makes them.
 *
 * <pre>
 * OPENED   kind string | open ns i64 | first query ns i64 | blocks indexed i64 | segment bytes i32
 * ANSWERS  count i32 | count times: state i8 (ABSENT, FOUND, WRONG, DAMAGED_BLOCK) | use-sequence now of the segment i64
 * REQUEST  request i32 | blocks i32 | host hits i32 | NVMe hits i32 | wrong i32 | saved i32 | dropped i32 | short i32
 *          | query ns i64 | restore ns i64 | save ns i64 | waited ns i64 | estimated restore ns i64 (0: nothing restored)
 * COUNTERS NVMe hit bytes i64 | drive read bytes i64 | log read bytes i64 | log written bytes i64
 *          | admitted bytes i64 | corrupt blocks i64 (all since the first request)
 * WRITTEN  key 32 | segment i32 | use-sequence i64
 * GONE     (nothing): a block is not on the drive though its position has passed: its segment was reused, or it was not
 *          admitted
 * DAMAGED  key 32: the store found the block damaged, and has forgotten it
 * UNREACHABLE  bytes i64 of blocks that are stored while one before them is not
 * DONE     (nothing): the store is closed
 * FAILED   error code string | message string
 * </pre>
 *
 * <p>The parent says on stdin: with {@code --check} first a count i32 and as many times key 32 | segment i32; then one
 * byte for each {@link #CREDIT_REQUESTS} requests that it has seen, so that a child never runs far ahead of it.
 */
final class Frames {
    static final int OPENED = 1;
    static final int ANSWERS = 2;
    static final int REQUEST = 3;
    static final int WRITTEN = 4;
    static final int GONE = 5;
    static final int DONE = 6;
    static final int FAILED = 7;
    static final int COUNTERS = 8;
    static final int DAMAGED = 9;
    static final int UNREACHABLE = 10;

    static final int ABSENT = 0;
    static final int FOUND = 1;
    static final int WRONG = 2;
    static final int DAMAGED_BLOCK = 3;

    /** Requests that one byte of credit stands for; a child may have two credits open beside those it works on. */
    static final int CREDIT_REQUESTS = 8;

    /** Answers in one frame at most. */
    static final int ANSWERS_MAX = 256;

    private Frames() {}
}
