package io.orbitkv.store;

import io.orbitkv.tiers.NvmeTier;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentTerminationException;
import org.agrona.concurrent.IdleStrategy;

/** Runs the log on a thread of its own: it sleeps in the ring when there is nothing to do, and ends by a clean stop. */
final class LogThread implements Agent, IdleStrategy {
    /** Longest sleep in the ring; any work ends it earlier. */
    private static final long SLEEP_NANOS_MAX = 1_000_000_000;

    private final NvmeTier log;
    private volatile boolean stopping;
    private volatile boolean abandoned;

    LogThread(NvmeTier log) {
        this.log = log;
    }

    /** Asks for a clean stop; the thread ends when everything is durable. */
    void stop() {
        stopping = true;
        log.wakeup();
    }

    /** Asks for an end without a clean stop, for a drive that doesn't answer. */
    void abandon() {
        abandoned = true;
        log.wakeup();
    }

    @Override
    public void onStart() {
        log.onStart();
    }

    @Override
    public int doWork() {
        if (abandoned || stopping && log.stop()) {
            throw new AgentTerminationException();
        }
        return stopping ? 0 : log.doWork();
    }

    @Override
    public void idle(int workCount) {
        if (workCount == 0) {
            log.await(SLEEP_NANOS_MAX);
        }
    }

    @Override
    public void idle() {
        log.await(SLEEP_NANOS_MAX);
    }

    @Override
    public void reset() {}

    @Override
    public void onClose() {
        log.onClose();
    }

    @Override
    public String roleName() {
        return log.roleName();
    }
}
