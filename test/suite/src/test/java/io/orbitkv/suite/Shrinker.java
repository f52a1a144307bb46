package io.orbitkv.suite;

import io.orbitkv.kit.Fault;
import java.util.EnumSet;
import java.util.Set;

/** Makes a case that fails smaller, as long as it fails alike: fewer kinds of faults, lives, operations, clients. */
final class Shrinker {
    /** A case that takes longer to make small is small enough. */
    private static final int RUNS_MAX = 80;

    private final SeedOutcome.Sabotage sabotage;
    private SeedOutcome smallest;
    private int runs;

    private Shrinker(SeedOutcome failed, SeedOutcome.Sabotage sabotage) {
        this.smallest = failed;
        this.sabotage = sabotage;
    }

    /** The smallest case found that fails as this one did. */
    static SeedOutcome shrink(SeedOutcome failed) {
        return shrink(failed, null);
    }

    static SeedOutcome shrink(SeedOutcome failed, SeedOutcome.Sabotage sabotage) {
        Shrinker shrinker = new Shrinker(failed, sabotage);
        shrinker.faults();
        shrinker.lives();
        shrinker.operations();
        shrinker.tries(shrinker.smallest.of().withClients(1));
        shrinker.faults();
        return shrinker.smallest;
    }

    private boolean tries(SimulationCase smaller) {
        if (runs >= RUNS_MAX || smaller.equals(smallest.of())) {
            return false;
        }
        runs++;
        SeedOutcome outcome = SeedOutcome.run(smaller, sabotage);
        if (outcome.isGood() || !smallest.isLike(outcome)) {
            return false;
        }
        smallest = outcome;
        return true;
    }

    private void faults() {
        FaultMix mix = new FaultMix(smallest.of());
        Set<Fault> on = EnumSet.noneOf(Fault.class);
        for (Fault fault : Fault.values()) {
            if (mix.has(fault)) {
                on.add(fault);
            }
        }
        tries(smallest.of().withFaults(on));
        for (Fault fault : Fault.values()) {
            if (smallest.of().faults().contains(fault)) {
                tries(smallest.of().without(fault));
            }
        }
    }

    private void lives() {
        for (int lives = 0; lives < SimulationRun.LIVES_MAX; lives++) {
            if (tries(smallest.of().withLives(lives))) {
                return;
            }
        }
    }

    /** A run that ends earlier has the same beginning: the fewest operations are found by halving. */
    private void operations() {
        long most = Math.min(smallest.totals().operations + 1, smallest.of().operations());
        int enough = (int) most;
        int tooFew = -1;
        while (enough - tooFew > 1) {
            int middle = tooFew + (enough - tooFew) / 2;
            if (tries(smallest.of().withOperations(middle))) {
                enough = middle;
            } else {
                tooFew = middle;
            }
        }
    }
}
