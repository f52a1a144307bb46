package io.orbitkv.cli;

import java.util.Arrays;

/** What each request of a demo or a replay found and how long it took, for the plot: 28 bytes a request. Not thread-safe. */
final class Series {
    private int[] blocks = new int[1 << 10];
    private int[] hostHits = new int[1 << 10];
    private int[] nvmeHits = new int[1 << 10];
    private float[] queryMicros = new float[1 << 10];
    private float[] restoreMicros = new float[1 << 10];
    private float[] saveMicros = new float[1 << 10];
    private int size;
    private int restartedAt = -1;

    void add(int requestBlocks, int host, int nvme, long queryNanos, long restoreNanos, long saveNanos) {
        if (size == blocks.length) {
            grow();
        }
        blocks[size] = requestBlocks;
        hostHits[size] = host;
        nvmeHits[size] = nvme;
        queryMicros[size] = queryNanos / 1e3f;
        restoreMicros[size] = restoreNanos / 1e3f;
        saveMicros[size] = saveNanos / 1e3f;
        size++;
    }

    /** Marks the place of the restart: behind the requests so far. */
    void markRestart() {
        restartedAt = size;
    }

    int size() {
        return size;
    }

    int restartedAt() {
        return restartedAt;
    }

    int blocks(int request) {
        return blocks[request];
    }

    int hostHits(int request) {
        return hostHits[request];
    }

    int nvmeHits(int request) {
        return nvmeHits[request];
    }

    float queryMicros(int request) {
        return queryMicros[request];
    }

    float restoreMicros(int request) {
        return restoreMicros[request];
    }

    float saveMicros(int request) {
        return saveMicros[request];
    }

    private void grow() {
        int length = size * 2;
        blocks = Arrays.copyOf(blocks, length);
        hostHits = Arrays.copyOf(hostHits, length);
        nvmeHits = Arrays.copyOf(nvmeHits, length);
        queryMicros = Arrays.copyOf(queryMicros, length);
        restoreMicros = Arrays.copyOf(restoreMicros, length);
        saveMicros = Arrays.copyOf(saveMicros, length);
    }
}
