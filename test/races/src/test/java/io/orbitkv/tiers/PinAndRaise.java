package io.orbitkv.tiers;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZZ_Result;

/** A reader pins, then looks at the generation; the tier raises the generation, then looks at the pins: one sees the other. */
@JCStressTest
@Outcome(id = "true, true", expect = Expect.FORBIDDEN, desc = "a reader of bytes that the tier takes for unread")
@Outcome(id = "true, false", expect = Expect.ACCEPTABLE, desc = "the tier waits for the reader")
@Outcome(id = "false, true", expect = Expect.ACCEPTABLE, desc = "the reader was overtaken")
@Outcome(id = "false, false", expect = Expect.ACCEPTABLE, desc = "the reader was overtaken, and the tier looks again")
@State
public class PinAndRaise {
    // Native memory for as long as the program: states are made by the million. Each takes a segment of its own.
    private static final int SEGMENTS = 1 << 20;
    private static final Generations GENERATIONS = new Generations(SEGMENTS);
    private static final SegmentPins PINS = new SegmentPins(SEGMENTS);
    private static final AtomicInteger NEXT = new AtomicInteger();

    private final int segment = NEXT.getAndIncrement() & SEGMENTS - 1;
    private boolean pinned;
    private final long extent = Extent.pack(segment, 0, GENERATIONS.current(segment));

    @Actor
    public void reader(ZZ_Result result) {
        result.r1 = PINS.pin(extent, GENERATIONS);
        pinned = result.r1;
    }

    @Actor
    public void tier(ZZ_Result result) {
        GENERATIONS.raise(segment);
        result.r2 = PINS.isFree(segment);
    }

    /** Once both are done: the next state that gets this segment must find it unpinned. */
    @Arbiter
    public void after() {
        if (pinned) {
            PINS.remove(segment);
        }
    }
}
