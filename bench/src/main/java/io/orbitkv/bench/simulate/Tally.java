package io.orbitkv.bench.simulate;

import java.util.function.IntPredicate;

/** Counts hits, what they save, and now and then the blocks that nobody can reach. */
final class Tally {
    /** How often in a trace unreachable blocks are counted: each time all keys are looked at. */
    private static final int SAMPLES = 32;

    private final KeyTrace trace;
    private final IntPredicate isStored;
    private final boolean[] reachable;
    private final int requestsPerSample;
    private long hostHits;
    private long nvmeHits;
    private double hostCost;
    private double nvmeCost;
    private double unreachableSum;
    private int samples;

    Tally(KeyTrace trace, IntPredicate isStored) {
        this.trace = trace;
        this.isStored = isStored;
        reachable = new boolean[trace.uniqueBlocks()];
        requestsPerSample = Math.max(1, trace.requests() / SAMPLES);
    }

    void hostHit(int request, int block) {
        hostHits++;
        hostCost += trace.cost(request, block);
    }

    void nvmeHit(int request, int block) {
        nvmeHits++;
        nvmeCost += trace.cost(request, block);
    }

    void endRequest(int request) {
        if ((request + 1) % requestsPerSample == 0) {
            sample();
        }
    }

    private void sample() {
        long stored = 0;
        long reached = 0;
        for (int key = 0; key < reachable.length; key++) { // a parent's number is smaller
            boolean held = isStored.test(key);
            int parent = trace.parent(key);
            reachable[key] = held && (parent == KeyTrace.NONE || reachable[parent]);
            stored += held ? 1 : 0;
            reached += reachable[key] ? 1 : 0;
        }
        unreachableSum += stored == 0 ? 0 : (double) (stored - reached) / stored;
        samples++;
    }

    SimResult result(String policy, long hostBlocks, long capacityBlocks, long written, long again) {
        return new SimResult(
                policy,
                hostBlocks,
                capacityBlocks,
                trace.requests(),
                trace.blocks(),
                trace.uniqueBlocks(),
                hostHits,
                nvmeHits,
                hostCost / trace.totalCost(),
                nvmeCost / trace.totalCost(),
                written,
                again,
                samples == 0 ? 0 : unreachableSum / samples);
    }
}
