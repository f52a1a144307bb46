package io.orbitkv.store;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.recovery.FillGround;
import io.orbitkv.recovery.FillState;
import io.orbitkv.recovery.IndexFill;
import io.orbitkv.tiers.Drives;

/**
 * Fills the index beside the store that serves already: steps the {@link IndexFill}, and pins the segments that it reads,
 * so that the log writes nothing over them meanwhile.
 */
final class Filling implements FillGround {
    private static final int FIRST_GENERATION = 1;

    private final Object writerLock;
    private final Drives nvme;
    private final IndexFill fill;

    Filling(Object writerLock, Drives nvme, IndexFill fill) {
        this.writerLock = writerLock;
        this.nvme = nvme;
        this.fill = fill;
        fill.start(this);
    }

    /** Whether there is something left to do. Any thread. */
    boolean isFilling() {
        return fill.state() == FillState.FILLING;
    }

    /** Does a piece of work; false when nothing is left. One thread. */
    boolean step() {
        return fill.step();
    }

    /** Ends it wherever it is. On the thread that steps it, or when that has ended. */
    void close() {
        fill.close();
    }

    @Override
    public Object writerLock() {
        return writerLock;
    }

    /** Whether or not its drive serves: what a drive that is out holds is indexed as soon as it answers. */
    @Override
    public boolean hold(int segment) {
        return nvme.driveOfSegment(segment).pin(Extent.pack(segment, 0, FIRST_GENERATION));
    }

    @Override
    public void letGo(int segment) {
        nvme.unpin(Extent.pack(segment, 0, FIRST_GENERATION));
    }

    @Override
    public boolean isCurrent(int segment, long useSequence) {
        return nvme.useSequence(segment) == useSequence;
    }
}
