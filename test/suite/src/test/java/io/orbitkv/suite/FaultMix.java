package io.orbitkv.suite;

import io.orbitkv.kit.Fault;
import io.orbitkv.kit.Faults;
import io.orbitkv.kit.Gen;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;

/**
 * What goes wrong in the run of a seed, and how likely: each seed draws which kinds of faults are on at all, for a kind that
 * is always on hides what happens only without it. One seed in four has a drive that keeps its contract.
 */
final class FaultMix {
    private static final long SWARM = 0x2545f4914f6cdd1dL;
    private static final int CONTRACT_ONE_IN = 4;
    private static final int FAULT_ONE_IN = 3;
    private static final int CONTRACT_OFF_ONE_IN = 12;
    private static final int SLOW_ONE_IN = 4;
    private static final int SLOWNESS_MAX = 40;
    private static final int CLIENTS_MAX = 5;

    private final Set<Fault> on = EnumSet.noneOf(Fault.class);
    private final Map<Fault, Double> probabilities = new EnumMap<>(Fault.class);
    private final int slowness;
    private final int clients;
    private final Gen choices;

    FaultMix(SimulationCase of) {
        Gen gen = new Gen(Gen.mix(of.seed() ^ SWARM));
        boolean keepsContract = gen.below(CONTRACT_ONE_IN) == 0;
        boolean isWhole = of.faults().size() == Fault.values().length;
        for (Fault fault : Fault.values()) {
            boolean drawn = fault.isOfContract() ? gen.below(CONTRACT_OFF_ONE_IN) != 0 : gen.below(FAULT_ONE_IN) == 0;
            double probability = probability(fault, gen);
            // A case that names its faults has those that may be on; where it is the contract's, all of them.
            boolean mayBe = fault.isOfContract() ? drawn || !isWhole : drawn && !keepsContract;
            if (of.faults().contains(fault) && mayBe) {
                on.add(fault);
                probabilities.put(fault, probability);
            }
        }
        boolean isSlow = gen.below(SLOW_ONE_IN) == 0;
        int drawnSlowness = gen.size(2, SLOWNESS_MAX);
        int drawnClients = gen.between(1, CLIENTS_MAX);
        this.choices = gen.fork();
        this.clients = Math.min(of.clients(), drawnClients);
        this.slowness = isSlow && of.clients() > 1 ? drawnSlowness : 1;
    }

    /** Each time that it could happen; from rare to frequent, any magnitude as likely as another. */
    private static double probability(Fault fault, Gen gen) {
        double[] range = switch (fault) {
            case KILL, POWER_LOSS, FOLDER_LOSS, DROPPED_WRITE, REORDERED_WRITE, TORN_WRITE -> new double[] {1, 1};
            case READ_ERROR -> new double[] {1e-3, 1e-1};
            case WRITE_ERROR, NO_SPACE -> new double[] {5e-4, 1e-2};
            case FLUSH_FAILURE -> new double[] {2e-3, 5e-2};
            case HANG -> new double[] {5e-4, 1e-2};
            case ROT_ON_READ, MISDIRECTED_READ -> new double[] {1e-3, 5e-2};
            case ROT_AT_REST -> new double[] {1e-3, 5e-2};
            case MISDIRECTED_WRITE, LOST_WRITE -> new double[] {5e-4, 2e-2};
            case LYING_FLUSH -> new double[] {1e-2, 1};
        };
        return range[0] * Math.pow(range[1] / range[0], gen.nextDouble());
    }

    void applyTo(Faults faults) {
        probabilities.forEach((fault, probability) -> {
            if (!fault.isOfContract()) {
                faults.set(fault, probability);
            }
        });
        for (Fault fault : Fault.values()) {
            if (fault.isOfContract() && !on.contains(fault)) {
                faults.forbid(fault);
            }
        }
        faults.slowness(slowness);
    }

    boolean has(Fault fault) {
        return on.contains(fault);
    }

    /** Clients that work side by side. */
    int clients() {
        return clients;
    }

    /** What clients do beside each other; a generator of its own, so that fewer of them change nothing else. */
    Gen choices() {
        return choices;
    }

    @Override
    public String toString() {
        return on + ", transfers " + slowness + " times as slow, " + clients + " clients";
    }
}
