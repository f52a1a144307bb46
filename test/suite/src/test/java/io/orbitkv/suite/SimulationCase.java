package io.orbitkv.suite;

import io.orbitkv.kit.Fault;
import java.util.EnumSet;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * A run of the simulation: its seed, and what of the run is left out. A run is a function of its case.
 *
 * @param seed decides everything that is not left out
 * @param faults those that the seed may draw from
 * @param lives most lives of the store that end in a death or a stop, besides the last
 * @param operations most operations of clients over all lives
 * @param clients most clients
 */
record SimulationCase(long seed, Set<Fault> faults, int lives, int operations, int clients) {
    private static final int UNBOUNDED = Integer.MAX_VALUE;

    SimulationCase {
        faults = Set.copyOf(faults);
    }

    /** The whole run of a seed. */
    static SimulationCase of(long seed) {
        return new SimulationCase(seed, EnumSet.allOf(Fault.class), UNBOUNDED, UNBOUNDED, UNBOUNDED);
    }

    /** The run of a seed with one client on a drive that keeps its contract and answers no errors. */
    static SimulationCase ofContract(long seed) {
        EnumSet<Fault> contract = EnumSet.noneOf(Fault.class);
        for (Fault fault : Fault.values()) {
            if (fault.isOfContract()) {
                contract.add(fault);
            }
        }
        return new SimulationCase(seed, contract, UNBOUNDED, UNBOUNDED, 1);
    }

    SimulationCase without(Fault fault) {
        EnumSet<Fault> fewer = EnumSet.noneOf(Fault.class);
        fewer.addAll(faults);
        fewer.remove(fault);
        return withFaults(fewer);
    }

    SimulationCase withFaults(Set<Fault> some) {
        return new SimulationCase(seed, some, lives, operations, clients);
    }

    SimulationCase withLives(int most) {
        return new SimulationCase(seed, faults, most, operations, clients);
    }

    SimulationCase withOperations(int most) {
        return new SimulationCase(seed, faults, lives, most, clients);
    }

    SimulationCase withClients(int most) {
        return new SimulationCase(seed, faults, lives, operations, most);
    }

    /** The command that runs the case again. */
    String command() {
        StringBuilder command = new StringBuilder("test/seeds --seed ").append(seed);
        if (faults.size() < Fault.values().length) {
            String names = faults.stream().sorted().map(Fault::name).collect(Collectors.joining(","));
            command.append(" --faults ").append(names.isEmpty() ? "none" : names);
        }
        appendBound(command, " --lives ", lives);
        appendBound(command, " --operations ", operations);
        appendBound(command, " --clients ", clients);
        return command.toString();
    }

    private static void appendBound(StringBuilder command, String flag, int bound) {
        if (bound != UNBOUNDED) {
            command.append(flag).append(bound);
        }
    }
}
