package io.orbitkv.kit;

/**
 * The simulated machine has died: thrown by every operation from the crash point on, so that a test can unwind.
 *
 * <p>An error and not an exception, for production code handles exceptions and must not survive its own death.
 */
public final class SimulatedCrash extends Error {
    private static final long serialVersionUID = 1L;

    SimulatedCrash(String message) {
        super(message);
    }
}
