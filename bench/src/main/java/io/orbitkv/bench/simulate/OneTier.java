package io.orbitkv.bench.simulate;

/** Runs a trace against one tier, in which every request's blocks are taken in at once. */
final class OneTier {
    private OneTier() {}

    /**
     * Runs the trace.
     *
     * @param tailFirst whether the blocks of a request are touched and taken in from the last to the first, so that tails
     *     leave first
     */
    static SimResult run(KeyTrace trace, String policy, KeyTier tier, long capacityBlocks, boolean tailFirst) {
        Tally tally = new Tally(trace, tier::has);
        for (int request = 0; request < trace.requests(); request++) {
            int start = trace.start(request);
            int end = trace.start(request + 1);
            tier.begin(request);
            int miss = start;
            while (miss < end && tier.has(trace.key(miss))) {
                tally.nvmeHit(request, miss - start);
                miss++;
            }
            if (tailFirst) {
                for (int place = end - 1; place >= start; place--) {
                    touchOrAdd(tier, trace.key(place), true);
                }
            } else {
                for (int place = start; place < end; place++) {
                    touchOrAdd(tier, trace.key(place), place < miss);
                }
            }
            tally.endRequest(request);
        }
        return tally.result(policy, 0, capacityBlocks, tier.written(), tier.writtenAgain());
    }

    /** What lies behind the first miss is saved: there already, it stays as it is, for nobody used it. */
    private static void touchOrAdd(KeyTier tier, int key, boolean isUse) {
        if (!tier.has(key)) {
            tier.add(key);
        } else if (isUse) {
            tier.touch(key);
        }
    }

    /** The same with the tier that knows the future. */
    static SimResult belady(KeyTrace trace, int capacityBlocks) {
        Belady tier = new Belady(trace, capacityBlocks);
        Tally tally = new Tally(trace, tier::has);
        for (int request = 0; request < trace.requests(); request++) {
            int start = trace.start(request);
            int end = trace.start(request + 1);
            for (int place = start; place < end && tier.has(trace.key(place)); place++) {
                tally.nvmeHit(request, place - start);
            }
            for (int place = start; place < end; place++) {
                tier.use(place);
            }
            tally.endRequest(request);
        }
        return tally.result(SimPolicy.BELADY.label(), 0, capacityBlocks, tier.written(), 0);
    }
}
