package io.orbitkv.index;

import java.util.SplittableRandom;
import java.util.function.BooleanSupplier;

/**
 * Hash of a key to the {@link Place} of its block.
 *
 * <p>A hash is never 0. One thread at a time writes; any number of threads call {@link #find} meanwhile. A place found
 * may be one that its key has just left: the tag there tells. Who keeps more keys than the bound breaks the contract.
 */
interface Directory extends AutoCloseable {
    /** What {@link #find} answers when it was overtaken: look again. */
    long AGAIN = -2;

    /** The place of a hash, {@link Place#NONE} when it is certainly absent, or {@link #AGAIN}. Any thread. */
    long find(long hash);

    /** The place of a hash or {@link Place#NONE}, for the writer, whom nobody overtakes. */
    long get(long hash);

    /** Has the memory near soon in which the searches for some keys begin; answers anything. */
    default long approach(long[] key0s, int from, int count, long salt) {
        return 0;
    }

    /** How many of some keys, given by their first 8 bytes each, are absent: up to the first that is not. For the writer. */
    default int absent(long[] key0s, int from, int count, long salt) {
        int absent = 0;
        while (absent < count && get(PrefixIndex.hash(key0s[from + absent], salt)) == Place.NONE) {
            absent++;
        }
        return absent;
    }

    /**
     * Adds keys that {@link #absent} has counted, whose blocks stand one behind the other; up to the first that is one of those
     * just added, for two keys may have the same first bytes.
     *
     * @return how many were added
     */
    default int put(long[] key0s, int from, int count, long salt, long place) {
        int put = 0;
        while (put < count && get(PrefixIndex.hash(key0s[from + put], salt)) == Place.NONE) {
            put(PrefixIndex.hash(key0s[from + put], salt), place + put);
            put++;
        }
        return put;
    }

    /** Adds a hash that is absent. The caller keeps the number of keys within the bound. */
    void put(long hash, long place);

    /** Points a hash that is present at another place. */
    void repoint(long hash, long place);

    /** Removes a hash that is present. */
    void remove(long hash);

    /** Has pages ready for so many keys; ends early when told to. Any thread. */
    default void makeReady(long keys, BooleanSupplier isEnded) {}

    /** Bytes of native memory that it takes. */
    long bytes();

    /** Bytes of them that lie on huge pages now; slow. */
    long hugeBytes();

    @Override
    void close();

    /** Makes an empty one for so many keys. */
    static Directory create(DirectoryKind kind, long keysMax) {
        return kind == DirectoryKind.CHRONICLE
                ? new ChronicleDirectory(keysMax)
                : new OpenAddressing(keysMax, new SplittableRandom().nextLong());
    }
}
