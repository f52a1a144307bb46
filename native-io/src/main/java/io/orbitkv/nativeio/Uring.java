package io.orbitkv.nativeio;

import com.sun.jna.Native;

/**
 * One io_uring of the kernel: its setup, its two queues and its system calls, without any policy.
 *
 * <p>Numbers and offsets are those of {@code linux/io_uring.h} and of io_uring_setup(2), io_uring_enter(2),
 * io_uring_register(2). System call numbers are the same on every architecture that has come after 2019 and on x86-64.
 *
 * <p>Used by one thread at a time; with {@code SINGLE_ISSUER} by the one that enabled it.
 */
final class Uring implements AutoCloseable {
    private static final int SYS_SETUP = 425;
    private static final int SYS_ENTER = 426;
    private static final int SYS_REGISTER = 427;

    // io_uring_params.flags
    static final int SETUP_R_DISABLED = 1 << 6;
    static final int SETUP_SUBMIT_ALL = 1 << 7;
    static final int SETUP_COOP_TASKRUN = 1 << 8;
    static final int SETUP_TASKRUN_FLAG = 1 << 9;
    static final int SETUP_SINGLE_ISSUER = 1 << 12;
    static final int SETUP_DEFER_TASKRUN = 1 << 13;

    // io_uring_params.features
    private static final int FEATURE_SINGLE_MMAP = 1;
    private static final int FEATURE_NODROP = 1 << 1;
    private static final int FEATURE_EXT_ARG = 1 << 8;
    private static final int FEATURES_NEEDED = FEATURE_SINGLE_MMAP | FEATURE_NODROP | FEATURE_EXT_ARG;

    // struct io_uring_params, 120 bytes: sq_entries 0, cq_entries 4, flags 8, ..., features 20, ..., sq_off 40, cq_off
    // 80
    private static final int PARAMS_BYTES = 120;
    private static final int PARAMS_SQ_ENTRIES = 0;
    private static final int PARAMS_CQ_ENTRIES = 4;
    private static final int PARAMS_FLAGS = 8;
    private static final int PARAMS_FEATURES = 20;
    // struct io_sqring_offsets: head 0, tail 4, ring_mask 8, ring_entries 12, flags 16, dropped 20, array 24
    private static final int PARAMS_SQ_TAIL = 40 + 4;
    private static final int PARAMS_SQ_FLAGS = 40 + 16;
    private static final int PARAMS_SQ_ARRAY = 40 + 24;
    // struct io_cqring_offsets: head 0, tail 4, ring_mask 8, ring_entries 12, overflow 16, cqes 20
    private static final int PARAMS_CQ_HEAD = 80;
    private static final int PARAMS_CQ_TAIL = 80 + 4;
    private static final int PARAMS_CQ_CQES = 80 + 20;

    private static final long OFFSET_RING = 0; // IORING_OFF_SQ_RING: both queues, with FEATURE_SINGLE_MMAP
    private static final long OFFSET_SQES = 0x10000000L; // IORING_OFF_SQES

    // struct io_uring_sqe, 64 bytes
    private static final int SQE_BYTES = 64;
    private static final int SQE_OPCODE = 0; // u8, then flags u8, ioprio u16
    private static final int SQE_FD = 4; // s32
    private static final int SQE_OFF = 8; // u64
    private static final int SQE_ADDR = 16; // u64
    private static final int SQE_LEN = 24; // u32
    private static final int SQE_OP_FLAGS = 28; // u32: rw_flags, fsync_flags, poll32_events
    private static final int SQE_USER_DATA = 32; // u64
    private static final int SQE_BUF_INDEX = 40; // u16, then personality u16, file_index u32
    private static final int SQE_ADDR3 = 48; // u64, then 8 bytes of padding
    static final int SQE_FLAG_FIXED_FILE = 1;

    // struct io_uring_cqe, 16 bytes: user_data u64, res s32, flags u32
    private static final int CQE_BYTES = 16;
    private static final int CQE_RES = 8;

