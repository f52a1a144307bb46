package io.orbitkv.bench;

import java.util.Arrays;

/**
 * One line of a benchmark's result: what was measured in rounds that alternate with its floor.
 *
 * @param what what was measured
 * @param floor what it is compared with, measured in the same rounds on the same bytes; empty for a floor itself
 * @param blockBytes bytes of a block
 * @param blocksPerCall blocks of one call
 * @param rounds how many rounds
 * @param medianNanos of a block, over the rounds
 * @param minNanos of a block, in the best round
 * @param maxNanos of a block, in the worst round
 * @param ratio speed as a fraction of the floor's, median of the rounds' ratios; 1 for a floor itself
 * @param ratioMin the smallest ratio of a round
 * @param ratioMax the largest ratio of a round
 */
public record BenchRow(
        String what,
        String floor,
        int blockBytes,
        int blocksPerCall,
        int rounds,
        double medianNanos,
        double minNanos,
        double maxNanos,
        double ratio,
        double ratioMin,
        double ratioMax) {

    /** Bytes a second at the median, in GB (10^9). */
    public double gigabytesPerSecond() {
        return blockBytes / medianNanos;
    }

    static BenchRow ofFloor(String what, int blockBytes, int blocksPerCall, double[] nanos) {
        return of(what, "", blockBytes, blocksPerCall, nanos, nanos);
    }

    /** The arrays hold nanoseconds of a block, round by round. */
    static BenchRow of(
            String what, String floor, int blockBytes, int blocksPerCall, double[] nanos, double[] floorNanos) {
        double[] ratios = new double[nanos.length];
        for (int round = 0; round < nanos.length; round++) {
            ratios[round] = floorNanos[round] / nanos[round];
        }
        return new BenchRow(
                what,
                floor,
                blockBytes,
                blocksPerCall,
                nanos.length,
                median(nanos),
                Arrays.stream(nanos).min().orElseThrow(),
                Arrays.stream(nanos).max().orElseThrow(),
                median(ratios),
                Arrays.stream(ratios).min().orElseThrow(),
                Arrays.stream(ratios).max().orElseThrow());
    }

    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
}
