package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import java.lang.invoke.VarHandle;
import java.util.function.BooleanSupplier;

/**
 * The directory of the hot path: open addressing with linear probing, at most {@link #LOAD_MAX_PERCENT} full.
 *
 * <pre>
 * slot, 16 bytes:   0 8 hash    never 0 in a used slot; written last, with release
 *                   8 8 place   see {@link Place}
 * stripe, 8 bytes:  changes of its {@link #STRIPE_SLOTS} slots that moved keys; odd while one is under way
 * </pre>
 *
 * <p>A removed key leaves no tombstone: the keys behind it move up, so that the table never rots. A reader who is
 * overtaken by such a move either finds a place that is not its key's, which the tag there tells, or misses a key that
 * is present: it believes a miss only if the stripes that it passed did not change. {@link #probe} doesn't check that
 * and costs less; {@link #find} does.
 *
 * <p>Single writer; any number of readers without lock. The slot of a hash is chosen with a random odd multiplier, so
 * that nobody can choose keys that crowd.
 */
final class OpenAddressing implements Directory {
    static final int LOAD_MAX_PERCENT = 60;
    static final int STRIPE_SLOTS = 4096;

    private static final int SLOT_BYTES = 16;
    private static final int SLOT_SHIFT = 4;
    private static final int PLACE = 8;
    private static final int STRIPE_SHIFT = 12;
    private static final int SLOTS_MIN = 16;
    private static final long EMPTY = 0;

    private final MemoryRegion slots;
    private final MemoryRegion stripes;
    private final long slotCount;
    private final long multiplier;

    OpenAddressing(long keysMax, long seed) {
        this.slotCount = Math.max(SLOTS_MIN, keysMax * 100 / LOAD_MAX_PERCENT + 1);
        assert slotCount < 1L << 31 : slotCount;
        this.multiplier = seed | 1;
        this.slots = MemoryRegion.anonymous(slotCount * SLOT_BYTES, PageKind.TRANSPARENT_HUGE, MemoryPurpose.INDEX);
        this.stripes = MemoryRegion.anonymous(
                ((slotCount >>> STRIPE_SHIFT) + 1) * Long.BYTES, PageKind.SMALL, MemoryPurpose.INDEX);
    }

    /** The slot at which the search for a hash begins. */
    long home(long hash) {
        return (hash * multiplier >>> 33) * slotCount >>> 31;
    }

    /** Reads a slot's hash, to have its cache line near soon. */
    long touch(long slot) {
        return slots.getLong(slot << SLOT_SHIFT);
    }

    /** The place of a hash as seen in passing: a reader overtaken by a move may get NONE or another key's place. */
    long probe(long hash, long home) {
        long slot = home;
        for (long n = 0; n < slotCount; n++) {
            long found = slots.getLongAcquire(slot << SLOT_SHIFT); // partner: the release in put and remove
            if (found == hash) {
                return slots.getLongAcquire((slot << SLOT_SHIFT) + PLACE);
            }
            if (found == EMPTY) {
                return Place.NONE;
            }
            slot = following(slot);
        }
        return Place.NONE;
    }

    @Override
    public long find(long hash) {
        long slot = home(hash);
        long stripe = slot >>> STRIPE_SHIFT;
        long changes = changes(stripe);
        for (long n = 0; n < slotCount; n++) {
            long found = slots.getLongAcquire(slot << SLOT_SHIFT);
            if (found == hash) {
                return slots.getLongAcquire((slot << SLOT_SHIFT) + PLACE);
            }
            if (found == EMPTY) {
                break;
            }
            slot = following(slot);
            if (slot >>> STRIPE_SHIFT != stripe) {
                // The next stripe's counter is read before the last one's is compared: a move across both of them
                // shows in one or the other.
                long nextStripe = slot >>> STRIPE_SHIFT;
                long nextChanges = changes(nextStripe);
                if (!unchanged(stripe, changes)) {
                    return AGAIN;
                }
                stripe = nextStripe;
                changes = nextChanges;
            }
        }
        return unchanged(stripe, changes) ? Place.NONE : AGAIN;
    }

    private long changes(long stripe) {
        return stripes.getLongAcquire(stripe * Long.BYTES);
    }

    private boolean unchanged(long stripe, long changes) {
        VarHandle.acquireFence(); // the slots were read before this second look
        return (changes & 1) == 0 && changes(stripe) == changes;
    }

    private long following(long slot) {
        return slot + 1 == slotCount ? 0 : slot + 1;
    }

    // ---- the writer ----

    // Loops over keys, not calls a key: they are what fills the index at a start, when little is compiled.

