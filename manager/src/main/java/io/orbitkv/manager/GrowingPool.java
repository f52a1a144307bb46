package io.orbitkv.manager;

/** A pool that may be used in part, as {@link PoolGrowth} sees it. */
interface GrowingPool {
    /** Bytes that it has. */
    long bytes();

    /** Bytes of it that may be used. */
    long usableBytes();

    /** Bytes of it that take memory by now. */
    long takenBytes();

    /** Lets more of it be used; less, or less than a segment more, changes nothing. */
    void use(long bytes);
}
