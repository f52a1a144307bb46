package io.orbitkv.recovery;

/**
 * Where the time of an opening went, in nanoseconds from its start: each is the moment at which a step had ended.
 *
 * @param lockedNanos the folders were locked
 * @param catalogNanos the catalog was read and checked
 * @param headersNanos the header of every segment was read
 * @param judgedNanos what the catalog could not tell of the log was found out
 * @param readyNanos the new epoch was in the catalog: from here on the store can answer
 * @param wholeNanos the index was whole; 0 while it is being filled
 */
public record OpeningTimes(
        long lockedNanos, long catalogNanos, long headersNanos, long judgedNanos, long readyNanos, long wholeNanos) {
    OpeningTimes withWhole(long nanos) {
        return new OpeningTimes(lockedNanos, catalogNanos, headersNanos, judgedNanos, readyNanos, nanos);
    }
}
