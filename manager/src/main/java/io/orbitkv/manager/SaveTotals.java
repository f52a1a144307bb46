package io.orbitkv.manager;

import io.orbitkv.store.SaveResult;
import io.orbitkv.store.SaveResult.DropReason;

/** What became of a save, over the runs of blocks that it was done in. Reused. One thread. */
final class SaveTotals {
    long position;
    int present;
    int accepted;
    int admitted;
    int dropped;
    DropReason reason = DropReason.NONE;

    void reset() {
        position = 0;
        present = 0;
        accepted = 0;
        admitted = 0;
        dropped = 0;
        reason = DropReason.NONE;
    }

    void add(SaveResult result) {
        position = Math.max(position, result.position());
        present += result.present();
        accepted += result.accepted();
        admitted += result.admitted();
        drop(result.dropped(), result.reason());
    }

    void drop(int blocks, DropReason why) {
        dropped += blocks;
        reason = why == DropReason.NONE ? reason : why;
    }
}
