package io.orbitkv.tiers;

/**
 * Admission by a duel: two shadows of the drive, which hold tags only, see a sample of the traffic; one writes
 * everything, the other what is used a second time. The drive follows the one that scores better.
 *
 * <p>The sample is every 2^shift-th <i>branch</i>: the blocks that a save added where its request left what was stored,
 * told apart by the tag of the first of them. A branch is in the sample as a whole, and for as long as its blocks are
 * remembered, so that their later uses count. A shadow holds the sample's share of the drive's blocks.
 *
 * <pre>
 * score of a shadow = sum over sampled uses of    1       it holds the block, and it held those before it in the call
 *                                                 -price  it takes the block in
 * </pre>
 *
 * <p>Uses count from when the shadow that takes everything in is full for the first time: until then the drive has room
 * for all. Scores are halved after every {@link #halfLifeUses} sampled uses, so that the past fades. The other shadow
 * has to lead by {@link #LEAD_MIN} a use, or the drive stays with the one that it follows.
 *
 * <p>All memory is taken when it is made, some 150 bytes a block of a shadow.
 */
final class Duel implements NvmeAdmission {
    /** One branch of eight is in the sample: less is too little where the drive is small. */
    static final int SAMPLE_SHIFT = 3;

    /** A larger drive is sampled less often. */
    static final int SHADOW_BLOCKS_MAX = 1 << 17;

    private static final int SHADOW_BLOCKS_MIN = 16;

    /** The past fades over so many turnovers of the shadow, and over no fewer uses than a verdict needs. */
    private static final int HALF_LIFE_SHADOWS = 8;

    private static final int HALF_LIFE_USES_MIN = 4096;

    /** Uses before the first verdict. */
    private static final int USES_MIN = 256;

    /** In blocks of saved computation. */
    private static final double LEAD_MIN = 0.01;

    private static final long SPREAD = 0x9E3779B97F4A7C15L;

    private final SeenTags seen;
    private final double price;
    private final int shift;
    private final int halfLifeUses;
    private final ShadowCache all;
    private final ShadowCache reuse;
    private final RecentTags recent;

    private double allScore;
    private double reuseScore;

    /** Uses that the scores rest on, faded as they are. */
    private double uses;

    private int sinceHalved;

    /** The first shadow was full once. */
    private boolean isFull;

    private boolean allMissed;
    private boolean reuseMissed;

    /** Which shadow the drive follows. */
    private volatile boolean onSecondUse;

    Duel(SeenTags seen, long tierBlocks, double price) {
        this(seen, tierBlocks, price, shift(tierBlocks));
    }

    Duel(SeenTags seen, long tierBlocks, double price, int shift) {
        this.seen = seen;
        this.price = price;
        this.shift = shift;
        int blocks = (int) Math.max(SHADOW_BLOCKS_MIN, tierBlocks >>> shift);
        this.halfLifeUses = Math.max(HALF_LIFE_USES_MIN, HALF_LIFE_SHADOWS * blocks);
        this.all = new ShadowCache(blocks);
        this.reuse = new ShadowCache(blocks);
        this.recent = new RecentTags(MEMORY_TIERS * blocks * 2 / 3);
    }

    private static int shift(long tierBlocks) {
        int shift = SAMPLE_SHIFT;
        while (tierBlocks >>> shift > SHADOW_BLOCKS_MAX) {
            shift++;
        }
        return shift;
    }

    @Override
    public boolean admits(long tag) {
        return !onSecondUse || seen.seen(tag);
    }

    @Override
    public AdmissionPolicy now() {
        return onSecondUse ? AdmissionPolicy.REUSE : AdmissionPolicy.ALL;
    }

    @Override
    public void begin() {
        allMissed = false;
        reuseMissed = false;
    }

    @Override
    public void use(long tag, long branch) {
        if (!isSampled(tag, branch)) {
            return;
        }
        boolean known = recent.see(tag);
        if (all.use(tag)) {
            allScore += allMissed ? 0 : 1;
        } else {
            allMissed = true;
            all.add(tag);
            allScore -= price;
        }
        if (reuse.use(tag)) {
            reuseScore += reuseMissed ? 0 : 1;
        } else {
            reuseMissed = true;
            if (known) {
                reuse.add(tag);
                reuseScore -= price;
            }
        }
        if (isFull) {
            count();
        } else if (all.isFull()) {
            isFull = true;
            allScore = 0;
            reuseScore = 0;
        }
    }

    /** Stored blocks are of many branches: those that are remembered are of the sample. */
    private boolean isSampled(long tag, long branch) {
        return shift == 0
                || branch != NO_BRANCH && branch * SPREAD >>> Long.SIZE - shift == 0
                || recent.seen(tag)
                || all.contains(tag)
                || reuse.contains(tag);
    }

    private void count() {
        uses++;
        if (++sinceHalved == halfLifeUses) {
            sinceHalved = 0;
            allScore /= 2;
            reuseScore /= 2;
            uses /= 2;
        }
        double lead = onSecondUse ? allScore - reuseScore : reuseScore - allScore;
        if (uses >= USES_MIN && lead > LEAD_MIN * uses) {
            onSecondUse = !onSecondUse;
        }
    }
}
