package io.orbitkv.kit;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/**
 * What a piece of work allocates on the heap of the JVM, by the JVM's own count for the calling thread.
 *
 * <p>A single window proves nothing: a thread that runs into code that the JIT compilers are about to replace is charged some bytes that the code doesn't
 * ask for, early or late. So the work runs in several windows, and the fewest bytes count: what the code itself allocates shows in each of them.
 */
public final class HeapUse {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private HeapUse() {}

    /**
     * The fewest bytes that one of the windows allocated on the calling thread; stops at the first with none.
     *
     * @param windows how often the work may run, 1 or more; all of them run when each allocates
     */
    public static long fewestBytes(int windows, Runnable work) {
        if (windows < 1) {
            throw new IllegalArgumentException("windows is " + windows + "; give 1 or more");
        }
        long fewest = Long.MAX_VALUE;
        for (int window = 0; window < windows && fewest > 0; window++) {
            long before = THREADS.getCurrentThreadAllocatedBytes();
            work.run();
            fewest = Math.min(fewest, THREADS.getCurrentThreadAllocatedBytes() - before);
        }
        return fewest;
    }
}
