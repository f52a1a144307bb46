package io.orbitkv.nativeio;

/** Chooses the ring of a folder. */
final class Rings {
    /** Most transfers in flight of one ring; io_uring's own bound is twice this. */
    static final int DEPTH_MAX = 1 << 14;

    private Rings() {}

    static IoRing open(HostFolder folder, int depth) {
        if (depth < 1 || depth > DEPTH_MAX) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "the depth of a ring is 1 to " + DEPTH_MAX + ", not " + depth);
        }
        return new ThreadsRing(folder, depth);
    }
}
