package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.concurrent.atomic.AtomicLong;
import net.openhft.chronicle.core.values.LongValue;
import net.openhft.chronicle.set.ChronicleSet;
import org.agrona.DirectBuffer;

/**
 * Which keys were used before, as 8-byte tags in two Chronicle sets in anonymous memory. When the younger one is half
 * full, the older one is emptied and they change places, so that what was not used for long is forgotten; what is used
 * again counts as young. Neither set ever comes near its bound.
 *
 * <p>{@link #seen} is for any thread and takes a lock of a part of the map for less than a microsecond; {@link #see} for
 * one thread at a time, off the hot path: emptying a set of a million tags takes a tenth of a second. Two keys have the
 * same tag once in 2^64 pairs, and then the history takes one for the other.
 *
 * <p>The first history of a process takes a second or more to make.
 */
public final class History implements AutoCloseable {
    /** Fewer bytes are not worth a history. */
    public static final long BYTES_MIN = 1 << 20;

    /** What a set takes for a tag that it was made for, measured, rounded up. */
    private static final int BYTES_A_TAG = 20;

    private static final long TAGS_MIN = 1024;

    private final long turnTags;
    private volatile ChronicleSet<LongValue> young;
    private volatile ChronicleSet<LongValue> old;

    // Written by the one thread that sees.
    private final AtomicLong youngTags = new AtomicLong();
    private final AtomicLong oldTags = new AtomicLong();
    private final AtomicLong turns = new AtomicLong();

    private boolean closed;

    /**
     * Makes an empty history.
     *
     * @param bytesMax most bytes of native memory, at least {@link #BYTES_MIN}
     * @param tagsWanted how many of the last different keys to remember, on average; fewer where the bytes don't suffice
     * @throws OrbitKvException {@link ErrorCode#BAD_ARGUMENT} for fewer bytes than that
     */
    public History(long bytesMax, long tagsWanted) {
        if (bytesMax < BYTES_MIN) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "a history takes at least " + BYTES_MIN + " bytes, got " + bytesMax + "; give it more");
        }
        // It remembers one turn's tags at least and two turns' at most.
        long wanted = Math.max(TAGS_MIN, Math.min(tagsWanted, Long.MAX_VALUE / 4) * 2 / 3);
        this.turnTags = Math.min(wanted, bytesMax / (2L * 2 * BYTES_A_TAG));
        this.young = ChronicleMaps.set(2 * turnTags);
        this.old = ChronicleMaps.set(2 * turnTags);
    }

    /**
     * The tag of a key within its namespace.
     *
     * @param namespaceId64 the first 8 bytes of the namespace's id
     * @param key holds the key
     * @param keyOffset where it starts
     */
    public static long tag(long namespaceId64, DirectBuffer key, int keyOffset) {
        return key.getLong(keyOffset) ^ PrefixIndex.mixed(namespaceId64);
    }

    /** Whether a tag was seen and is not forgotten. Any thread; allocates nothing after the thread's first call. */
    public boolean seen(long tag) {
        LongValue key = ChronicleMaps.key(tag);
        while (true) {
            long turn = turns.getAcquire();
            if (young.contains(key) || old.contains(key)) {
                return true;
            }
            if (turns.getAcquire() == turn) {
                return false;
            } // A turn came in between: the tag may have changed sides. The next one is many uses away.
        }
    }

    /**
     * Remembers a tag as the latest. One thread at a time.
     *
     * @return whether it was known
     */
    public boolean see(long tag) {
        LongValue key = ChronicleMaps.key(tag);
        if (young.contains(key)) {
            return true;
        }
        boolean known = old.contains(key);
        if (youngTags.get() == turnTags) {
            turn();
        }
        young.add(key);
        youngTags.lazySet(youngTags.get() + 1);
        return known;
    }

    /** While the older set is emptied, readers still find some of what it held. */
    private void turn() {
        turns.set(turns.get() + 1); // partner: seen(); before what it looks at goes
        ChronicleSet<LongValue> emptied = old;
        emptied.clear();
        old = young;
        young = emptied;
        oldTags.lazySet(youngTags.get());
        youngTags.lazySet(0);
    }

    /** Tags remembered; those in both sets count twice. Any thread. */
    public long tags() {
        return youngTags.get() + oldTags.get();
    }

    /** Most tags remembered at once. */
    public long tagsMax() {
        return 2 * turnTags;
    }

    /** How often the sets have changed places. Any thread. */
    public long turns() {
        return turns.get();
    }

    /** Bytes of native memory. */
    public long bytes() {
        return young.offHeapMemoryUsed() + old.offHeapMemoryUsed();
    }

    /** Frees the memory; nobody may call any more. Safe to call twice. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            young.close();
            old.close();
        }
    }
}