    // opcodes
    static final int OP_FSYNC = 3;
    static final int OP_READ_FIXED = 4;
    static final int OP_WRITE_FIXED = 5;
    static final int OP_POLL_ADD = 6;
    static final int OP_READ = 22;
    static final int OP_WRITE = 23;
    static final int FSYNC_DATASYNC = 1;
    static final int POLLIN = 1;

    // io_uring_enter(2)
    private static final int ENTER_GETEVENTS = 1;
    private static final int ENTER_EXT_ARG = 1 << 3;
    // struct io_uring_getevents_arg: sigmask u64, sigmask_sz u32, pad u32, ts u64; then our timespec: seconds,
    // nanoseconds
    private static final int ARG_BYTES = 24;
    private static final int ARG_TIMESPEC = 16;
    private static final long NANOS_PER_SECOND = 1_000_000_000L;

    // sq_ring->flags
    private static final int SQ_CQ_OVERFLOW = 1 << 1;
    private static final int SQ_TASKRUN = 1 << 2;

    // io_uring_register(2)
    private static final int REGISTER_UNREGISTER_BUFFERS = 1;
    private static final int REGISTER_FILES = 2;
    private static final int REGISTER_UNREGISTER_FILES = 3;
    private static final int REGISTER_FILES_UPDATE = 6;
    private static final int REGISTER_ENABLE_RINGS = 12;
    private static final int REGISTER_BUFFERS2 = 15;
    private static final int REGISTER_BUFFERS_UPDATE = 16;
    private static final int RSRC_REGISTER_SPARSE = 1;
    private static final int RSRC_ARG_BYTES = 32; // struct io_uring_rsrc_register and io_uring_rsrc_update2

    // Our scratch page for arguments.
    private static final int SCRATCH_BYTES = 4096;
    private static final int SCRATCH_PARAMS = 0;
    private static final int SCRATCH_ARG = 128;
    private static final int SCRATCH_TIMESPEC = SCRATCH_ARG + ARG_BYTES;
    private static final int SCRATCH_REGISTER = 256;
    private static final int SCRATCH_VECTOR = 320;
    private static final int SCRATCH_FILES = 1024;

    /** Files of a table that is registered at once; our scratch page has room for no more. */
    static final int FILES_MAX = (SCRATCH_BYTES - SCRATCH_FILES) / Integer.BYTES;

    private final int fd;
    private final int setupFlags;
    private final MemoryRegion scratch;
    private final MemoryRegion rings;
    private final MemoryRegion sqes;
    private final int sqMask;
    private final int sqTailOffset;
    private final int sqFlagsOffset;
    private final int cqMask;
    private final int cqHeadOffset;
    private final int cqTailOffset;
    private final int cqesOffset;
    private int sqTail;
    private int pending;
    private int cqHead;

    /**
     * Sets a ring up, with as many of the kernel's better ways as it has; it is disabled until {@link #enable()}.
     *
     * @throws OrbitKvException {@link ErrorCode#NOT_AVAILABLE} with the reason, for people
     */
    Uring(int entries) {
        this(entries, false);
    }

    /** A ring that threads may enter one after the other. */
    static Uring shared(int entries) {
        return new Uring(entries, true);
    }

