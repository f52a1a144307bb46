package io.orbitkv.bench.simulate;

/**
 * What a simulation found. Hits count up to the first miss of a request.
 *
 * @param policy what was simulated, in words
 * @param hostBlocks blocks that host memory holds; 0 where there is one tier only
 * @param capacityBlocks blocks that the tier, or the drive, holds
 * @param requests requests of the trace
 * @param blocks blocks of all requests
 * @param uniqueBlocks blocks that differ
 * @param hostHits hits in host memory
 * @param nvmeHits hits in the tier, or on the drive
 * @param hostSaved share of the trace's compute that hits in host memory save, 0 to 1
 * @param nvmeSaved share that hits in the tier, or on the drive, save
 * @param writtenBlocks blocks written to the tier, or the drive, that it did not hold
 * @param writtenAgainBlocks blocks that it held and wrote again, so that they stay
 * @param unreachable share of the stored blocks before which one is missing, mean over the trace, 0 to 1
 */
public record SimResult(
        String policy,
        long hostBlocks,
        long capacityBlocks,
        int requests,
        int blocks,
        int uniqueBlocks,
        long hostHits,
        long nvmeHits,
        double hostSaved,
        double nvmeSaved,
        long writtenBlocks,
        long writtenAgainBlocks,
        double unreachable) {

    /**
     * Share of blocks that were hits.
     *
     * @return 0 to 1
     */
    public double hitRate() {
        return blocks == 0 ? 0 : (double) (hostHits + nvmeHits) / blocks;
    }

    /**
     * Share of blocks that were hits in host memory.
     *
     * @return 0 to 1
     */
    public double hostHitRate() {
        return blocks == 0 ? 0 : (double) hostHits / blocks;
    }

    /**
     * Share of the trace's compute that hits save.
     *
     * @return 0 to 1
     */
    public double computeSaved() {
        return hostSaved + nvmeSaved;
    }

    /**
     * Blocks written, again ones included, for each block that differs.
     *
     * @return a ratio
     */
    public double writesPerUnique() {
        return uniqueBlocks == 0 ? 0 : (double) (writtenBlocks + writtenAgainBlocks) / uniqueBlocks;
    }

    /**
     * Blocks written for each new one written.
     *
     * @return a ratio, at least 1
     */
    public double writesPerNew() {
        return writtenBlocks == 0 ? 1 : (double) (writtenBlocks + writtenAgainBlocks) / writtenBlocks;
    }
}
