package io.orbitkv.tiers;

/** Knows which blocks were used before, by 8-byte tags of their keys. */
@FunctionalInterface
public interface SeenTags {
    /**
     * Whether a block was used before. Any thread, without allocation once warm.
     *
     * @param tag of its key
     * @return false also for what was forgotten
     */
    boolean seen(long tag);
}
