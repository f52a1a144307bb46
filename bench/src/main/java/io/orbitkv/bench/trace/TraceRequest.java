package io.orbitkv.bench.trace;

import java.util.Arrays;

/**
 * One request of a trace: when it came, how long its prompt was, and a number for each block of the prompt.
 *
 * <p>Block i stands for the tokens behind the numbers 0 to i, so equal numbers at equal places after equal beginnings
 * are equal blocks. A {@link TraceReader} fills the same object again and again; what it says holds until the next call.
 * Not thread-safe.
 */
public final class TraceRequest {
    private static final int BLOCKS_AT_FIRST = 256;

    private double timeMillis;
    private long promptTokens;
    private long[] ids = new long[BLOCKS_AT_FIRST];
    private int blocks;

    /** Makes a request without blocks, for a reader to fill. */
    public TraceRequest() {
        // all fields start as they are
    }

    /**
     * When the request came.
     *
     * @return milliseconds on the trace's own clock, never less than those of the request before
     */
    public double timeMillis() {
        return timeMillis;
    }

    /**
     * Length of the prompt.
     *
     * @return tokens; the last block may be a part of one
     */
    public long promptTokens() {
        return promptTokens;
    }

    /**
     * How many blocks the prompt has.
     *
     * @return at least 1
     */
    public int blocks() {
        return blocks;
    }

    /**
     * The number of a block.
     *
     * @param block its place in the prompt, from 0
     * @return any 64 bits
     */
    public long id(int block) {
        assert block >= 0 && block < blocks : block + " of " + blocks;
        return ids[block];
    }

    void clear() {
        blocks = 0;
        timeMillis = 0;
        promptTokens = 0;
    }

    void time(double millis) {
        timeMillis = millis;
    }

    void promptTokens(long tokens) {
        promptTokens = tokens;
    }

    void add(long id) {
        if (blocks == ids.length) {
            ids = Arrays.copyOf(ids, 2 * blocks);
        }
        ids[blocks++] = id;
    }
}
