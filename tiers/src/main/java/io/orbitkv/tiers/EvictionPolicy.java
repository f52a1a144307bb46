package io.orbitkv.tiers;

/** Which segment of a tier leaves when room is needed, and what becomes of its used blocks. */
public enum EvictionPolicy {
    /**
     * The oldest segment of which less than half was used since its last turn; its used blocks are appended again. One of
     * which at least half was used stays where it is and gets another turn.
     */
    SECOND_CHANCE,
    /** The segment that was used least recently goes as a whole. */
    SEGMENT_LRU,
    /** The segment that was sealed first goes as a whole. */
    FIFO;

    VictimPolicy make() {
        return switch (this) {
            case SECOND_CHANCE -> new SecondChance();
            case SEGMENT_LRU -> new LeastRecentlyUsed();
            case FIFO -> new OldestFirst();
        };
    }
}
