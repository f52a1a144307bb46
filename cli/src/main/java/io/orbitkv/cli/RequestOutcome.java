package io.orbitkv.cli;

/** What one request found and how long it took; a worker reuses it. */
final class RequestOutcome {
    int request;
    int blocks;
    int hostHits;
    int nvmeHits;
    int wrong;
    int saved;
    int dropped;
    int shortBlocks;
    long queryNanos;
    long restoreNanos;
    long saveNanos;
    long waitedNanos;
    long estimatedNanos;

    void begin(int number, int requestBlocks) {
        request = number;
        blocks = requestBlocks;
        hostHits = 0;
        nvmeHits = 0;
        wrong = 0;
        saved = 0;
        dropped = 0;
        shortBlocks = 0;
        queryNanos = 0;
        restoreNanos = 0;
        saveNanos = 0;
        waitedNanos = 0;
        estimatedNanos = 0;
    }
}
