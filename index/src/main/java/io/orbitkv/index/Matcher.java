package io.orbitkv.index;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryRegion;
import java.lang.invoke.VarHandle;

/**
 * Finds the longest prefix of given keys that is present: the readers' side of the index, without lock or allocation.
 *
 * <p>It looks up keys a run's length apart, up to {@link Match#AHEAD_MAX} at once, so that their cache misses overlap,
 * and compares what lies in between. Where that ends off the stride (a fork, a short run) it looks up the key there and
 * starts to look ahead anew. What a walk reads counts only if the run did not change meanwhile; when it did, or when a
 * look-up in passing found nothing, the careful look-up of {@link #locate} decides.
 */
final class Matcher {
    private static final int AHEAD_GROWTH = 4;
    private static final int TAG_IN_KEY = 8;

    /** Looks before a reader that is overtaken again and again gives up with a miss; some 0.1 s. */
    private static final int LOOKS_MAX = 100_000;

    private static final int LOOKS_BEFORE_YIELD = 64;

    /**
     * Looks that must find the same place with the same other key in it before a reader believes that two keys begin
     * with the same 8 bytes: a run that moved away and back in between may look like that once.
     */
    private static final int OTHERS_TO_BELIEVE = 3;

    /** A walk found no block because the memory changed, or is not what the place promised. */
    private static final int UNSTABLE = -1;

    /** A walk found another block at the place, and nothing changed meanwhile. */
    private static final int OTHER = -2;

    /** Set in a walk's result when the match ends behind the blocks walked. */
    private static final int ENDS = 1 << 30;

    private final Directory directory;

    /** The directory where it is the table of the hot path, else null: its calls in there stay direct ones. */
    private final OpenAddressing table;

    private final Runs runs;
    private final RunMemory slabs;
    private final MemoryRegion memory;
    private final Generations hostGenerations;
    private final Generations nvmeGenerations;

    Matcher(Directory directory, Runs runs, Generations host, Generations nvme) {
        this.directory = directory;
        this.table = directory instanceof OpenAddressing open ? open : null;
        this.runs = runs;
        this.slabs = runs.slabs();
        this.memory = runs.memory();
        this.hostGenerations = host;
        this.nvmeGenerations = nvme;
    }

    /** Matches the keys that {@code into} has begun with. */
    int match(int namespace, long salt, int count, Match into) {
        int at = 0;
        int ahead = 1;
        while (at < count) {
            int looks = Math.min(ahead, (count - at + Runs.BLOCKS_MAX - 1) / Runs.BLOCKS_MAX);
            lookUp(salt, at, looks, into);
            int stride = at;
            int consumed = 0;
            fetch(namespace, at, looks, count, into);
            while (consumed < looks && at == stride) {
                int fetched = into.fetched[consumed];
                int walked = fetched > 0 ? accept(at, fetched, consumed, into) : UNSTABLE;
                if (walked < 0) {
                    walked = locate(into.hashes[consumed], namespace, at, count, consumed, into);
                }
                at += walked & ~ENDS;
                if ((walked & ENDS) != 0) {
                    into.length = at;
                    return at;
                }
                stride += Runs.BLOCKS_MAX;
                consumed++;
            }
            ahead = consumed < looks ? consumed : Math.min(Match.AHEAD_MAX, ahead * AHEAD_GROWTH);
        }
        into.length = at;
        return at;
    }

    /** Looks up keys a stride apart, in three passes, so that the misses of each pass overlap. */
    private void lookUp(long salt, int at, int looks, Match into) {
        if (table == null) {
            lookUpPlainly(salt, at, looks, into);
            return;
        }
        for (int k = 0; k < looks; k++) {
            long key0 = into.keys.getLong((at + k * Runs.BLOCKS_MAX) * PrefixIndex.KEY_BYTES);
            long hash = PrefixIndex.hash(key0, salt);
            long slot = table.home(hash);
            into.hashes[k] = hash;
            into.slots[k] = slot;
            into.touched += table.touch(slot);
        }
        for (int k = 0; k < looks; k++) {
            into.places[k] = table.probe(into.hashes[k], into.slots[k]);
        }
        for (int k = 1; k < looks; k++) {
            long place = into.places[k];
            if (place != Place.NONE) {
                long block = Runs.block(place);
                into.touched += memory.getLong(Runs.base(place))
                        + memory.getLong(block)
                        + memory.getLong(block + RunMemory.UNIT_BYTES);
            }
        }
    }

