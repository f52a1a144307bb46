package io.orbitkv.bench.simulate;

import java.util.Arrays;

/**
 * The tier that knows the future: it holds what is used again soonest, and never takes what is not used again before all
 * that it holds. It maximises hits of blocks, so for the compute saved it is a tight guide, not a proven bound.
 */
final class Belady {
    private static final int ABSENT = -1;

    private final KeyTrace trace;
    private final int capacityBlocks;
    private final int[] nextUses;
    private final int[] nextOf;
    private final MaxSet uses;
    private int size;
    private long written;

    Belady(KeyTrace trace, int capacityBlocks) {
        this.trace = trace;
        this.capacityBlocks = capacityBlocks;
        nextUses = trace.nextUses();
        nextOf = new int[trace.uniqueBlocks()];
        Arrays.fill(nextOf, ABSENT);
        uses = new MaxSet(Math.max(1, trace.blocks()));
    }

    boolean has(int key) {
        return nextOf[key] != ABSENT;
    }

    /** Somebody asks for the key at a place of the trace. */
    void use(int place) {
        int key = trace.key(place);
        int next = nextUses[place];
        if (has(key)) {
            forget(key);
            hold(key, next);
            return;
        }
        if (next == KeyTrace.NEVER || capacityBlocks == 0) {
            return;
        }
        if (size == capacityBlocks) {
            int latest = uses.max();
            if (latest < next) {
                return;
            }
            forget(trace.key(latest));
        }
        hold(key, next);
        written++;
    }

    private void hold(int key, int next) {
        if (next != KeyTrace.NEVER) {
            nextOf[key] = next;
            uses.add(next);
            size++;
        }
    }

    private void forget(int key) {
        uses.remove(nextOf[key]);
        nextOf[key] = ABSENT;
        size--;
    }

    long written() {
        return written;
    }
}