    /** As short as can be, so that many cache misses are under way at once. */
    @Override
    public long approach(long[] key0s, int from, int count, long salt) {
        long near = 0;
        for (int i = from; i < from + count; i++) {
            near += slots.getLong(home(PrefixIndex.hash(key0s[i], salt)) << SLOT_SHIFT);
        }
        return near;
    }

    @Override
    public int absent(long[] key0s, int from, int count, long salt) {
        for (int i = 0; i < count; i++) {
            long hash = PrefixIndex.hash(key0s[from + i], salt);
            long slot = home(hash);
            for (long found = slots.getLong(slot << SLOT_SHIFT);
                    found != EMPTY;
                    found = slots.getLong(slot << SLOT_SHIFT)) {
                if (found == hash) {
                    return i;
                }
                slot = following(slot);
            }
        }
        return count;
    }

    @Override
    public int put(long[] key0s, int from, int count, long salt, long place) {
        for (int i = 0; i < count; i++) {
            long hash = PrefixIndex.hash(key0s[from + i], salt);
            long slot = home(hash);
            for (long found = slots.getLong(slot << SLOT_SHIFT);
                    found != EMPTY;
                    found = slots.getLong(slot << SLOT_SHIFT)) {
                if (found == hash) {
                    return i;
                }
                slot = following(slot);
            }
            slots.putLong((slot << SLOT_SHIFT) + PLACE, place + i);
            slots.putLongRelease(slot << SLOT_SHIFT, hash);
        }
        return count;
    }

    @Override
    public long get(long hash) {
        return probe(hash, home(hash));
    }

    @Override
    public void put(long hash, long place) {
        long slot = home(hash);
        while (slots.getLong(slot << SLOT_SHIFT) != EMPTY) {
            slot = following(slot);
        }
        slots.putLong((slot << SLOT_SHIFT) + PLACE, place);
        slots.putLongRelease(slot << SLOT_SHIFT, hash);
    }

    @Override
    public void repoint(long hash, long place) {
        slots.putLongRelease((slotOf(hash) << SLOT_SHIFT) + PLACE, place); // partner: the acquire in probe and find
    }

    /** The keys behind the one removed move up. */
    @Override
    public void remove(long hash) {
        long first = slotOf(hash);
        long end = following(first);
        while (slots.getLong(end << SLOT_SHIFT) != EMPTY) {
            end = following(end);
        }
        count(first, end);
        VarHandle.storeStoreFence(); // partner: the acquire fence in unchanged()
        long hole = first;
        for (long slot = following(first); slot != end; slot = following(slot)) {
            long moving = slots.getLong(slot << SLOT_SHIFT);
            // A key may move up as long as it doesn't come before the slot at which its search begins.
            if (distance(home(moving), slot) >= distance(hole, slot)) {
                slots.putLong((hole << SLOT_SHIFT) + PLACE, slots.getLong((slot << SLOT_SHIFT) + PLACE));
                slots.putLongRelease(hole << SLOT_SHIFT, moving);
                hole = slot;
            }
        }
        slots.putLongRelease(hole << SLOT_SHIFT, EMPTY);
        count(first, end);
    }

    /** Counts one step of a change in every stripe of a range of slots. */
    private void count(long first, long end) {
        long last = end >>> STRIPE_SHIFT;
        for (long stripe = first >>> STRIPE_SHIFT; ; stripe = stripe + 1 <= lastStripe() ? stripe + 1 : 0) {
            stripes.putLongRelease(stripe * Long.BYTES, stripes.getLong(stripe * Long.BYTES) + 1);
            if (stripe == last) {
                return;
            }
        }
    }

    private long lastStripe() {
        return slotCount - 1 >>> STRIPE_SHIFT;
    }

    private long distance(long from, long to) {
        return to >= from ? to - from : to - from + slotCount;
    }

    private long slotOf(long hash) {
        long slot = home(hash);
        while (true) {
            long found = slots.getLong(slot << SLOT_SHIFT);
            if (found == hash) {
                return slot;
            }
            if (found == EMPTY) {
                throw new OrbitKvException(ErrorCode.BUG, "the directory of the index lost a key that it should hold");
            }
            slot = following(slot);
        }
    }

    /** Keys come to lie anywhere: many of them touch every page, a few do not. */
    @Override
    public void makeReady(long keys, BooleanSupplier isEnded) {
        if (keys >= slots.bytes() / MemoryRegion.PAGE_BYTES) {
            slots.populate(slots.bytes(), isEnded);
        }
    }

    @Override
    public long bytes() {
        return slots.bytes() + stripes.bytes();
    }

    @Override
    public long hugeBytes() {
        return slots.hugeBytes();
    }

    @Override
    public void close() {
        slots.close();
        stripes.close();
    }
}
