package io.orbitkv.bench.simulate;

import java.util.Locale;

/** What can be simulated at one capacity. */
public enum SimPolicy {
    /** One tier that knows the future. */
    BELADY,
    /** One tier, single blocks: what came first leaves first. */
    FIFO,
    /** One tier, single blocks: what was not used for the longest time leaves first. */
    LRU,
    /** LRU in which the tail of a request leaves before its head. */
    LRU_TAIL_FIRST,
    /** One tier, single blocks: what came first leaves first, but used blocks get another turn. */
    CLOCK,
    /** One tier of segments of 8 blocks: second chance in place. */
    SECOND_CHANCE_8,
    /** One tier of segments of 32 blocks: second chance in place. */
    SECOND_CHANCE_32,
    /** One tier of segments of 8 blocks: the least recently used one leaves as a whole. */
    SEGMENT_LRU_8,
    /** One tier of segments of 32 blocks: the least recently used one leaves as a whole. */
    SEGMENT_LRU_32,
    /** Host memory and a drive, second chance of 8 blocks a segment: everything is written. */
    TWO_TIERS_ALL,
    /** Host memory and a drive: what is used a second time is written. */
    TWO_TIERS_REUSE,
    /** Host memory and a drive: the duel decides what is written. */
    TWO_TIERS_DUEL;

    /**
     * Whether there is host memory beside the capacity.
     *
     * @return true for host memory and a drive
     */
    public boolean hasHost() {
        return compareTo(TWO_TIERS_ALL) >= 0;
    }

    /**
     * The name in tables and JSON.
     *
     * @return lower case, with hyphens
     */
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
