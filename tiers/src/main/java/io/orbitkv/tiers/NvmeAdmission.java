package io.orbitkv.tiers;

/**
 * Lets blocks onto the drive, or keeps them in host memory only.
 *
 * <p>{@link #admits} and {@link #now} are for any thread, the others for one at a time.
 */
public interface NvmeAdmission {
    /** A use is a second one where the first is remembered: over so many times the blocks of the drive, on average. */
    int MEMORY_TIERS = 4;

    /** See {@link #use}. */
    long NO_BRANCH = 0;

    /**
     * Whether a block that is taken in is written to the drive at once. A block that is not, is offered on its next use.
     *
     * @param tag 8 bytes that name the block, see {@link SeenTags}
     */
    boolean admits(long tag);

    /** A call begins that uses consecutive blocks: {@link #use} follows for each, in order. */
    void begin();

    /**
     * A block was used: saved, found stored, or restored.
     *
     * @param tag 8 bytes that name it
     * @param branch for a block that is saved, the tag of the one at which its request left what was stored;
     *     {@link #NO_BRANCH} for one that was stored
     */
    void use(long tag, long branch);

    /** What is being done with new blocks now: {@link AdmissionPolicy#ALL} or {@link AdmissionPolicy#REUSE}. */
    AdmissionPolicy now();

    /**
     * Makes an admission.
     *
     * @param policy which one
     * @param seen what was used before; not asked by {@link AdmissionPolicy#ALL}
     * @param tierBlocks blocks that the drive holds, about
     * @param price of a written block, in blocks whose computation a hit saves; for {@link AdmissionPolicy#DUEL}
     * @return it, with nothing learned yet
     */
    static NvmeAdmission of(AdmissionPolicy policy, SeenTags seen, long tierBlocks, double price) {
        switch (policy) {
            case ALL:
                return new WriteAll();
            case REUSE:
                return new WriteOnSecondUse(seen);
            default:
                return new Duel(seen, tierBlocks, price);
        }
    }
}
