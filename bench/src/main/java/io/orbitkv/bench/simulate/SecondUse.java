package io.orbitkv.bench.simulate;

/** Writes a key when it is used a second time within a memory of seen keys. */
final class SecondUse implements Admission {
    /** Keys that are remembered, in blocks of the drive. */
    static final int MEMORY_TIERS = 4;

    private final KeyTrace trace;
    private final SeenKeys seen;

    SecondUse(KeyTrace trace, long tierBlocks) {
        this.trace = trace;
        seen = new SeenKeys(trace.uniqueBlocks(), MEMORY_TIERS * tierBlocks);
    }

    @Override
    public boolean admits(int key) {
        return seen.has(key);
    }

    @Override
    public void end(int request, int miss) {
        for (int place = trace.start(request); place < trace.start(request + 1); place++) {
            seen.see(trace.key(place));
        }
    }
}
