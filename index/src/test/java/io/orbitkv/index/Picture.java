package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongPredicate;

/**
 * What a listener believes of an index: it walks over all blocks, a few runs at a time while the index goes on, then applies
 * what it was told since it began, and from then on what it is told.
 */
final class Picture implements BlockWatch {
    /** Clears are marked so among events. */
    private static final long CLEARED = 0;

    private record Told(long key0, boolean isStored) {}

    private final PrefixIndex index;
    private final Set<Long> believed = new HashSet<>();
    private final Map<Long, Long> key1s = new HashMap<>();
    private final List<Told> sinceBegin = new ArrayList<>();
    private final LongPredicate isPresent;
    private long cursor;
    private boolean walking;

    /** Whether blocks on NVMe can be read. */
    boolean served = true;

    /**
     * Believes nothing yet.
     *
     * @param isPresent whether a key's block is in some tier, by its first 8 bytes
     */
    Picture(PrefixIndex index, LongPredicate isPresent) {
        this.index = index;
        this.isPresent = isPresent;
    }

    /** Starts over, as behind a gap. */
    void begin() {
        index.watch(this);
        believed.clear();
        sinceBegin.clear();
        cursor = 0;
        walking = true;
    }

    /** Walks on; whether the picture is whole now. */
    boolean walk(int runsMax) {
        if (walking) {
            cursor = index.walk(cursor, runsMax, this::serves, (namespace, key0, key1) -> {
                assertTrue(isPresent.test(key0), "a block is listed that is gone");
                key1s.put(key0, key1);
                believed.add(key0);
            });
            if (cursor == 0) {
                walking = false;
                sinceBegin.forEach(this::apply);
            }
        }
        return !walking;
    }

    boolean isWhole() {
        return !walking;
    }

    /** Told by the store, not by the index. */
    void cleared() {
        tell(new Told(CLEARED, false));
    }

    /** A block of an earlier life came; a listener would begin anew once all have. */
    void recovered(long key0, long key1) {
        stored(0, key0, key1, 0, 0);
    }

    @Override
    public void stored(int namespace, long key0, long key1, long key2, long key3) {
        key1s.put(key0, key1);
        tell(new Told(key0, true));
    }

    @Override
    public void removed(int namespace, long key0, long key1) {
        assertTrue(!isPresent.test(key0), "a block is said to be gone that is there");
        assertEquals(key1s.getOrDefault(key0, key1), key1, "it is another block");
        tell(new Told(key0, false));
    }

    private void tell(Told told) {
        if (walking) {
            sinceBegin.add(told);
        } else {
            apply(told);
        }
    }

    private void apply(Told told) {
        if (told.isStored()) {
            believed.add(told.key0());
        } else if (told.key0() == CLEARED) {
            believed.clear();
        } else {
            believed.remove(told.key0());
        }
    }

    @Override
    public boolean serves(long nvmeExtent) {
        return served;
    }

    boolean believes(long key0) {
        return believed.contains(key0);
    }

    Set<Long> believed() {
        return believed;
    }
}
