package io.orbitkv.store;

/**
 * So many bytes a second: what was not used is kept for one second at most. A pass over all there is costs at least
 * {@link #PASS_BYTES_MIN}, so that a small store isn't read over and over. One thread.
 */
final class ScrubPace {
    /** What a pass costs at least. */
    static final long PASS_BYTES_MIN = 16 << 20;

    private static final long SECOND_NANOS = 1_000_000_000L;

    private final long bytesPerSecond;
    private long since;
    private double saved;
    private long pass;

    /** 0 bytes a second: never. */
    ScrubPace(long bytesPerSecond, long nowNanos) {
        this.bytesPerSecond = bytesPerSecond;
        this.since = nowNanos;
    }

    /** Whether something may be read now; what it costs is said afterwards, and may be more than there was. */
    boolean mayRead(long nowNanos) {
        if (bytesPerSecond == 0) {
            return false;
        }
        double earned = (nowNanos - since) * (double) bytesPerSecond / SECOND_NANOS;
        saved = Math.min(bytesPerSecond, saved + earned);
        since = nowNanos;
        return saved > 0;
    }

    void read(long bytes) {
        saved -= bytes;
        pass += bytes;
    }

    /** All has been looked at once. */
    void passEnded() {
        saved -= Math.max(0, PASS_BYTES_MIN - pass);
        pass = 0;
    }
}
