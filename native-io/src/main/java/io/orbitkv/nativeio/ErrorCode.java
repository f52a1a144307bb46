package io.orbitkv.nativeio;

/**
 * Every error that OrbitKV reports, by number. {@code docs/operations.md} explains each; numbers are never reused.
 *
 * <p>The hundreds say where: 1 machine and native I/O, 2 data folder, 3 format and corruption, 4 catalog,
 * 5 index, 6 tiers, 7 store API, 8 command line, 10 manager: these travel to its clients.
 */
public enum ErrorCode {
    /** A system call failed in a way that nobody expected. */
    SYSTEM_CALL(101, Category.ENVIRONMENT),
    /** The machine lacks what was asked for (huge pages, io_uring, memory). */
    NOT_AVAILABLE(102, Category.ENVIRONMENT),
    /** Not enough native memory, or the limit on locked memory is too low. */
    OUT_OF_MEMORY(103, Category.ENVIRONMENT),
    /** An access outside a memory region, or to a closed one: a bug in the caller. */
    OUT_OF_BOUNDS(104, Category.BUG),
    /** A drive answered a read, write or flush with an error. */
    DRIVE(105, Category.ENVIRONMENT),
    /** Position, address or length is not a multiple of the page. */
    MISALIGNED(106, Category.BUG),

    /** The data folder is missing, not a folder, or cannot be written. */
    FOLDER_UNUSABLE(201, Category.ENVIRONMENT),
    /** Another process holds the data folder. */
    FOLDER_IN_USE(202, Category.ENVIRONMENT),
    /** The file system has too little room for the cap. */
    NO_SPACE(203, Category.ENVIRONMENT),
    /** The folder was written by another format version. */
    OTHER_VERSION(204, Category.ENVIRONMENT),
    /** A part of the folder belongs to another store. */
    OTHER_STORE(205, Category.ENVIRONMENT),
    /** The folder was made with other sizes than the options ask for. */
    OTHER_GEOMETRY(206, Category.ENVIRONMENT),
    /** Something in the folder that OrbitKV did not put there. */
    FOREIGN_FILE(207, Category.ENVIRONMENT),
    /** A folder of a store of several is missing, a copy of another one, or missed a part of the store's life. */
    FOLDER_SET(208, Category.ENVIRONMENT),

    /** A segment's header page does not check out. */
    SEGMENT_HEADER(301, Category.PROBLEM),
    /** A batch header page does not check out. */
    BATCH_HEADER(302, Category.PROBLEM),
    /** A segment's footer does not check out. */
    FOOTER(303, Category.PROBLEM),
    /** A block's stored bytes do not match their checksum. */
    BLOCK_CHECKSUM(304, Category.PROBLEM),
    /** The snapshot or its marker does not check out. */
    SNAPSHOT(305, Category.PROBLEM),
    /** Pages of the log do not add up: indexed + dead + overhead + free is not what was preallocated. */
    ACCOUNTING(306, Category.PROBLEM),
    /** A segment file is shorter than it was preallocated, or missing. */
    SEGMENT_FILE(307, Category.PROBLEM),

    /** The catalog cannot be read. */
    CATALOG(401, Category.ENVIRONMENT),
    /** The catalog's preallocated file is full. */
    CATALOG_FULL(402, Category.ENVIRONMENT),

    /** The index is full and what it evicts does not suffice. */
    INDEX_FULL(501, Category.PROBLEM),

    /** The cap is too small for the store's own files and a few segments. */
    CAP_TOO_SMALL(601, Category.USAGE),
    /** A block does not fit into a segment. */
    BLOCK_TOO_LARGE(602, Category.USAGE),
    /** The pool is too small for its open segments. */
    POOL_TOO_SMALL(603, Category.USAGE),

    /** The store, family or lease is closed. */
    CLOSED(701, Category.USAGE),
    /** An argument of the API is out of its range. */
    BAD_ARGUMENT(702, Category.USAGE),
    /** A source, destination or key buffer is too small or misplaced. */
    BAD_BUFFER(703, Category.USAGE),
    /** A family or namespace is incomplete, or contradicts what is stored under its id. */
    BAD_FAMILY(704, Category.USAGE),
    /** Too many leases, families or blocks at once. */
    OVER_LIMIT(705, Category.USAGE),

    /** A flag or value of the command line cannot be understood. */
    BAD_FLAG(801, Category.USAGE),
    /** A line of an input file cannot be understood. */
    BAD_INPUT_LINE(802, Category.USAGE),
    /** A run found wrong or lost blocks. */
    FOUND_PROBLEMS(803, Category.PROBLEM),
    /** A child process ended in a way that nobody asked for. */
    CHILD_PROCESS(804, Category.ENVIRONMENT),
    /** A state that cannot be: please report it. */
    BUG(900, Category.BUG),

    /** A frame that is no message of the protocol, or whose parts contradict each other. */
    BAD_FRAME(1001, Category.USAGE),
    /** Client and manager have no version of the protocol in common. */
    WIRE_VERSION(1002, Category.USAGE),
    /** A message that only counts after hello, or a second hello. */
    NOT_GREETED(1003, Category.USAGE),
    /** A handle of another life of the manager. */
    STALE_EPOCH(1004, Category.PROBLEM),
    /** A family that this session has not opened. */
    UNKNOWN_FAMILY(1005, Category.USAGE),
    /** A lease that was never given out. */
    UNKNOWN_LEASE(1006, Category.USAGE),
    /** A lease of another instance. */
    FOREIGN_LEASE(1007, Category.USAGE),
    /** A lease whose time is over. */
    LEASE_EXPIRED(1008, Category.PROBLEM),
    /** A lease that was released, done or superseded before. */
    LEASE_ENDED(1009, Category.PROBLEM),
    /** A save that this session has not begun, or has ended. */
    UNKNOWN_SAVE(1010, Category.USAGE),
    /** A query that this session has not asked, or has cancelled. */
    UNKNOWN_QUERY(1011, Category.USAGE),
    /** A place that does not lie within the session's staging memory. */
    OUTSIDE_STAGING(1012, Category.USAGE),
    /** A bound of the manager or of the session is reached. */
    BUSY(1013, Category.PROBLEM),
    /** The manager is stopping. */
    STOPPING(1014, Category.PROBLEM),
    /** A peer of another user. */
    FOREIGN_USER(1015, Category.ENVIRONMENT),
    /** The manager's socket can't be made, or a manager serves on it already. */
    SOCKET(1016, Category.ENVIRONMENT);

    /** Who has to act, and so which exit code a command ends with. */
    public enum Category {
        /** Data has problems that the command found: exit code 1. */
        PROBLEM(1),
        /** The caller asked for something impossible: exit code 2. */
        USAGE(2),
        /** The machine or the folder does not allow it: exit code 3. */
        ENVIRONMENT(3),
        /** Our mistake: exit code 4. */
        BUG(4);

        private final int exitCode;

        Category(int exitCode) {
            this.exitCode = exitCode;
        }

        /** The exit code of a command that fails so. */
        public int exitCode() {
            return exitCode;
        }
    }

    private final int number;
    private final Category category;

    ErrorCode(int number, Category category) {
        this.number = number;
        this.category = category;
    }

    /** The number after {@code OKV-}. */
    public int number() {
        return number;
    }

    /** Who has to act. */
    public Category category() {
        return category;
    }

    /** The code as messages show it, for example {@code OKV-202}. */
    public String label() {
        return "OKV-" + number;
    }
}
