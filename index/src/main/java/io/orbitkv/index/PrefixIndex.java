package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.Tier;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.LongPredicate;
import org.agrona.DirectBuffer;

/**
 * Answers which prefix of a prompt is stored, and where: every block's key to its extents, in native memory.
 *
 * <p>Consecutive blocks of a prefix stand together in <i>runs</i> of up to 64; a <i>directory</i> finds the run of any
 * key, so that a match can start at any block. A key has exactly one place: the first publisher wins for as long as its
 * block lives in some tier. Extents go stale with the generation of their segment, so that dropping a segment costs the
 * index nothing; a {@link #sweep} gives the places back later, and must complete before a generation wraps. A block
 * without a live extent is a hole, and ends a match.
 *
 * <p>A key is a hash over its parent's key, so equal keys have equal ancestors. A match compares 16 bytes of the first
 * key of each look-up and 8 bytes, bound to their position, of the last one of each run. It is a promise to be proved:
 * whoever reads the block checks the full key or the checksum that covers it.
 *
 * <p>Memory is reserved up front and bounded: the directory takes 16 bytes for each of {@code blocksMax / 0.6} slots,
 * runs take 45 bytes a block where full and 176 at worst. What doesn't fit is answered with
 * {@link Publication#FULL}, never with an exception.
 *
 * <p>Threads: {@link #match}, {@link #contains} and the counters may be called by any thread at any time, without lock
 * or allocation. All else is for one thread at a time: the caller holds the store's writer lock. {@link #close} when
 * nobody calls any more.
 */
public final class PrefixIndex implements AutoCloseable {
    /** Length of a key in bytes. */
    public static final int KEY_BYTES = 32;

    /** Most blocks that an index can be made for. */
    public static final long BLOCKS_MAX = 1L << 30;

    /** What {@link #recover} answers when the block is in the index now, and no other had to leave. */
    public static final int RECOVERED = -1;

    /** What {@link #recover} answers when the index has no room. */
    public static final int RECOVER_FULL = -2;

    /** What {@link #recover} answers when a later copy of the block is there already. */
    public static final int RECOVER_KEPT = -3;

    /** Most blocks that {@link #recoverNew} takes at once. */
    public static final int RECOVERED_MAX = Runs.BLOCKS_MAX;

    /** What became of a block that was to be published. */
    public enum Publication {
        /** It is in the index now. */
        PUBLISHED,
        /** Its key is there already, and live in some tier; nothing changed. */
        PRESENT,
        /** The index has no room for it; nothing changed. */
        FULL,
        /** The index holds another key that begins with the same 8 bytes, as keys that are no hashes may; nothing changed. */
        COLLIDES
    }

    private static final int TAG_IN_KEY = 8;
    private static final long NUMBER_SPREAD = 0x9E3779B97F4A7C15L;

    private final long blocksMax;
    private final Directory directory;
    private final Runs runs;
    private final NamespaceNumbers numbers;
    private final Matcher matcher;
    private final Sweeper sweeper;

    /** Blocks that have a place. Written by the one writer only. */
    private final AtomicLong blocks = new AtomicLong();

    // The block published last, whose successor usually comes next: saves the look-up of the parent.
    private long lastPlace = Place.NONE;
    private int lastNamespace;
    private long lastKey0;
    private long lastTag;

    private int expected = 1;

    /** Whom to tell of blocks that come and go; null: nobody. */
    private BlockWatch watch;

    /**
     * Creates an empty index, with the directory that {@link DirectoryKind#configured()} says.
     *
     * @param blocksMax most blocks that have a place in it at once, 1 to {@link #BLOCKS_MAX}
     * @param host the generations of the host tier's segments; outlives the index
     * @param nvme the generations of the NVMe tier's segments; outlives the index
     * @throws OrbitKvException {@link ErrorCode#OUT_OF_MEMORY} when the kernel refuses the reservation
     */
    public PrefixIndex(long blocksMax, Generations host, Generations nvme) {
        this(blocksMax, host, nvme, DirectoryKind.configured());
    }