    private Uring(int entries, boolean isShared) {
        MemoryRegion page = MemoryRegion.anonymous(SCRATCH_BYTES, PageKind.SMALL, MemoryPurpose.RING);
        int ringFd = -1;
        MemoryRegion mappedRings = null;
        MemoryRegion mappedSqes = null;
        boolean good = false;
        try {
            ringFd = setup(page, entries, isShared);
            int features = page.getInt(SCRATCH_PARAMS + PARAMS_FEATURES);
            if ((features & FEATURES_NEEDED) != FEATURES_NEEDED) {
                throw new OrbitKvException(
                        ErrorCode.NOT_AVAILABLE, "io_uring of this kernel is too old: 5.11 is the first that serves");
            }
            int sqEntries = page.getInt(SCRATCH_PARAMS + PARAMS_SQ_ENTRIES);
            int cqEntries = page.getInt(SCRATCH_PARAMS + PARAMS_CQ_ENTRIES);
            int array = page.getInt(SCRATCH_PARAMS + PARAMS_SQ_ARRAY);
            cqesOffset = page.getInt(SCRATCH_PARAMS + PARAMS_CQ_CQES);
            long ringBytes =
                    Math.max(array + (long) sqEntries * Integer.BYTES, cqesOffset + (long) cqEntries * CQE_BYTES);
            mappedRings = MemoryRegion.ofRing(ringFd, ringBytes, OFFSET_RING);
            mappedSqes = MemoryRegion.ofRing(ringFd, (long) sqEntries * SQE_BYTES, OFFSET_SQES);
            for (int i = 0; i < sqEntries; i++) {
                mappedRings.putInt(array + (long) i * Integer.BYTES, i); // place i always names request i
            }
            fd = ringFd;
            scratch = page;
            rings = mappedRings;
            sqes = mappedSqes;
            setupFlags = page.getInt(SCRATCH_PARAMS + PARAMS_FLAGS);
            sqMask = sqEntries - 1;
            cqMask = cqEntries - 1;
            sqTailOffset = page.getInt(SCRATCH_PARAMS + PARAMS_SQ_TAIL);
            sqFlagsOffset = page.getInt(SCRATCH_PARAMS + PARAMS_SQ_FLAGS);
            cqHeadOffset = page.getInt(SCRATCH_PARAMS + PARAMS_CQ_HEAD);
            cqTailOffset = page.getInt(SCRATCH_PARAMS + PARAMS_CQ_TAIL);
            good = true;
        } finally {
            if (!good) {
                free(ringFd, mappedSqes, mappedRings, page);
            }
        }
    }

    /** Tries the flags of newer kernels first; a kernel that doesn't know one answers EINVAL. */
    private static int setup(MemoryRegion page, int entries, boolean isShared) {
        int deferred = SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN | SETUP_TASKRUN_FLAG | SETUP_SUBMIT_ALL; // 6.1
        int cooperative = SETUP_COOP_TASKRUN | SETUP_TASKRUN_FLAG | SETUP_SUBMIT_ALL; // 5.19
        int[] choices = isShared ? new int[] {0} : new int[] {deferred, cooperative, 0};
        int errno = 0;
        for (int flags : choices) {
            page.fill(SCRATCH_PARAMS, PARAMS_BYTES, (byte) 0);
            page.putInt(SCRATCH_PARAMS + PARAMS_FLAGS, flags | SETUP_R_DISABLED);
            long result = LibC.syscall(SYS_SETUP, entries, page.address(SCRATCH_PARAMS, PARAMS_BYTES), 0, 0, 0, 0);
            if (result >= 0) {
                return (int) result;
            }
            errno = Native.getLastError();
            if (errno != LibC.EINVAL) {
                break;
            }
        }
        String why = switch (errno) {
            case LibC.ENOSYS -> "the kernel lacks it";
            case LibC.EPERM -> "a container's seccomp profile or sysctl kernel.io_uring_disabled forbids it";
            case LibC.ENOMEM -> "the limit on locked memory is too low (ulimit -l, LimitMEMLOCK)";
            case LibC.EMFILE -> "the limit on open files is reached (ulimit -n, LimitNOFILE)";
            default -> "the kernel refused " + entries + " requests";
        };
        throw new OrbitKvException(
                ErrorCode.NOT_AVAILABLE, "io_uring is not available: " + why + " (" + Errno.text(errno) + ")");
    }

    /** The flags that the kernel took, for reports. */
    int setupFlags() {
        return setupFlags & ~SETUP_R_DISABLED;
    }

