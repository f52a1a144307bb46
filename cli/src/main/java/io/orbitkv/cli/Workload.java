package io.orbitkv.cli;

import io.orbitkv.bench.trace.TraceFormat;
import io.orbitkv.bench.trace.TraceReader;
import io.orbitkv.bench.trace.TraceRequest;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * What a demo or a replay runs: requests in order, each a prefix of blocks named by numbers.
 *
 * <p>Block i of a request stands for the tokens behind the numbers 0 to i, so equal numbers at equal places after equal
 * beginnings are equal blocks. Numbers lie back to back in one array: a trace of 288,500 blocks takes 2 MiB.
 */
final class Workload {
    private final long[] ids;
    private final int[] starts;
    private final int requests;
    private final int longest;

    private Workload(long[] ids, int[] starts, int requests) {
        this.ids = ids;
        this.starts = starts;
        this.requests = requests;
        int blocks = 0;
        for (int i = 0; i < requests; i++) {
            blocks = Math.max(blocks, starts[i + 1] - starts[i]);
        }
        this.longest = blocks;
    }

    /** Reads a trace, or its first requests. */
    static Workload read(Path file, TraceFormat format, int blockTokens, long requestsMax) {
        Builder builder = new Builder();
        TraceRequest request = new TraceRequest();
        try (TraceReader reader = TraceReader.open(file, format, blockTokens, requestsMax)) {
            while (reader.next(request)) {
                for (int i = 0; i < request.blocks(); i++) {
                    builder.block(request.id(i));
                }
                builder.endRequest();
            }
        }
        return builder.build();
    }

    int requests() {
        return requests;
    }

    /** Blocks of one request. */
    int blocks(int request) {
        return starts[request + 1] - starts[request];
    }

    /** The number of a block. */
    long id(int request, int block) {
        return ids[starts[request] + block];
    }

    /** Blocks of all requests together. */
    long blocks() {
        return starts[requests];
    }

    /** Blocks of the longest request. */
    int longest() {
        return longest;
    }

    /** Collects requests. */
    static final class Builder {
        private long[] ids = new long[1 << 14];
        private int[] starts = new int[1 << 10];
        private int requests;
        private int blocks;

        /** Adds a block to the request that is being collected. */
        void block(long id) {
            if (blocks == ids.length) {
                ids = Arrays.copyOf(ids, blocks * 2);
            }
            ids[blocks++] = id;
        }

        /** Blocks of the request that is being collected. */
        int open() {
            return blocks - starts[requests];
        }

        /** Ends the request. */
        void endRequest() {
            requests++;
            if (requests == starts.length) {
                starts = Arrays.copyOf(starts, requests * 2);
            }
            starts[requests] = blocks;
        }

        int requests() {
            return requests;
        }

        Workload build() {
            return new Workload(Arrays.copyOf(ids, blocks), Arrays.copyOf(starts, requests + 1), requests);
        }
    }
}