    /**
     * Creates an empty index with a given directory.
     *
     * @param blocksMax most blocks that have a place in it at once, 1 to {@link #BLOCKS_MAX}
     * @param host the generations of the host tier's segments; outlives the index
     * @param nvme the generations of the NVMe tier's segments; outlives the index
     * @param kind how it finds the run of a key
     * @throws OrbitKvException {@link ErrorCode#OUT_OF_MEMORY} when the kernel refuses the reservation
     */
    public PrefixIndex(long blocksMax, Generations host, Generations nvme, DirectoryKind kind) {
        if (blocksMax < 1 || blocksMax > BLOCKS_MAX) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "an index holds 1 to " + BLOCKS_MAX + " blocks, asked for " + blocksMax);
        }
        this.blocksMax = blocksMax;
        NamespaceNumbers numbersOpened = null;
        Directory directoryOpened = null;
        Runs runsOpened = null;
        try {
            numbersOpened = new NamespaceNumbers();
            directoryOpened = Directory.create(kind, blocksMax);
            runsOpened = new Runs(blocksMax, host, nvme);
        } finally {
            if (runsOpened == null) {
                close(directoryOpened);
                close(numbersOpened);
            }
        }
        this.numbers = numbersOpened;
        this.directory = directoryOpened;
        this.runs = runsOpened;
        this.matcher = new Matcher(directory, runs, host, nvme);
        this.sweeper = new Sweeper(this, directory, runs, numbers);
    }

    /** The directory's hash of a key: never 0, different for each namespace. */
    static long hash(long key0, long salt) {
        long hash = key0 ^ salt;
        return hash == 0 ? 1 : hash;
    }

    /** What a namespace number adds to the hash of its keys. */
    static long salt(int namespace) {
        return mixed(namespace + 1);
    }

    static long mixed(long number) {
        long mixed = number * NUMBER_SPREAD;
        return mixed ^ mixed >>> 32;
    }

    // ---- any thread, no lock, no allocation ----

    /**
     * Finds the longest prefix of given keys that is present, from whatever block the keys begin at.
     *
     * @param namespace a number from {@link #newNamespace}; one that is retired matches nothing
     * @param keys keys of consecutive blocks, back to back
     * @param keysOffset where the first begins
     * @param count how many, at most {@code into.capacity()}
     * @param into filled for the blocks below the result
     * @return blocks matched: each has a live extent in some tier; extents that are stale are given as
     *     {@link Extent#NONE}
     */
    public int match(int namespace, DirectBuffer keys, int keysOffset, int count, Match into) {
        into.begin(keys, keysOffset, count);
        return numbers.isOpen(namespace) ? matcher.match(namespace, salt(namespace), count, into) : 0;
    }

    /** Whether a key is present and live in some tier. */
    public boolean contains(int namespace, DirectBuffer key, int keyOffset) {
        if (!numbers.isOpen(namespace)) {
            return false;
        }
        long key0 = key.getLong(keyOffset);
        return matcher.contains(hash(key0, salt(namespace)), namespace, key.getLong(keyOffset + TAG_IN_KEY));
    }

    /** Whether {@link #publish} would answer {@link Publication#COLLIDES}. The one writer's. */
    public boolean collides(int namespace, DirectBuffer key, int keyOffset) {
        long place = directory.get(hash(key.getLong(keyOffset), salt(namespace)));
        return place != Place.NONE && runs.tag(place) != key.getLong(keyOffset + TAG_IN_KEY);
    }

    /** Blocks that have a place: live ones, and dead ones not swept yet. */
    public long blocks() {
        return blocks.get();
    }

    /** Most blocks that can have a place at once. */
    public long blocksMax() {
        return blocksMax;
    }

    /** Runs in use. */
    public long runs() {
        return runs.runs();
    }

    /** Bytes reserved: the index never takes more. */
    public long bytes() {
        return directory.bytes() + runs.slabs().reservedBytes();
    }

    /** Bytes of the directory and of the memory that holds runs now. */
    public long usedBytes() {
        return directory.bytes() + runs.slabs().assignedBytes();
    }

    /** Bytes of the index that lie on huge pages now, from /proc/self/smaps: slow, for reports. */
    public long hugeBytes() {
        return directory.hugeBytes() + runs.memory().hugeBytes();
    }

    /** Sweeps that have looked at every run since the index was made. */
    public long completedSweeps() {
        return sweeper.completed();
    }

    // ---- one writer at a time ----

    /**
     * Hands out the number of a (namespace, epoch).
     *
     * @return a number of at least 0 that no block in the index has
     * @throws OrbitKvException {@link ErrorCode#OVER_LIMIT} when all numbers are in use
     */
    public int newNamespace() {
        return numbers.open(completedSweeps());
    }

    /** Makes every key of a number unreachable at once; sweeps free their places. */
    public void retire(int namespace) {
        numbers.retire(namespace, completedSweeps());
        lastPlace = Place.NONE;
    }

    /**
     * Says how many blocks of one prefix the next calls of {@link #publish} bring, so that a new run gets room for
     * them at once. Only a hint.
     */
    public void expect(int consecutiveBlocks) {
        expected = Math.max(1, Math.min(consecutiveBlocks, Runs.BLOCKS_MAX));
    }

    /**
     * Publishes a block that lies in one tier, unless its key is live already in any.
     *
     * <p>A block whose parent is the last of a run extends that run, others start one. A place whose extents are all
     * stale is taken over.
     *
     * @param namespace a number from {@link #newNamespace}
     * @param parent holds the key of the block before; null for a first block
     * @param parentOffset where it begins
     * @param key holds the block's key
     * @param keyOffset where it begins
     * @param bytes stored bytes
     * @param checksum over key and stored bytes
     * @param tier where it lies
     * @param extent at which extent, live
     */
    public Publication publish(
            int namespace,
            DirectBuffer parent,
            int parentOffset,
            DirectBuffer key,
            int keyOffset,
            int bytes,
            int checksum,
            Tier tier,
            long extent) {
        numbers.requireOpen(namespace);
        requireExtent(extent);
        long key0 = key.getLong(keyOffset);
        long tag = key.getLong(keyOffset + TAG_IN_KEY);
        long place = directory.get(hash(key0, salt(namespace)));
        if (place != Place.NONE) {
            if (runs.tag(place) != tag) {
                return Publication.COLLIDES; // the later one can't be held
            }
            if (runs.isLive(place)) {
                return Publication.PRESENT;
            }
            if (watch != null) {
                settle(place);
            }
            runs.overwrite(place, tier, extent, Runs.size(bytes, checksum));
            remember(place, namespace, key0, tag);
            tellStored(place, namespace, key, keyOffset);
            return Publication.PUBLISHED;
        }
        boolean hasParent = parent != null;
        long parentKey0 = hasParent ? parent.getLong(parentOffset) : 0;
        long parentTag = hasParent ? parent.getLong(parentOffset + TAG_IN_KEY) : 0;
        place = add(
                namespace, hasParent, parentKey0, parentTag, 0, key0, tag, tier, extent, Runs.size(bytes, checksum));
        if (place == Place.NONE) {
            return Publication.FULL;
        }
        tellStored(place, namespace, key, keyOffset);
        return Publication.PUBLISHED;
    }

    /**
     * Takes back a block of NVMe that an earlier life wrote, while others save already. Blocks come in the order in which
     * they were written; what this life has published is later than all of them.
     *
     * @param namespace a number from {@link #newNamespace}
     * @param hasParent whether there is a block before it
     * @param parentKey0 bytes 0 to 7 of that block's key
     * @param parentTag bytes 8 to 15 of that block's key
     * @param key0 bytes 0 to 7 of the block's key
     * @param tag bytes 8 to 15 of the block's key
     * @param extent where it lies, live
     * @param bytes stored bytes
     * @param checksum over key and stored bytes
     * @param depth blocks before it, where the index does not know the block before
     * @param older tells which extents of NVMe were recovered before this one, and so have to give way
     * @return bytes of the older copy that it took the place of, or {@link #RECOVERED}, {@link #RECOVER_KEPT},
     *     {@link #RECOVER_FULL}
     */
    public int recover(
            int namespace,
            boolean hasParent,
            long parentKey0,
            long parentTag,
            long key0,
            long tag,
            long extent,
            int bytes,
            int checksum,
            int depth,
            LongPredicate older) {
        long size = Runs.size(bytes, checksum);
        long place = directory.get(hash(key0, salt(namespace)));
        if (place == Place.NONE) {
            place = add(namespace, hasParent, parentKey0, parentTag, depth, key0, tag, Tier.NVME, extent, size);
            return place == Place.NONE ? RECOVER_FULL : RECOVERED;
        }
        if (runs.tag(place) != tag) {
            return RECOVER_FULL;
        }
        int replaced = RECOVERED;
        if (runs.isLive(place)) {
            long held = runs.extent(place, Tier.NVME);
            if (held == extent) {
                return RECOVERED;
            }
            if (!runs.isLive(place, Tier.NVME)) {
                return addCopy(place, extent, bytes, checksum);
            }
            if (runs.isLive(place, Tier.HOST) || !older.test(held)) {
                return RECOVER_KEPT;
            }
            replaced = runs.bytes(place);
        }
        boolean wasHeld = isHeld(place);
        runs.overwrite(place, Tier.NVME, extent, size);
        if (wasHeld) {
            settle(place, true); // its drive may be out of service
        }
        remember(place, namespace, key0, tag);
        return replaced;
    }

    /** A block that was saved anew and lies in host memory only: its old copy on NVMe is as good, if it is the same. */
    private int addCopy(long place, long extent, int bytes, int checksum) {
        if (runs.bytes(place) != bytes || runs.checksum(place) != checksum) {
            return RECOVER_KEPT;
        }
        runs.setExtent(place, Tier.NVME, extent);
        return RECOVERED;
    }

    /**
     * Takes back consecutive blocks of NVMe as {@link #recover} does one by one, as far as no key of theirs is in the index.
     *
     * @param namespace a number from {@link #newNamespace}
     * @param hasParent whether there is a block before the first
     * @param parentKey0 bytes 0 to 7 of that block's key
     * @param parentTag bytes 8 to 15 of that block's key
     * @param key0s bytes 0 to 7 of their keys
     * @param tags bytes 8 to 15 of their keys
     * @param extents where they lie, live
     * @param sizes stored bytes in the low half, checksum in the high one
     * @param from index of the first
     * @param count how many, at most {@link #RECOVERED_MAX}
     * @return how many were taken, from the first on; the next one is for {@link #recover}
     */
    public int recoverNew(
            int namespace,
            boolean hasParent,
            long parentKey0,
            long parentTag,
            long[] key0s,
            long[] tags,
            long[] extents,
            long[] sizes,
            int from,
            int count) {
        long salt = salt(namespace);
        int absent = directory.absent(key0s, from, (int) Math.min(count, blocksMax - blocks.get()), salt);
        long parentPlace = hasParent && absent > 0 ? placeOf(namespace, parentKey0, parentTag) : Place.NONE;
        int taken = 0;
        boolean goesOn = true;
        while (taken < absent && goesOn) {
            int at = from + taken;
            expect(absent - taken);
            long run = runFor(parentPlace, namespace, 0, hasParent || taken > 0, taken > 0 ? tags[at - 1] : parentTag);
            if (run == Place.NONE) {
                break;
            }
            int held = runs.count(run);
            int fit = Math.min(absent - taken, RunMemory.capacity(Place.sizeClass(run)) - held);
            long place = runs.append(run, key0s, tags, extents, sizes, at, fit);
            int put = directory.put(key0s, at, fit, salt, place);
            if (put > 0) {
                parentPlace = place + put - 1;
                remember(parentPlace, namespace, key0s[at + put - 1], tags[at + put - 1]);
                taken += put;
            }
            if (put < fit) { // a key that is there twice has one place
                runs.cut(run, held + put);
                goesOn = false;
            }
        }
        expected = 1;
        blocks.lazySet(blocks.get() + taken);
        return taken;
    }

    /**
     * Has pages of an empty index ready for blocks that are about to be recovered, beside the one writer. Any thread.
     *
     * @param blocks how many
     * @param isEnded asked now and then; the index must not be closed before this has returned
     */
    public void makeReady(long blocks, BooleanSupplier isEnded) {
        directory.makeReady(blocks, isEnded);
        runs.slabs().makeReady(blocks, isEnded);
    }

    /** Has the memory near soon that a recovery looks at first; answers anything, lest it be optimised away. */
    public long touch(int namespace, long[] key0s, int from, int count) {
        return directory.approach(key0s, from, count, salt(namespace));
    }

    /** Whether a number is in use: handed out, and not retired. Any thread. */
    public boolean isOpen(int namespace) {
        return numbers.isOpen(namespace);
    }

    private long add(
            int namespace,
            boolean hasParent,
            long parentKey0,
            long parentTag,
            int depthAlone,
            long key0,
            long tag,
            Tier tier,
            long extent,
            long size) {
        if (blocks.get() >= blocksMax) {
            return Place.NONE;
        }
        long parentPlace = hasParent ? placeOf(namespace, parentKey0, parentTag) : Place.NONE;
        long run = runFor(parentPlace, namespace, depthAlone, hasParent, parentTag);
        return run == Place.NONE ? Place.NONE : append(run, namespace, key0, tag, tier, extent, size);
    }

    /** The run of the block before, with room for the next, or else a new one; NONE when there is no memory. */
    private long runFor(long parentPlace, int namespace, int depthAlone, boolean hasParent, long parentTag) {
        long run = parentPlace == Place.NONE ? Place.NONE : extendable(parentPlace);
        if (run != Place.NONE) {
            return run;
        }
        int depth = parentPlace == Place.NONE ? depthAlone : runs.depth(parentPlace) + 1;
        return runs.start(classFor(expected), namespace, depth, hasParent ? parentTag : 0);
    }

    private long append(long run, int namespace, long key0, long tag, Tier tier, long extent, long size) {
        long place = runs.append(run, key0, tag, tier, extent, size);
        directory.put(hash(key0, salt(namespace)), place);
        blocks.lazySet(blocks.get() + 1);
        expected = Math.max(1, expected - 1);
        remember(place, namespace, key0, tag);
        return place;
    }

    private long placeOf(int namespace, long key0, long tag) {
        if (lastPlace != Place.NONE && lastKey0 == key0 && lastTag == tag && lastNamespace == namespace) {
            return lastPlace;
        }
        long place = directory.get(hash(key0, salt(namespace)));
        return place != Place.NONE && runs.tag(place) == tag ? place : Place.NONE;
    }

    /** The run that a block after the given one can be appended to; NONE when it has to start its own. */
    private long extendable(long parentPlace) {
        if (Place.offset(parentPlace) != runs.count(parentPlace) - 1) {
            return Place.NONE;
        }
        long run = Place.runOf(parentPlace);
        int sizeClass = Place.sizeClass(run);
        if (runs.hasRoom(run)) {
            return run;
        }
        return sizeClass == Runs.CLASS_MAX
                ? Place.NONE
                : move(run, Math.max(sizeClass + 1, classFor(runs.count(run) + expected)));
    }

    /** Moves a run into memory of another class; NONE, and nothing changed, when there is none. */
    long move(long run, int sizeClass) {
        int count = runs.count(run);
        for (int i = 0; watch != null && i < count; i++) {
            settle(run | i); // the copy has no stale extents that a sweep could meet
        }
        long copy = runs.copy(run, sizeClass);
        if (copy == Place.NONE) {
            return Place.NONE;
        }
        long salt = salt(runs.namespace(run));
        for (int i = 0; i < count; i++) {
            directory.repoint(hash(runs.key0(run | i), salt), copy | i);
        }
        runs.free(run);
        lastPlace = Place.NONE;
        tellMoved(copy);
        return copy;
    }

    /** The class for so many blocks. */
    private static int classFor(int blocks) {
        int sizeClass = 0;
        while (sizeClass < Runs.CLASS_MAX && RunMemory.capacity(sizeClass) < blocks) {
            sizeClass++;
        }
        // A class that the blocks would leave mostly empty wastes more than growing into it costs.
        return sizeClass > 0 && blocks * 2 < RunMemory.capacity(sizeClass) ? sizeClass - 1 : sizeClass;
    }

    private void remember(long place, int namespace, long key0, long tag) {
        lastPlace = place;
        lastNamespace = namespace;
        lastKey0 = key0;
        lastTag = tag;
    }

    /**
     * Notes where else a block lies now.
     *
     * @param heldTier the tier that it was copied from
     * @param heldExtent its extent there: nothing happens unless it still has it
     * @param tier the tier that it was copied to
     * @param extent its extent there
     * @return whether it was noted
     */
    public boolean place(
            int namespace, DirectBuffer key, int keyOffset, Tier heldTier, long heldExtent, Tier tier, long extent) {
        requireExtent(heldExtent);
        return setWhereHeld(namespace, key, keyOffset, heldTier, heldExtent, tier, extent);
    }

    /** Whether a block lies at an extent of a tier, as far as the index knows. */
    public boolean holds(int namespace, DirectBuffer key, int keyOffset, Tier tier, long extent) {
        long place = find(namespace, key, keyOffset);
        return place != Place.NONE && runs.extent(place, tier) == extent;
    }

    /**
     * Drops one extent of a block (quarantine), if it still has it.
     *
     * @return whether it was dropped
     */
    public boolean forget(int namespace, DirectBuffer key, int keyOffset, Tier tier, long extent) {
        requireExtent(extent);
        return setWhereHeld(namespace, key, keyOffset, tier, extent, tier, Extent.NONE);
    }

    private boolean setWhereHeld(
            int namespace, DirectBuffer key, int keyOffset, Tier heldTier, long heldExtent, Tier tier, long extent) {
        long place = find(namespace, key, keyOffset);
        if (place == Place.NONE || runs.extent(place, heldTier) != heldExtent) {
            return false;
        }
        boolean wasHeld = isHeld(place);
        runs.setExtent(place, tier, extent);
        if (wasHeld) {
            settle(place, true);
        } else {
            tellStored(place, namespace, key, keyOffset);
        }
        return true;
    }

    // ---- what comes and goes ----

    /**
     * Says whom to tell of blocks that come and go from now on.
     *
     * @param by whom; null: nobody
     */
    public void watch(BlockWatch by) {
        watch = by;
    }

    /**
     * Zeroes stale extents of a block, and tells that it has gone where it has none left that anybody can read. Whether it has
     * a live one.
     */
    boolean settle(long place) {
        return settle(place, isHeld(place));
    }

    private boolean settle(long place, boolean wasHeld) {
        boolean live = runs.scrub(place);
        if (wasHeld && !isHeld(place)) {
            watch.removed(runs.namespace(place), runs.key0(place), runs.tag(place));
        }
        return live;
    }

    /** Whether whoever watches has not been told yet that a block has gone; a stale extent counts until it is zeroed. */
    private boolean isHeld(long place) {
        return watch != null
                && (runs.extent(place, Tier.HOST) != Extent.NONE || isServed(runs.extent(place, Tier.NVME)));
    }

    private boolean isServed(long nvmeExtent) {
        return nvmeExtent != Extent.NONE && watch.serves(nvmeExtent);
    }

    private void tellStored(long place, int namespace, DirectBuffer key, int keyOffset) {
        if (isHeld(place)) {
            watch.stored(
                    namespace,
                    key.getLong(keyOffset),
                    key.getLong(keyOffset + TAG_IN_KEY),
                    key.getLong(keyOffset + 2 * Long.BYTES),
                    key.getLong(keyOffset + 3 * Long.BYTES));
        }
    }

    /** A walk that is under way may have passed where the run lies now, and not where it lay. */
    private void tellMoved(long run) {
        int count = watch == null ? 0 : runs.count(run);
        for (int i = 0; i < count; i++) {
            if (isHeld(run | i)) {
                watch.stored(runs.namespace(run), runs.key0(run | i), runs.tag(run | i), 0, 0);
            }
        }
    }

    /**
     * Visits blocks that lie in some tier, some runs at a time. What comes and goes between two calls is told to whoever
     * watches: both together are all blocks.
     *
     * @param cursor 0 to begin with, then what the call before answered
     * @param runsMax most runs to look at, free ones included
     * @param served whether blocks at an extent of NVMe can be read now
     * @return where to go on; 0 at the end
     */
    public long walk(long cursor, int runsMax, LongPredicate served, BlockWatch.Visitor visitor) {
        RunMemory slabs = runs.slabs();
        long slab = cursor >>> Integer.SIZE;
        int position = Math.max(0, (int) cursor);
        for (int looked = 0; looked < runsMax && slab < slabs.slabsTouched(); looked++) {
            if (position >= slabs.runsIn((int) slab)) {
                slab++;
                position = 0;
                continue;
            }
            walkRun(slabs.runAt((int) slab, position++), served, visitor);
        }
        return slab < slabs.slabsTouched() ? slab << Integer.SIZE | position : 0;
    }

    private void walkRun(long run, LongPredicate served, BlockWatch.Visitor visitor) {
        if (runs.isFree(run) || !numbers.isOpen(runs.namespace(run))) {
            return;
        }
        int count = runs.count(run);
        for (int i = 0; i < count; i++) {
            long place = run | i;
            if (runs.isLive(place, Tier.HOST)
                    || (runs.isLive(place, Tier.NVME) && served.test(runs.extent(place, Tier.NVME)))) {
                visitor.block(runs.namespace(run), runs.key0(place), runs.tag(place));
            }
        }
    }

    private long find(int namespace, DirectBuffer key, int keyOffset) {
        if (!numbers.isOpen(namespace)) {
            return Place.NONE;
        }
        return placeOf(namespace, key.getLong(keyOffset), key.getLong(keyOffset + TAG_IN_KEY));
    }

    private static void requireExtent(long extent) {
        if (extent == Extent.NONE) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "a block is published, held or dropped at an extent, got none");
        }
    }

    /**
     * Looks at some runs, going round: frees those whose blocks are all dead or whose namespace is retired, cuts dead
     * blocks off the ends of others, and zeroes stale extents, so that no wrapped generation can revive them.
     *
     * @param runsMax most runs to look at, free ones included; bounds the time, about 0.1 to 3 µs each
     * @return blocks whose places were freed
     */
    public int sweep(int runsMax) {
        int freed = sweeper.sweep(runsMax);
        if (freed > 0) {
            lastPlace = Place.NONE;
            blocks.lazySet(blocks.get() - freed);
        }
        return freed;
    }

    /** How many {@link #completedSweeps} there are once every run has been looked at from now on. */
    public long sweepsUntilPassed() {
        return sweeper.passEnd();
    }

    // ---- snapshot: no writer at the same time ----

    /** Visits every block that has a live extent on NVMe, run by run, in the order of their prefixes. */
    public void visit(BlockVisitor visitor) {
        RunMemory slabs = runs.slabs();
        for (int slab = 0; slab < slabs.slabsTouched(); slab++) {
            for (int position = 0; position < slabs.runsIn(slab); position++) {
                long run = slabs.runAt(slab, position);
                if (!runs.isFree(run) && numbers.isOpen(runs.namespace(run))) {
                    visitRun(run, visitor);
                }
            }
        }
    }

    private void visitRun(long run, BlockVisitor visitor) {
        int namespace = runs.namespace(run);
        int count = runs.count(run);
        boolean continues = false;
        for (int i = 0; i < count; i++) {
            long place = run | i;
            if (runs.isLive(place, Tier.NVME)) {
                visitor.block(
                        namespace,
                        continues,
                        runs.key0(place),
                        runs.tag(place),
                        runs.extent(place, Tier.NVME),
                        runs.bytes(place),
                        runs.checksum(place),
                        runs.depth(place));
                continues = true;
            } else {
                continues = false;
            }
        }
    }

    private static void close(AutoCloseable part) {
        if (part instanceof Directory opened) {
            opened.close();
        } else if (part instanceof NamespaceNumbers opened) {
            opened.close();
        }
    }

    /** Frees the memory. Safe to call twice. */
    @Override
    public void close() {
        runs.close();
        directory.close();
        numbers.close();
    }
}