    /** Starts the ring; with {@code SINGLE_ISSUER} the calling thread becomes the only one that may enter it. */
    void enable() {
        int result = register(REGISTER_ENABLE_RINGS, 0, 0);
        if (result < 0) {
            throw new OrbitKvException(ErrorCode.SYSTEM_CALL, "io_uring cannot be enabled: " + Errno.text(-result));
        }
    }

    /** Requests that the kernel has not been told of yet. */
    int pending() {
        return pending;
    }

    /** Queues a request, which the caller knows to have room for. The kernel sees it at the next {@link #enter}. */
    void queue(
            int opcode,
            int flags,
            int file,
            long fileOffset,
            long address,
            int bytes,
            int opFlags,
            int buffer,
            long name) {
        long sqe = (long) (sqTail & sqMask) * SQE_BYTES;
        sqes.putInt(sqe + SQE_OPCODE, opcode | flags << Byte.SIZE);
        sqes.putInt(sqe + SQE_FD, file);
        sqes.putLong(sqe + SQE_OFF, fileOffset);
        sqes.putLong(sqe + SQE_ADDR, address);
        sqes.putInt(sqe + SQE_LEN, bytes);
        sqes.putInt(sqe + SQE_OP_FLAGS, opFlags);
        sqes.putLong(sqe + SQE_USER_DATA, name);
        sqes.putLong(sqe + SQE_BUF_INDEX, buffer);
        sqes.putLong(sqe + SQE_ADDR3, 0);
        sqes.putLong(sqe + SQE_ADDR3 + Long.BYTES, 0);
        sqTail++;
        pending++;
        rings.putIntRelease(sqTailOffset, sqTail); // partner: the kernel reads the tail with acquire
    }

    /** Whether the kernel waits for us to enter before it can post completions. */
    boolean needsEnter() {
        return (rings.getIntVolatile(sqFlagsOffset) & (SQ_TASKRUN | SQ_CQ_OVERFLOW)) != 0;
    }

    /** Hands over what is pending and lets the kernel post completions, without waiting: 0, or minus an errno. */
    int submit() {
        int submitted = enter(0, ENTER_GETEVENTS, 0, 0);
        return Math.min(submitted, 0);
    }

    /** Hands over what is pending and waits for a completion: 0, or minus an errno (ETIME, EINTR among them). */
    int submitAndWait(long timeoutNanos) {
        long nanos = Math.max(0, timeoutNanos);
        scratch.putLong(SCRATCH_TIMESPEC, nanos / NANOS_PER_SECOND);
        scratch.putLong(SCRATCH_TIMESPEC + Long.BYTES, nanos % NANOS_PER_SECOND);
        scratch.putLong(SCRATCH_ARG + ARG_TIMESPEC, scratch.address(SCRATCH_TIMESPEC, 2 * Long.BYTES));
        int flags = ENTER_GETEVENTS | ENTER_EXT_ARG;
        return Math.min(enter(1, flags, scratch.address(SCRATCH_ARG, ARG_BYTES), ARG_BYTES), 0);
    }

    private int enter(int completionsMin, int flags, long argument, long argumentBytes) {
        long result = LibC.syscall(SYS_ENTER, fd, pending, completionsMin, flags, argument, argumentBytes);
        if (result < 0) {
            return -Native.getLastError();
        }
        pending -= (int) result;
        return (int) result;
    }

    /** Whether a completion is there; {@link #name()} and {@link #result()} tell of it until {@link #next()}. */
    boolean hasCompletion() {
        return rings.getIntAcquire(cqTailOffset) != cqHead; // partner: the kernel stores the tail with release
    }

    /** What the request was called. */
    long name() {
        return rings.getLong(cqesOffset + (long) (cqHead & cqMask) * CQE_BYTES);
    }

    /** Its result. */
    int result() {
        return rings.getInt(cqesOffset + (long) (cqHead & cqMask) * CQE_BYTES + CQE_RES);
    }

    /** Gives the place of the completion back to the kernel. */
    void next() {
        cqHead++;
        rings.putIntRelease(cqHeadOffset, cqHead);
    }

