package io.orbitkv.tiers;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;

/**
 * What an opening found in the log: which segments hold blocks, and where counting goes on. Filled by one thread, then
 * handed to {@link NvmeTier}, which takes what it needs.
 */
public final class LogState {
    private final long[] useSequences;
    private final long[] emptyUses;
    private final boolean[] absent;
    private long nextUseSequence = 1;
    private long lastPosition;
    private long durablePosition;

    /** All segments free, nothing ever written. */
    public LogState(int segments) {
        this.useSequences = new long[segments];
        this.emptyUses = new long[segments];
        this.absent = new boolean[segments];
    }

    /** How many segments. */
    public int segments() {
        return useSequences.length;
    }

    /** Says that a segment holds blocks; it will not be appended to. Raises the next use-sequence above it. */
    public LogState seal(int segment, long useSequence) {
        if (useSequence < 1) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "use-sequence " + useSequence + " of segment " + segment + " is below 1");
        }
        useSequences[segment] = useSequence;
        return passUse(useSequence);
    }

    /** Says that a use-sequence stands in some header, even one of a free segment: it is never given out again. */
    public LogState passUse(long useSequence) {
        nextUseSequence = Math.max(nextUseSequence, useSequence + 1);
        return this;
    }

    /**
     * Says that a free segment's header has a use-sequence, under which nothing was written: whoever knows a block of
     * an earlier life of the segment can tell from it that the segment was put to another use.
     */
    public LogState emptyUse(int segment, long useSequence) {
        emptyUses[segment] = useSequence;
        return passUse(useSequence);
    }

    /** The use-sequence in the header of a free segment, 0 where it was never used; see {@link #emptyUse(int, long)}. */
    public long emptyUse(int segment) {
        return emptyUses[segment];
    }

    /** Says that a segment has no pages: it was given up for the cap. */
    public LogState absent(int segment) {
        absent[segment] = true;
        return this;
    }

    /** Whether a segment has no pages. */
    public boolean isAbsent(int segment) {
        return absent[segment];
    }

    /** Says how far positions were given out, and up to where they are known to be durable. */
    public LogState positions(long last, long durable) {
        if (durable < 0 || durable > last) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "durable position " + durable + " must be between 0 and the last, " + last);
        }
        lastPosition = last;
        durablePosition = durable;
        return this;
    }

    /** Whether a segment holds blocks. */
    public boolean isSealed(int segment) {
        return useSequences[segment] != 0;
    }

    /** The use-sequence of a segment that holds blocks, otherwise 0. */
    public long useSequence(int segment) {
        return useSequences[segment];
    }

    /** The use-sequence that the next segment gets. */
    public long nextUseSequence() {
        return nextUseSequence;
    }

    /** The last position that was given out. */
    public long lastPosition() {
        return lastPosition;
    }

    /** Up to where blocks are durable; where that is below the last position the log starts with a flush. */
    public long durablePosition() {
        return durablePosition;
    }
}
