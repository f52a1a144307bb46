package io.orbitkv.kit;

import java.util.concurrent.atomic.AtomicLong;
import org.agrona.concurrent.NanoClock;

/** A clock that moves only when it is told to, in nanoseconds from 0. Safe from any thread. */
public final class SimulatedClock implements NanoClock {
    private final AtomicLong nowNanos = new AtomicLong();

    /** Creates a clock at 0. */
    public SimulatedClock() {}

    @Override
    public long nanoTime() {
        return nowNanos.get();
    }

    /** Moves the clock forward. */
    public void advance(long nanos) {
        if (nanos < 0) {
            throw new IllegalArgumentException("time does not run backwards: " + nanos + " ns");
        }
        nowNanos.addAndGet(nanos);
    }

    /** Moves the clock to a time unless it is there or later already. */
    public void advanceTo(long timeNanos) {
        nowNanos.accumulateAndGet(timeNanos, Math::max);
    }
}
