package io.orbitkv.bench.simulate;

import io.orbitkv.bench.trace.TraceReader;
import io.orbitkv.bench.trace.TraceRequest;
import java.util.Arrays;
import java.util.function.LongConsumer;

/**
 * The keys of a trace, numbered in the order in which they first appear.
 *
 * <p>A key is a number behind all numbers before it in its prompt, as in the store: so each has one parent (with a
 * smaller number) and one depth. Requests lie back to back in one array: 4 bytes a block. Immutable.
 */
public final class KeyTrace {
    /** A parent's number where there is none. */
    static final int NONE = -1;

    /** Where a key is not used again. */
    static final int NEVER = Integer.MAX_VALUE;

    private final int[] keys;
    private final int[] starts;
    private final int[] parents;
    private final int[] depths;
    private final int[] promptTokens;
    private final int blockTokens;
    private final double totalCost;
    private final int longest;

    private KeyTrace(int[] keys, int[] starts, int[] promptTokens, int[] parents, int blockTokens) {
        this.keys = keys;
        this.starts = starts;
        this.promptTokens = promptTokens;
        this.parents = parents;
        this.blockTokens = blockTokens;
        int most = 0;
        for (int request = 0; request + 1 < starts.length; request++) {
            most = Math.max(most, starts[request + 1] - starts[request]);
        }
        longest = most;
        depths = new int[parents.length];
        for (int key = 0; key < parents.length; key++) {
            depths[key] = parents[key] == NONE ? 0 : depths[parents[key]] + 1;
        }
        double sum = 0;
        for (int tokens : promptTokens) {
            sum += Compute.ofPrefix(tokens);
        }
        totalCost = sum;
    }

    /**
     * Reads a trace to its end.
     *
     * @param reader the trace; not closed
     * @param blockTokens tokens of a block
     * @param progress is told how many requests were read, every now and then
     * @return the trace's keys
     */
    public static KeyTrace read(TraceReader reader, int blockTokens, LongConsumer progress) {
        Builder builder = new Builder();
        TraceRequest request = new TraceRequest();
        while (reader.next(request)) {
            for (int i = 0; i < request.blocks(); i++) {
                builder.block(request.id(i));
            }
            builder.endRequest(request.promptTokens());
            if (builder.requests % 1024 == 0) {
                progress.accept(builder.requests);
            }
        }
        return builder.build(blockTokens);
    }

    /**
     * How many requests there are.
     *
     * @return requests
     */
    public int requests() {
        return starts.length - 1;
    }

    /**
     * Blocks of all requests together.
     *
     * @return blocks, each counted as often as it is asked for
     */
    public int blocks() {
        return keys.length;
    }

    /**
     * Blocks that differ.
     *
     * @return blocks, each counted once
     */
    public int uniqueBlocks() {
        return parents.length;
    }

    /**
     * Blocks of the longest request.
     *
     * @return blocks
     */
    public int longestBlocks() {
        return longest;
    }

    /** Tokens of a block. */
    int blockTokens() {
        return blockTokens;
    }

    /** Where a request starts among all blocks; the next one's start is its end. */
    int start(int request) {
        return starts[request];
    }

    /** The key at a place among all blocks. */
    int key(int place) {
        return keys[place];
    }

    /** The key before a key, or {@link #NONE}. */
    int parent(int key) {
        return parents[key];
    }

    /** How many keys stand before a key in its prompt. */
    int depth(int key) {
        return depths[key];
    }

    /** What a hit on a block of a request saves, in floating-point operations; the last block may be a partial one. */
    double cost(int request, int block) {
        long tokens = promptTokens[request];
        long first = Math.min(tokens, (long) block * blockTokens);
        long end = Math.min(tokens, first + blockTokens);
        return Compute.ofPrefix(end) - Compute.ofPrefix(first);
    }

    /** What all requests cost without a cache, in floating-point operations. */
    double totalCost() {
        return totalCost;
    }

    /** For each place the next place of the same key, or {@link #NEVER}. */
    int[] nextUses() {
        int[] next = new int[keys.length];
        int[] last = new int[parents.length];
        Arrays.fill(last, NEVER);
        for (int place = keys.length - 1; place >= 0; place--) {
            next[place] = last[keys[place]];
            last[keys[place]] = place;
        }
        return next;
    }

    /** Collects requests. */
    public static final class Builder {
        private final KeyNumbers numbers = new KeyNumbers();
        private int[] keys = new int[1 << 14];
        private int[] starts = new int[1 << 10];
        private int[] promptTokens = new int[1 << 10];
        private int requests;
        private int blocks;
        private int parent = NONE;

        /** Starts with no request. */
        public Builder() {
            // all fields start as they are
        }

        /**
         * Adds a block to the request that is being collected.
         *
         * @param id the number that the trace has for it
         */
        public void block(long id) {
            if (blocks == keys.length) {
                keys = Arrays.copyOf(keys, 2 * blocks);
            }
            parent = numbers.number(parent, id);
            keys[blocks++] = parent;
        }

        /**
         * Ends the request.
         *
         * @param tokens tokens of its prompt
         */
        public void endRequest(long tokens) {
            promptTokens[requests++] = Math.toIntExact(tokens);
            if (requests == starts.length) {
                starts = Arrays.copyOf(starts, 2 * requests);
                promptTokens = Arrays.copyOf(promptTokens, 2 * requests);
            }
            starts[requests] = blocks;
            parent = NONE;
        }

        /**
         * The trace that was collected.
         *
         * @param blockTokens tokens of a block
         * @return the trace
         */
        public KeyTrace build(int blockTokens) {
            return new KeyTrace(
                    Arrays.copyOf(keys, blocks),
                    Arrays.copyOf(starts, requests + 1),
                    Arrays.copyOf(promptTokens, requests),
                    numbers.parents(),
                    blockTokens);
        }
    }
}
