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

    /** Of a run: header, pages, extents of the first blocks. */
    private static final int APPROACHED_LINES = 6;

    /** Where extents turn more often, the processor sees by itself what is read next. */
    private static final int APPROACHED_TURNS = 4;

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
            fetch(namespace, at, looks, count, into);
            int stride = at;
            int consumed = 0;
            boolean stable = true;
            while (consumed < looks && at == stride && stable) {
                int fetched = into.fetched[consumed];
                int walked = fetched > 0 ? accept(at, fetched, consumed, into) : UNSTABLE;
                if (walked < 0) {
                    walked = locate(into.hashes[consumed], namespace, at, count, consumed, into);
                    stable = false; // and what was fetched behind it is written over
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
        long near = 0;
        for (int k = 0; k < looks; k++) {
            long key0 = into.keys.getLong((at + k * Runs.BLOCKS_MAX) * PrefixIndex.KEY_BYTES);
            long hash = PrefixIndex.hash(key0, salt);
            long slot = table.home(hash);
            into.hashes[k] = hash;
            into.slots[k] = slot;
            near += table.touch(slot);
        }
        for (int k = 0; k < looks; k++) {
            into.places[k] = table.probe(into.hashes[k], into.slots[k]);
        }
        for (int k = 0; k < looks; k++) {
            near += approach(into.places[k]);
        }
        for (int k = 0; k < looks; k++) {
            near += approachTurning(into.places[k]);
        }
        into.touched += near;
    }

    /** Touches what a match reads first of a run: header, pages, extents of the first block. */
    private long approach(long place) {
        return place == Place.NONE ? 0 : memory.touch(Runs.base(place), APPROACHED_LINES);
    }

    /** Touches the extents at the first turns of a run; what is no turn in truth, since the run changes, costs time only. */
    private long approachTurning(long place) {
        if (place == Place.NONE) {
            return 0;
        }
        long extents = Runs.extents(place);
        long turns = memory.getLong(Runs.base(place) + Runs.TURNS) >>> Place.offset(place) & ~1;
        long near = 0;
        for (int n = 0; n < APPROACHED_TURNS && turns != 0; n++) {
            near += memory.getLong(extents + (long) Long.numberOfTrailingZeros(turns) * Runs.EXTENTS_BYTES);
            turns &= turns - 1;
        }
        return near;
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
     * Copies what the runs looked up say of their blocks, each to where it belongs if those before it are whole; one
     * after the other without a look at it, so that the processor reads the next run while it still waits for this one.
     */
    private void fetch(int namespace, int at, int looks, int count, Match into) {
        int turn = into.turned;
        for (int k = 0; k < looks; k++) {
            int fetched = fetch(into.places[k], namespace, at + k * Runs.BLOCKS_MAX, count, k, turn, into);
            into.fetched[k] = fetched;
            turn += fetched > 0 ? Long.bitCount(into.fetchedTurns[k]) : 0;
        }
        dropStale(into.turned, turn, into);
    }

    /** Copies a run's blocks from a place on; how many, or UNSTABLE, or OTHER where it is no place of these keys. */
    private int fetch(long place, int namespace, int at, int count, int look, int turn, Match into) {
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
        int offset = Place.offset(place);
        // Where the memory changes its class right now, the count may be any number.
        int inRun =
                Math.min(memory.getIntAcquire(base + Runs.COUNT), RunMemory.capacity(Place.sizeClass(place))) - offset;
        int most = memory.getInt(base + Runs.NAMESPACE) == namespace ? Math.min(inRun, count - at) : 0;
        if (most > 0) {
            memory.copyTo(Runs.pages(place), into.pages, at, most);
            if (into.sizes != null) {
                memory.copyTo(Runs.sizeOffset(place), into.sizes, at, most);
            }
            long turns = (memory.getLong(base + Runs.TURNS) >>> offset | 1) & first(most);
            copyTurning(Runs.extents(place), turns, turn, into);
            into.fetchedTurns[look] = turns;
            into.lastTags[look] = most == inRun
                    ? memory.getLong(base + Runs.LAST_TAG)
                    : memory.getLong(Runs.tagOffset(place) + (most - 1L) * Long.BYTES);
        }
        VarHandle.acquireFence(); // all of the above was read before this second look
        if (memory.getLong(base + Runs.SEQUENCE) != sequence || slabs.life(place) != life) {
            return UNSTABLE;
        }
        into.sequences[look] = sequence;
        into.lives[look] = life;
        return most <= 0 ? OTHER : most;
    }

    private void copyTurning(long extents, long turns, int turn, Match into) {
        int to = 2 * turn;
        for (long left = turns; left != 0; left &= left - 1) {
            long from = extents + (long) Long.numberOfTrailingZeros(left) * Runs.EXTENTS_BYTES;
            into.extents[to++] = memory.getLong(from + Runs.HOST);
            into.extents[to++] = memory.getLong(from + Runs.NVME);
        }
    }

    /**
     * Of turns fetched, stale extents become {@link Extent#NONE}. Blocks between two turns share segments and generations,
     * so that one look is for all of them.
     */
    private void dropStale(int fromTurn, int toTurn, Match into) {
        long[] extents = into.extents;
        for (int i = 2 * fromTurn; i < 2 * toTurn; i += 2) {
            extents[i] = hostGenerations.isLive(extents[i]) ? extents[i] : Extent.NONE;
            extents[i + 1] = nvmeGenerations.isLive(extents[i + 1]) ? extents[i + 1] : Extent.NONE;
        }
    }

    /** The bits of 1 to 64 blocks. */
    private static long first(int blocks) {
        return -1L >>> Long.SIZE - blocks;
    }

    /**
     * Walks the run at a place for as long as its tags are those of the keys and its blocks live.
     *
     * @return blocks matched, with {@link #ENDS} set where the match ends; 0 only with ENDS; or UNSTABLE or OTHER
     */
    private int walk(long place, int namespace, int at, int count, int look, Match into) {
        into.places[look] = place;
        int fetched = fetch(place, namespace, at, count, look, into.turned, into);
        if (fetched <= 0) {
            return fetched;
        }
        dropStale(into.turned, into.turned + Long.bitCount(into.fetchedTurns[look]), into);
        return accept(at, fetched, look, into);
    }

    /**
     * How many blocks fetched are those of the keys and have a live extent. With {@link #ENDS} set where all extents of
     * the next block are stale, OTHER where the first is another key's, UNSTABLE where the run has changed since.
     */
    private int accept(int at, int fetched, int look, Match into) {
        int same = sameKeys(at, fetched, look, into);
        if (same <= 0) {
            return same == 0 ? OTHER : UNSTABLE;
        }
        long turns = into.fetchedTurns[look] & first(same);
        int turn = into.turned;
        for (long left = turns; left != 0; left &= left - 1) {
            if ((into.extents[2 * turn] | into.extents[2 * turn + 1]) == Extent.NONE) {
                into.addTurns(at, turns & ~left);
                return Long.numberOfTrailingZeros(left) | ENDS;
            }
            turn++;
        }
        into.addTurns(at, turns);
        return same;
    }

    /**
     * How many blocks fetched have the tag of their key, or UNSTABLE. A key names all that comes before it, so where the
     * last is the same, all are; only where it is not, the place is looked for at which the two part.
     */
    private int sameKeys(int at, int fetched, int look, Match into) {
        if (into.lastTags[look] == tag(at + fetched - 1, into)) {
            return fetched;
        }
        long place = into.places[look];
        long tags = Runs.tagOffset(place);
        int same = 0;
        while (same < fetched && memory.getLong(tags + (long) same * Long.BYTES) == tag(at + same, into)) {
            same++;
        }
        VarHandle.acquireFence(); // the tags were read before this further look
        boolean changed = memory.getLong(Runs.base(place) + Runs.SEQUENCE) != into.sequences[look]
                || slabs.life(place) != into.lives[look];
        return changed ? UNSTABLE : same;
    }

    private static long tag(int block, Match into) {
        return into.keys.getLong(block * PrefixIndex.KEY_BYTES + TAG_IN_KEY);
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
                && memory.getLong(Runs.tagOffset(place)) == tag;
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
