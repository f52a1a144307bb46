package io.orbitkv.store;

import java.util.concurrent.atomic.LongAdder;

/** What the store has done since it was opened. Safe from any thread. */
final class Counters {
    final LongAdder savedBlocks = new LongAdder();
    final LongAdder savedBytes = new LongAdder();
    final LongAdder presentBlocks = new LongAdder();
    final LongAdder droppedBlocks = new LongAdder();
    final LongAdder indexFull = new LongAdder();
    final LongAdder queries = new LongAdder();
    final LongAdder queriedBlocks = new LongAdder();
    final LongAdder hitHostBlocks = new LongAdder();
    final LongAdder hitNvmeBlocks = new LongAdder();
    final LongAdder leasesRefused = new LongAdder();
    final LongAdder restoredHostBlocks = new LongAdder();
    final LongAdder restoredNvmeBlocks = new LongAdder();
    final LongAdder restoredHostBytes = new LongAdder();
    final LongAdder restoredNvmeBytes = new LongAdder();
    final LongAdder missedBlocks = new LongAdder();
    final LongAdder overtaken = new LongAdder();
    final LongAdder keyCollisions = new LongAdder();
    final LongAdder corruptBlocks = new LongAdder();
    final LongAdder readErrors = new LongAdder();
    final LongAdder readTimeouts = new LongAdder();
    final LongAdder admittedBlocks = new LongAdder();
    final LongAdder admittedBytes = new LongAdder();
    final LongAdder refusedBlocks = new LongAdder();
    final LongAdder refusedBytes = new LongAdder();
    final LongAdder reappendedHostBlocks = new LongAdder();
    final LongAdder reappendedHostBytes = new LongAdder();
    final LongAdder promotedBlocks = new LongAdder();
    final LongAdder promotedBytes = new LongAdder();
    final LongAdder promotionsSkipped = new LongAdder();
    final LongAdder savedWithoutDrive = new LongAdder();
    final LongAdder clears = new LongAdder();

    void saved(SaveResult result, int blockBytes) {
        savedBlocks.add(result.accepted());
        savedBytes.add((long) result.accepted() * blockBytes);
        admittedBlocks.add(result.admitted());
        admittedBytes.add((long) result.admitted() * blockBytes);
        int refused = result.accepted() - result.admitted();
        if (refused > 0) {
            refusedBlocks.add(refused);
            refusedBytes.add((long) refused * blockBytes);
        }
        presentBlocks.add(result.present());
        droppedBlocks.add(result.dropped());
    }
}
