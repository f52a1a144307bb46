package io.orbitkv.index;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Goes round all runs, a few at a time, and gives back what is dead. The writer's.
 *
 * <p>A run that moves while a round is under way may be looked at twice or not at all; in the latter case its stale
 * extents were zeroed by the move, so that a completed round has dealt with all that was stale before it began.
 */
final class Sweeper {
    private final PrefixIndex index;
    private final Directory directory;
    private final Runs runs;
    private final RunMemory slabs;
    private final NamespaceNumbers numbers;

    private int slab;
    private int position;

    /** Rounds completed. Written by the one writer only. */
    private final AtomicLong completed = new AtomicLong();

    Sweeper(PrefixIndex index, Directory directory, Runs runs, NamespaceNumbers numbers) {
        this.index = index;
        this.directory = directory;
        this.runs = runs;
        this.slabs = runs.slabs();
        this.numbers = numbers;
    }

    long completed() {
        return completed.get();
    }

    /** How many rounds are completed once every run has been looked at from now on. */
    long passEnd() {
        return completed.get() + (slab == 0 && position == 0 ? 1 : 2);
    }

    int sweep(int runsMax) {
        int freed = 0;
        for (int looked = 0; looked < runsMax; looked++) {
            if (slab >= slabs.slabsTouched()) {
                slab = 0;
                position = 0;
                completed.lazySet(completed.get() + 1);
                return freed;
            }
            if (position >= slabs.runsIn(slab)) {
                slab++;
                position = 0;
                continue;
            }
            long run = slabs.runAt(slab, position++);
            if (!runs.isFree(run)) {
                freed += sweepRun(run);
            }
        }
        return freed;
    }

    /** Blocks freed of one run. */
    private int sweepRun(long run) {
        int count = runs.count(run);
        int kept = 0;
        if (numbers.isOpen(runs.namespace(run))) {
            for (int i = 0; i < count; i++) {
                if (index.settle(run | i)) {
                    kept = i + 1;
                }
            }
        }
        if (kept == count) {
            return 0;
        }
        long salt = PrefixIndex.salt(runs.namespace(run));
        for (int i = kept; i < count; i++) {
            directory.remove(PrefixIndex.hash(runs.key0(run | i), salt));
        }
        if (kept == 0) {
            runs.free(run);
        } else {
            runs.truncate(run, kept);
            shrink(run, kept);
        }
        return count - kept;
    }

    private void shrink(long run, int count) {
        int sizeClass = 0;
        while (RunMemory.capacity(sizeClass) < count) {
            sizeClass++;
        }
        if (sizeClass < Place.sizeClass(run)) {
            index.move(run, sizeClass); // without memory for it, it stays where it is
        }
    }
}
