package io.orbitkv.recovery;

import java.util.List;

/**
 * Why a block of a prefix hits or misses.
 *
 * @param number its number in the prefix, from 0
 * @param key its key, 64 hexadecimal digits
 * @param outcome what a query makes of it
 * @param places where it lies, a place for each shard that has it
 * @param why the reason in words
 */
public record BlockAnswer(int number, String key, Outcome outcome, List<BlockPlace> places, String why) {
    /** What a query makes of a block. */
    public enum Outcome {
        /** Every shard has it on the drive. */
        HIT,
        /** Nothing of it is in the log: it was never stored, or its segment was written over since. */
        NOT_FOUND,
        /** It was stored, and given up for newer blocks. */
        EVICTED,
        /** It was stored before the family was cleared. */
        CLEARED,
        /** Its bytes were found wrong. */
        QUARANTINED,
        /** Some shards have it, others don't. */
        SHARD_MISSING,
        /** Another family has a block of this key. */
        OTHER_FAMILY,
        /** The store does not know the family. */
        UNKNOWN_FAMILY,
        /** It is not there, and may have been in a folder that is lost. */
        FOLDER_LOST
    }
}
