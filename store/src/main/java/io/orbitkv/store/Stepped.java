package io.orbitkv.store;

import io.orbitkv.tiers.NvmeTier;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentInvoker;

/** Threading for simulations: the caller steps every agent, so that a run is a function of its seed. */
final class Stepped implements Driver {
    /** A stop that takes more steps than this has hung: a bug. */
    private static final int STOP_STEPS_MAX = 10_000_000;

    private static final long IDLE_NANOS = 1_000_000;

    private final NvmeTier log;
    private final AgentInvoker logInvoker;
    private final AgentInvoker upkeepInvoker;
    private final List<AgentInvoker> beside = new ArrayList<>();
    private Filling fill;

    Stepped(NvmeTier log, Upkeep upkeep) {
        this.log = log;
        this.logInvoker = new AgentInvoker(Stepped::fail, null, log);
        this.upkeepInvoker = new AgentInvoker(Stepped::fail, null, upkeep);
        logInvoker.start();
        upkeepInvoker.start();
    }

    private static void fail(Throwable failure) {
        if (failure instanceof Error error) {
            throw error;
        }
        if (failure instanceof RuntimeException exception) {
            throw exception;
        }
        throw new IllegalStateException(failure);
    }

    /** One step of each agent; where none had work, simulated time passes. */
    @Override
    public void pause() {
        int work = 0;
        for (int i = 0; i < beside.size(); i++) {
            work += beside.get(i).invoke();
        }
        int filled = fill != null && fill.step() ? 1 : 0;
        if (logInvoker.invoke() + upkeepInvoker.invoke() + work + filled == 0) {
            log.await(IDLE_NANOS);
        }
    }

    @Override
    public void startBeside(Agent agent) {
        AgentInvoker invoker = new AgentInvoker(Stepped::fail, null, agent);
        beside.add(invoker);
        invoker.start();
    }

    @Override
    public void startAtRest(Agent agent) {
        startBeside(agent);
    }

    @Override
    public void startFill(Filling filling) {
        fill = filling;
    }

    @Override
    public boolean stop() {
        if (fill != null) {
            fill.close();
        }
        for (int step = 0; step < STOP_STEPS_MAX; step++) {
            if (log.stop()) {
                log.onClose();
                return true;
            }
            log.await(IDLE_NANOS);
        }
        return false;
    }
}
