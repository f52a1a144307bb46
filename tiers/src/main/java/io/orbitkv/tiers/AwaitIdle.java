package io.orbitkv.tiers;

import org.agrona.concurrent.IdleStrategy;

/** Lets an agent without work sleep where its drive's completions and its callers' wakeups end the sleep. */
final class AwaitIdle implements IdleStrategy {
    private final NvmeTier tier;

    AwaitIdle(NvmeTier tier) {
        this.tier = tier;
    }

    @Override
    public void idle(int workCount) {
        if (workCount <= 0) {
            idle();
        }
    }

    @Override
    public void idle() {
        tier.await(NvmeTier.AWAIT_NANOS_MAX);
    }

    @Override
    public void reset() {}

    @Override
    public String alias() {
        return "await";
    }
}
