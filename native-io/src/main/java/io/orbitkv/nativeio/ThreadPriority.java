package io.orbitkv.nativeio;

/** How much of the machine a thread gets beside others. */
public final class ThreadPriority {
    private static final int NICE_LEAST = 19;

    /** ioprio_set(2): of one thread, class idle. */
    private static final int IOPRIO_WHO_PROCESS = 1;

    private static final long IOPRIO_IDLE = 3L << 13;
    private static final boolean AARCH64 = "aarch64".equals(System.getProperty("os.arch"));
    private static final long SYS_IOPRIO_SET = AARCH64 ? 30 : 251;
    private static final long SYS_SETPRIORITY = AARCH64 ? 140 : 141;

    private ThreadPriority() {}

    /** The calling thread gives way to all others, on the processor and, where its scheduler knows that, on the drive. */
    public static void idle() {
        // Both can only be refused where they make no difference: lowering one's own priority needs no right.
        LibC.syscall(SYS_SETPRIORITY, 0, 0, NICE_LEAST, 0, 0, 0);
        LibC.syscall(SYS_IOPRIO_SET, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE, 0, 0, 0);
    }
}