    private int register(int what, long argument, int count) {
        for (; ; ) {
            if (LibC.syscall(SYS_REGISTER, fd, what, argument, count, 0, 0) >= 0) {
                return 0;
            }
            int errno = Native.getLastError();
            if (errno != LibC.EINTR) {
                return -errno;
            }
        }
    }

    /** Registers a table of so many files, at most {@link #FILES_MAX}, all places empty: 0, or minus an errno. */
    int registerFiles(int count) {
        for (int i = 0; i < count; i++) {
            scratch.putInt(SCRATCH_FILES + (long) i * Integer.BYTES, -1);
        }
        return register(REGISTER_FILES, scratch.address(SCRATCH_FILES, (long) count * Integer.BYTES), count);
    }

    /** Puts a descriptor into a place of the table of files, -1 empties it: 0, or minus an errno. */
    int setFile(int place, int descriptor) {
        // struct io_uring_files_update: offset u32, resv u32, fds u64
        scratch.putInt(SCRATCH_VECTOR, descriptor);
        scratch.putInt(SCRATCH_REGISTER, place);
        scratch.putInt(SCRATCH_REGISTER + 4, 0);
        scratch.putLong(SCRATCH_REGISTER + 8, scratch.address(SCRATCH_VECTOR, Integer.BYTES));
        return register(REGISTER_FILES_UPDATE, scratch.address(SCRATCH_REGISTER, RSRC_ARG_BYTES), 1);
    }

    /** Registers a table of so many buffers, all places empty: 0, or minus an errno. */
    int registerBuffers(int count) {
        // struct io_uring_rsrc_register: nr u32, flags u32, resv2 u64, data u64, tags u64
        scratch.fill(SCRATCH_REGISTER, RSRC_ARG_BYTES, (byte) 0);
        scratch.putInt(SCRATCH_REGISTER, count);
        scratch.putInt(SCRATCH_REGISTER + 4, RSRC_REGISTER_SPARSE);
        return register(REGISTER_BUFFERS2, scratch.address(SCRATCH_REGISTER, RSRC_ARG_BYTES), RSRC_ARG_BYTES);
    }

    /** Puts memory into a place of the table of buffers, address and bytes 0 empty it: 0, or minus an errno. */
    int setBuffer(int place, long address, long bytes) {
        // struct io_uring_rsrc_update2: offset u32, resv u32, data u64, tags u64, nr u32, resv2 u32; struct iovec
        scratch.putLong(SCRATCH_VECTOR, address);
        scratch.putLong(SCRATCH_VECTOR + Long.BYTES, bytes);
        scratch.fill(SCRATCH_REGISTER, RSRC_ARG_BYTES, (byte) 0);
        scratch.putInt(SCRATCH_REGISTER, place);
        scratch.putLong(SCRATCH_REGISTER + 8, scratch.address(SCRATCH_VECTOR, 2 * Long.BYTES));
        scratch.putInt(SCRATCH_REGISTER + 24, 1);
        return register(REGISTER_BUFFERS_UPDATE, scratch.address(SCRATCH_REGISTER, RSRC_ARG_BYTES), RSRC_ARG_BYTES);
    }

    /**
     * Lets go of registered files and memory now: closing alone does it some time later, and until then a lock would
     * stay held and memory locked.
     */
    void unregisterAll() {
        register(REGISTER_UNREGISTER_FILES, 0, 0);
        register(REGISTER_UNREGISTER_BUFFERS, 0, 0);
    }

    /** Frees the ring; nothing may be in flight. Called once. */
    @Override
    public void close() {
        free(fd, sqes, rings, scratch);
    }

    private static void free(int ringFd, MemoryRegion... regions) {
        for (MemoryRegion region : regions) {
            if (region != null) {
                region.close();
            }
        }
        if (ringFd >= 0) {
            LibC.close(ringFd);
        }
    }
}
