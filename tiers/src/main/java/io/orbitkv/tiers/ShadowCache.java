package io.orbitkv.tiers;

import org.agrona.collections.Long2LongHashMap;

/**
 * A cache of tags without blocks, evicted by second chance: what a tier of so many blocks would hold. Its memory is
 * fixed when it is made. One thread.
 */
final class ShadowCache {
    private static final float LOAD = 0.6f;
    private static final long ABSENT = -1;

    private final long[] tags;
    private final boolean[] used;
    private final Long2LongHashMap places;
    private int filled;
    private int hand;

    ShadowCache(int capacity) {
        this.tags = new long[capacity];
        this.used = new boolean[capacity];
        this.places = new Long2LongHashMap((int) (capacity / LOAD) + 2, LOAD, ABSENT);
    }

    boolean isFull() {
        return filled == tags.length;
    }

    boolean contains(long tag) {
        return places.containsKey(tag);
    }

    /** Whether a tag is there; it is used then. */
    boolean use(long tag) {
        long place = places.get(tag);
        if (place == ABSENT) {
            return false;
        }
        used[(int) place] = true;
        return true;
    }

    /** Takes in a tag that is absent; when it is full, the first one under the hand that was not used leaves. */
    void add(long tag) {
        int place;
        if (filled < tags.length) {
            place = filled++;
        } else {
            while (used[hand]) {
                used[hand] = false;
                hand = hand + 1 == tags.length ? 0 : hand + 1;
            }
            place = hand;
            hand = hand + 1 == tags.length ? 0 : hand + 1;
            places.remove(tags[place]);
        }
        tags[place] = tag;
        used[place] = false;
        places.put(tag, place);
    }
}
