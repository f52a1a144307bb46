package io.orbitkv.bench;

/**
 * One comparison of the store with what the drive gives without it.
 *
 * @param store the store's side; its ratio is that of the two sides
 * @param floor the other side
 * @param depth transfers in flight on either side
 * @param storeCpuSeconds CPU seconds of the store's process for each GiB, over all rounds
 * @param floorCpuSeconds the same of the other side; negative where it was not measured
 * @param storePages pages of the store's memory: {@code huge} or {@code small}
 * @param floorPages pages of the other side's
 */
public record DiskRow(
        BenchRow store,
        BenchRow floor,
        int depth,
        double storeCpuSeconds,
        double floorCpuSeconds,
        String storePages,
        String floorPages) {}
