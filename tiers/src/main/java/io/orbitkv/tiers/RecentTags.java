package io.orbitkv.tiers;

import org.agrona.collections.LongHashSet;

/**
 * Tags seen lately, at least so many and at most twice as many: two sets, of which the older one is emptied when the
 * younger is full. Its memory is fixed when it is made. One thread.
 */
final class RecentTags implements SeenTags {
    private static final float LOAD = 0.6f;

    private final int turnTags;
    private LongHashSet young;
    private LongHashSet old;

    RecentTags(int turnTags) {
        this.turnTags = turnTags;
        this.young = new LongHashSet(turnTags + 1, LOAD, false);
        this.old = new LongHashSet(turnTags + 1, LOAD, false);
    }

    @Override
    public boolean seen(long tag) {
        return young.contains(tag) || old.contains(tag);
    }

    /** Remembers a tag as the latest; whether it was known. */
    boolean see(long tag) {
        if (young.contains(tag)) {
            return true;
        }
        boolean known = old.contains(tag);
        if (young.size() == turnTags) {
            LongHashSet emptied = old;
            emptied.clear();
            old = young;
            young = emptied;
        }
        young.add(tag);
        return known;
    }
}
