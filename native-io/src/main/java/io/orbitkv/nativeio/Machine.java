package io.orbitkv.nativeio;

/** What this machine offers. */
public final class Machine {
    private Machine() {}

    /** RLIMIT_MEMLOCK: bytes that this process may lock; -1 is without a limit. */
    public static long lockedBytesMax() {
        return limit(LibC.RLIMIT_MEMLOCK);
    }

    private static long limit(int resource) {
        byte[] limits = new byte[2 * Long.BYTES];
        if (LibC.getrlimit(resource, limits) < 0) {
            return 0;
        }
        return java.nio.ByteBuffer.wrap(limits)
                .order(java.nio.ByteOrder.nativeOrder())
                .getLong(0);
    }
}
