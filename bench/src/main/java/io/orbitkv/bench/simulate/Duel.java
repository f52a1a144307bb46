package io.orbitkv.bench.simulate;

/**
 * Writes everything, or what is used a second time: whichever scores better in shadows of the drive that see a sample.
 *
 * <p>The sample is every eighth prefix, told apart by the key at which its request left what was stored: the blocks from
 * there on are sampled, and for as long as they are remembered so are their later uses. A shadow holds an eighth of the
 * drive's blocks, in CLOCK order.
 *
 * <pre>
 * score of a shadow = sum of compute saved (in first blocks of a prompt) - price * blocks that it wrote
 * </pre>
 */
final class Duel implements Admission {
    /** Less is too little a sample where the drive is small. */
    static final int SAMPLE = 8;

    /** Sampled uses before the first verdict; until then everything is written. */
    static final int USES_MIN = 256;

    private final KeyTrace trace;
    private final double price;
    private final double unit;
    private final SecondUse secondUse;
    private final SeenKeys sampled;
    private final int[] sampledIn;
    private final Shadow all;
    private final Shadow reuse;
    private boolean onSecondUse;
    private long uses;

    Duel(KeyTrace trace, long tierBlocks, double price) {
        this.trace = trace;
        this.price = price;
        unit = Compute.ofPrefix(trace.blockTokens());
        secondUse = new SecondUse(trace, tierBlocks);
        int shadowBlocks = (int) Math.max(1, tierBlocks / SAMPLE);
        sampled = new SeenKeys(trace.uniqueBlocks(), (long) SecondUse.MEMORY_TIERS * tierBlocks / SAMPLE);
        sampledIn = new int[trace.uniqueBlocks()];
        all = new Shadow(shadowBlocks);
        reuse = new Shadow(shadowBlocks);
    }

    @Override
    public boolean admits(int key) {
        return !onSecondUse || secondUse.admits(key);
    }

    @Override
    public void end(int request, int miss) {
        secondUse.end(request, miss);
        int start = trace.start(request);
        int end = trace.start(request + 1);
        boolean isSampled = miss < end && Long.remainderUnsigned(Mix.hash(trace.key(miss)), SAMPLE) == 0;
        int turn = request + 1;
        for (int place = start; place < end; place++) {
            int key = trace.key(place);
            if ((isSampled && place >= miss) || sampled.has(key) || all.tier.has(key) || reuse.tier.has(key)) {
                sampledIn[key] = turn;
                uses++;
            }
        }
        all.play(request, miss, false);
        reuse.play(request, miss, true);
        for (int place = start; place < end; place++) {
            if (sampledIn[trace.key(place)] == turn) {
                sampled.see(trace.key(place));
            }
        }
        if (uses >= USES_MIN && all.score != reuse.score) {
            onSecondUse = reuse.score > all.score;
        }
    }

    /** What the drive would do under one of the two. */
    private final class Shadow {
        private final BlockTier tier;
        private double score;

        Shadow(int blocks) {
            tier = new BlockTier(BlockTier.Order.CLOCK, blocks, trace.uniqueBlocks());
        }

        /** Plays the sampled blocks of a request; a miss in what the store had does not hide hits in what it had not. */
        void play(int request, int miss, boolean needsSecondUse) {
            int start = trace.start(request);
            boolean reaches = true;
            for (int place = start; place < trace.start(request + 1); place++) {
                reaches |= place == miss;
                int key = trace.key(place);
                if (sampledIn[key] != request + 1) {
                    continue;
                }
                if (tier.has(key)) {
                    tier.touch(key);
                    score += reaches ? trace.cost(request, place - start) / unit : 0;
                    continue;
                }
                reaches = false;
                if (!needsSecondUse || sampled.has(key)) {
                    tier.add(key);
                    score -= price;
                }
            }
        }
    }
}
