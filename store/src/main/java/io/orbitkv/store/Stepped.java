package io.orbitkv.store;

import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.NvmeTier;
import io.orbitkv.tiers.TierState;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentInvoker;

/** Threading for simulations: the caller steps every agent, so that a run is a function of its seed. */
final class Stepped implements Driver {
    /** A stop that takes more steps than this has hung: a bug. */
    private static final int STOP_STEPS_MAX = 10_000_000;

    private static final long IDLE_NANOS = 1_000_000;

    private final Drives drives;
    private final CatalogKeeper keeper;
    private final AgentInvoker[] logInvokers;
    private final AgentInvoker upkeepInvoker;
    private final List<AgentInvoker> beside = new ArrayList<>();
    private Filling fill;

    Stepped(Drives drives, Upkeep upkeep, CatalogKeeper keeper) {
        this.drives = drives;
        this.keeper = keeper;
        this.logInvokers = new AgentInvoker[drives.count()];
        for (int i = 0; i < logInvokers.length; i++) {
            logInvokers[i] = new AgentInvoker(Stepped::fail, null, drives.drive(i));
            logInvokers[i].start();
        }
        this.upkeepInvoker = new AgentInvoker(Stepped::fail, null, upkeep);
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
        int done = 0;
        for (int i = 0; i < beside.size(); i++) {
            done += beside.get(i).invoke();
        }
        done += fill != null && fill.step() ? 1 : 0;
        for (AgentInvoker log : logInvokers) {
            done += log.invoke();
        }
        done += upkeepInvoker.invoke() + keeper.doWork();
        for (int i = 0; done == 0 && i < logInvokers.length; i++) {
            drives.drive(i).await(IDLE_NANOS / logInvokers.length);
        }
    }

    @Override
    public Runnable startBeside(Agent agent) {
        AgentInvoker invoker = new AgentInvoker(Stepped::fail, null, agent);
        beside.add(invoker);
        invoker.start();
        return null;
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
        boolean clean = true;
        for (int i = 0; i < drives.count(); i++) {
            clean &= stop(drives.drive(i));
        }
        return clean;
    }

    private static boolean stop(NvmeTier log) {
        for (int step = 0; step < STOP_STEPS_MAX; step++) {
            if (log.stop()) {
                log.onClose();
                return log.state() == TierState.STOPPED;
            }
            log.await(IDLE_NANOS);
        }
        return false;
    }

    @Override
    public boolean finish(Runnable work, long timeoutNanos) {
        work.run();
        return true;
    }

    @Override
    public boolean isStepped() {
        return true;
    }

    @Override
    public boolean isDrained() {
        return true;
    }
}