    /** Looks up keys a stride apart in any directory. */
    private void lookUpPlainly(long salt, int at, int looks, Match into) {
        for (int k = 0; k < looks; k++) {
            long key0 = into.keys.getLong((at + k * Runs.BLOCKS_MAX) * PrefixIndex.KEY_BYTES);
            long hash = PrefixIndex.hash(key0, salt);
            long place = directory.find(hash);
            into.hashes[k] = hash;
            into.places[k] = place == Directory.AGAIN ? Place.NONE : place; // the careful look-up asks again
        }
    }

    /**
     * Copies the rows of the runs looked up, each to where it belongs if those before it are whole; one after the other
     * without a look at them, so that the processor reads the next run while it still waits for this one.
     */
    private void fetch(int namespace, int at, int looks, int count, Match into) {
        for (int k = 0; k < looks; k++) {
            into.fetched[k] = fetch(into.places[k], namespace, at + k * Runs.BLOCKS_MAX, count, k, into);
        }
    }

    /** Copies the rows of a run from a place on; how many, or UNSTABLE, or OTHER where it is no place of these keys. */
    private int fetch(long place, int namespace, int at, int count, int look, Match into) {
        if (place == Place.NONE) {
            return UNSTABLE;
        }
        long life = slabs.life(place);
        if (!RunMemory.holds(life, place)) {
            return UNSTABLE;
        }
        long base = Runs.base(place);
        long sequence = memory.getLongAcquire(base + Runs.SEQUENCE);
        if ((sequence & 1) != 0) {
            return UNSTABLE;
        }
        // Where the memory changes its class right now, the count may be any number.
        int blocks = Math.min(memory.getIntAcquire(base + Runs.COUNT), RunMemory.capacity(Place.sizeClass(place)));
        int inRun = blocks - Place.offset(place);
        int most = memory.getInt(base + Runs.NAMESPACE) == namespace ? Math.min(inRun, count - at) : 0;
        if (most > 0) {
            memory.copyTo(Runs.block(place), into.rows, at * Match.ROW_LONGS, most * Match.ROW_LONGS);
            if (into.sizes != null) {
                memory.copyTo(Runs.sizeOffset(place), into.sizes, at, most);
            }
            into.hostTurns[look] = memory.getLong(base + Runs.HOST_TURNS) >>> Place.offset(place);
            into.nvmeTurns[look] = memory.getLong(base + Runs.NVME_TURNS) >>> Place.offset(place);
        }
        VarHandle.acquireFence(); // all of the above was read before this second look
        if (memory.getLong(base + Runs.SEQUENCE) != sequence || slabs.life(place) != life) {
            return UNSTABLE;
        }
        return most <= 0 ? OTHER : most;
    }

    /**
     * Walks the run at a place for as long as its tags are those of the keys and its blocks live.
     *
     * @return blocks matched, with {@link #ENDS} set where the match ends; 0 only with ENDS; or UNSTABLE or OTHER
     */
    private int walk(long place, int namespace, int at, int count, int look, Match into) {
        int fetched = fetch(place, namespace, at, count, look, into);
        return fetched > 0 ? accept(at, fetched, look, into) : fetched;
    }

    /**
     * How many rows from one on are those of the keys and have a live extent; their stale extents become
     * {@link Extent#NONE}. With {@link #ENDS} set where all extents of the next block are stale, OTHER where the first
     * row is another key's.
     *
     * <p>Blocks between two turns of both tiers share segments and generations, so that one look is for all of them.
     */
    private int accept(int at, int most, int look, Match into) {
        int same = sameKeys(at, most, into);
        if (same == 0) {
            return OTHER;
        }
        long turns = into.hostTurns[look] | into.nvmeTurns[look];
        int block = 0;
        while (block < same) {
            long later = block + 1 == Runs.BLOCKS_MAX ? 0 : turns >>> block + 1 << block + 1;
            int end = Math.min(same, Long.numberOfTrailingZeros(later));
            boolean lives = isLive(hostGenerations, Match.ROW_HOST, at + block, at + end, into.rows)
                    | isLive(nvmeGenerations, Match.ROW_NVME, at + block, at + end, into.rows);
            if (!lives) {
                return block | ENDS;
            }
            block = end;
        }
        return same;
    }

