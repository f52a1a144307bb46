package io.orbitkv.nativeio;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZZZ_Result;

/**
 * Somebody gives work and wakes the owner, who looks for work and goes to sleep: whoever sleeps is signalled, and whoever is
 * kept awake sees the work.
 *
 * <p>Results: the owner went to sleep; it was signalled; it saw the work after that.
 */
@JCStressTest
@Outcome(id = "true, false, .*", expect = Expect.FORBIDDEN, desc = "it sleeps, and nobody signals it")
@Outcome(id = "false, .*, false", expect = Expect.FORBIDDEN, desc = "it was woken before it slept, and sees no work")
@Outcome(id = ".*", expect = Expect.ACCEPTABLE, desc = "nothing is lost")
@State
public class SleepAndWake {
    private final WakeState state = new WakeState();
    private int work; // plain: the wake state must order it

    @Actor
    public void giver(ZZZ_Result result) {
        work = 1;
        result.r2 = state.wake();
        if (result.r2) {
            state.signalled();
        }
    }

    @Actor
    public void owner(ZZZ_Result result) {
        result.r1 = state.sleep();
        result.r3 = result.r1 || work == 1;
    }
}
