package io.orbitkv.tiers;

import java.util.concurrent.atomic.AtomicLong;

/** What the logs of one store's drives count together: positions and use-sequences never repeat, whatever the drive. */
final class LogShared {
    /** The last position that was offered to any drive. Raised under the store's writer lock. */
    final AtomicLong offered = new AtomicLong();

    /** The use-sequence that the next segment gets. */
    final AtomicLong nextUse = new AtomicLong();

    final LostPositions lost = new LostPositions();

    LogShared(LogState initial) {
        offered.set(initial.lastPosition());
        nextUse.set(initial.nextUseSequence());
    }
}