    /**
     * How many rows from one on have the tag of their key. A key names all that comes before it, so where the last is the
     * same, all are; only where it is not, the place is looked for at which the two part.
     */
    private int sameKeys(int at, int most, Match into) {
        if (isSame(at + most - 1, into)) {
            return most;
        }
        int same = 0;
        while (isSame(at + same, into)) {
            same++;
        }
        return same;
    }

    private static boolean isSame(int block, Match into) {
        return into.rows[block * Match.ROW_LONGS + Match.ROW_TAG]
                == into.keys.getLong(block * PrefixIndex.KEY_BYTES + TAG_IN_KEY);
    }

    /** Whether extents of one segment and generation are live; stale ones become {@link Extent#NONE} in their rows. */
    private static boolean isLive(Generations generations, int column, int from, int to, long[] rows) {
        long extent = rows[from * Match.ROW_LONGS + column];
        if (extent == Extent.NONE || Runs.isLive(generations, extent)) {
            return extent != Extent.NONE;
        }
        for (int block = from; block < to; block++) {
            rows[block * Match.ROW_LONGS + column] = Extent.NONE;
        }
        return false;
    }

    /** The careful look-up: as {@link #walk}, but what it does not find is certainly absent. */
    private int locate(long hash, int namespace, int at, int count, int look, Match into) {
        long other = Place.NONE;
        int others = 0;
        for (int tried = 0; tried < LOOKS_MAX; tried++) {
            long place = directory.find(hash);
            if (place == Place.NONE) {
                return ENDS;
            }
            if (place != Directory.AGAIN) {
                int walked = walk(place, namespace, at, count, look, into);
                if (walked >= 0) {
                    return walked;
                }
                others = walked != OTHER ? 0 : place == other ? others + 1 : 1;
                other = place;
                if (others == OTHERS_TO_BELIEVE) {
                    return ENDS;
                }
            }
            pause(tried);
        }
        return ENDS;
    }

    /** Whether a key is present and live. */
    boolean contains(long hash, int namespace, long tag) {
        long other = Place.NONE;
        int others = 0;
        for (int look = 0; look < LOOKS_MAX; look++) {
            long place = directory.find(hash);
            if (place == Place.NONE) {
                return false;
            }
            if (place != Directory.AGAIN) {
                int seen = look(place, namespace, tag);
                if (seen >= 0) {
                    return seen > 0;
                }
                others = seen != OTHER ? 0 : place == other ? others + 1 : 1;
                other = place;
                if (others == OTHERS_TO_BELIEVE) {
                    return false;
                }
            }
            pause(look);
        }
        return false;
    }

    /** 1: the block at a place has this tag and is live; 0: is dead; or UNSTABLE or OTHER. */
    private int look(long place, int namespace, long tag) {
        long life = slabs.life(place);
        if (!RunMemory.holds(life, place)) {
            return UNSTABLE;
        }
        long base = Runs.base(place);
        long sequence = memory.getLongAcquire(base + Runs.SEQUENCE);
        boolean same = Place.offset(place) < memory.getIntAcquire(base + Runs.COUNT)
                && memory.getInt(base + Runs.NAMESPACE) == namespace
                && memory.getLong(Runs.block(place) + Runs.TAG) == tag;
        boolean live = same && runs.isLive(place);
        VarHandle.acquireFence();
        if ((sequence & 1) != 0 || memory.getLong(base + Runs.SEQUENCE) != sequence || slabs.life(place) != life) {
            return UNSTABLE;
        }
        return same ? (live ? 1 : 0) : OTHER;
    }

    private static void pause(int look) {
        if (look < LOOKS_BEFORE_YIELD) {
            Thread.onSpinWait();
        } else {
            Thread.yield();
        }
    }
}
