package io.orbitkv.bench.simulate;

import io.orbitkv.tiers.AdmissionPolicy;
import io.orbitkv.tiers.EvictionPolicy;

/** Runs policies on the keys of one trace. Safe for several threads: each run has its own state. */
public final class Simulator {
    private static final int SMALL_SEGMENT_BLOCKS = 8;
    private static final int LARGE_SEGMENT_BLOCKS = 32;

    private final KeyTrace trace;
    private final double hostShare;
    private final double price;

    /**
     * Makes a simulator.
     *
     * @param trace whose keys to run
     * @param hostShare blocks of host memory for each block of the drive, for the policies that have both
     * @param price what a written block costs in the duel, in blocks of compute saved
     */
    public Simulator(KeyTrace trace, double hostShare, double price) {
        this.trace = trace;
        this.hostShare = hostShare;
        this.price = price;
    }

    /**
     * Runs the whole trace under one policy, from empty tiers.
     *
     * @param policy what to simulate
     * @param capacityBlocks blocks that the tier, or the drive, holds, at least 1
     * @return what came out, or null where so few blocks make no two segments
     */
    public SimResult run(SimPolicy policy, long capacityBlocks) {
        int blocks = (int) Math.min(capacityBlocks, trace.uniqueBlocks());
        return switch (policy) {
            case BELADY -> OneTier.belady(trace, blocks);
            case FIFO -> blocks(policy, BlockTier.Order.FIFO, blocks);
            case LRU, LRU_TAIL_FIRST -> blocks(policy, BlockTier.Order.LRU, blocks);
            case CLOCK -> blocks(policy, BlockTier.Order.CLOCK, blocks);
            case SECOND_CHANCE_8 ->
                segments(policy, EvictionPolicy.SECOND_CHANCE, capacityBlocks, SMALL_SEGMENT_BLOCKS);
            case SECOND_CHANCE_32 ->
                segments(policy, EvictionPolicy.SECOND_CHANCE, capacityBlocks, LARGE_SEGMENT_BLOCKS);
            case SEGMENT_LRU_8 -> segments(policy, EvictionPolicy.SEGMENT_LRU, capacityBlocks, SMALL_SEGMENT_BLOCKS);
            case SEGMENT_LRU_32 -> segments(policy, EvictionPolicy.SEGMENT_LRU, capacityBlocks, LARGE_SEGMENT_BLOCKS);
            case TWO_TIERS_ALL -> twoTiers(policy, AdmissionPolicy.ALL, capacityBlocks);
            case TWO_TIERS_REUSE -> twoTiers(policy, AdmissionPolicy.REUSE, capacityBlocks);
            case TWO_TIERS_DUEL -> twoTiers(policy, AdmissionPolicy.DUEL, capacityBlocks);
        };
    }

    /**
     * Runs the whole trace against a store, from empty tiers.
     *
     * @param store how the store is cut and what it does
     * @param name of it, for the result
     * @return what came out
     */
    public SimResult run(StoreShape store, String name) {
        return new TwoTiers(trace, store).run(name);
    }

    private SimResult blocks(SimPolicy policy, BlockTier.Order order, int capacityBlocks) {
        BlockTier tier = new BlockTier(order, capacityBlocks, trace.uniqueBlocks());
        return OneTier.run(trace, policy.label(), tier, capacityBlocks, policy == SimPolicy.LRU_TAIL_FIRST);
    }

    private SimResult segments(SimPolicy policy, EvictionPolicy order, long capacityBlocks, int segmentBlocks) {
        SegmentShape shape = SegmentShape.simple(cut(capacityBlocks), segmentBlocks);
        return shape == null
                ? null
                : OneTier.run(
                        trace, policy.label(), new SegmentTier(order, shape, trace), shape.capacityBlocks(), false);
    }

    private SimResult twoTiers(SimPolicy policy, AdmissionPolicy admission, long capacityBlocks) {
        SegmentShape nvme = SegmentShape.simple(cut(capacityBlocks), SMALL_SEGMENT_BLOCKS);
        if (nvme == null) {
            return null;
        }
        SegmentShape host = SegmentShape.simple(cut((long) (capacityBlocks * hostShare)), SMALL_SEGMENT_BLOCKS);
        StoreShape store = new StoreShape(
                host, nvme, EvictionPolicy.SECOND_CHANCE, EvictionPolicy.SECOND_CHANCE, admission, price, 0);
        return run(store, policy.label());
    }

    /** More than the trace's blocks makes no difference, two open segments aside; memory does. */
    private long cut(long blocks) {
        return Math.min(blocks, (long) trace.uniqueBlocks() + 2 * LARGE_SEGMENT_BLOCKS);
    }
}
