package io.orbitkv.store;

import io.orbitkv.index.Match;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.store.Workspace.BlockState;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.Drives;
import io.orbitkv.tiers.HostTier;
import io.orbitkv.tiers.ReadBatch;
import io.orbitkv.tiers.ReadResult;
import org.agrona.concurrent.NanoClock;

/**
 * Puts blocks back: pin, read, prove, unpin, in turns of up to {@link Workspace#RESTORE_TURN_BLOCKS_MAX} blocks.
 *
 * <p>Of each turn the reads of the drive are submitted first; while they run, the host blocks are copied, each only
 * after its full key was compared; then each block that was read is proved as its read ends, beside those still under
 * way. Reads land in memory that the store owns (a staging buffer, or a destination that it
 * allocated), since a hung read can't be called back; what the drive delivered counts once its checksum over key and
 * payload is right. The first block that fails ends the restore: a short answer is a normal outcome.
 */
final class RestorePath {
    /** A turn of more blocks than {@link Workspace#TURN_BLOCKS_MAX} has at most so many bytes: pins are held for its time. */
    private static final long TURN_BYTES_MAX = 256L << 20;

    private final PrefixIndex index;
    private final HostTier host;
    private final Drives nvme;
    private final Counters counters;
    private final Admission admission;
    private final Quarantine quarantine;
    private final RestoreEstimate estimate;
    private final NanoClock clock;
    private final Promoter promoter;
    private final boolean verifyHost;
    private final long timeoutNanos;

    RestorePath(
            PrefixIndex index,
            HostTier host,
            Drives nvme,
            Counters counters,
            Admission admission,
            Quarantine quarantine,
            RestoreEstimate estimate,
            NanoClock clock,
            Promoter promoter,
            boolean verifyHost,
            long timeoutNanos) {
        this.index = index;
        this.host = host;
        this.nvme = nvme;
        this.counters = counters;
        this.admission = admission;
        this.quarantine = quarantine;
        this.estimate = estimate;
        this.clock = clock;
        this.promoter = promoter;
        this.verifyHost = verifyHost;
        this.timeoutNanos = timeoutNanos;
    }

    /**
     * Restores blocks in order until one is missed.
     *
     * @param keyMemory where the lease keeps the keys of its blocks
     * @param from the lease's block that lands in the destination's block 0
     * @return how many are in the destination. Where {@code work.readsAbandoned} is set afterwards, reads into it may
     *     still be in flight and its pins are still held
     */
    int restore(Workspace work, MemoryRegion keyMemory, int from, int count) {
        boolean direct = landsDirectly(work, count);
        int turnMax = turnBlocks(work.paddedBytes);
        if (!direct) {
            turnMax = Math.min(turnMax, work.stagingBytes() / work.paddedBytes);
        }
        int done = 0;
        work.restoredHost = 0;
        while (done < count) {
            work.turn(done, Math.min(turnMax, count - done));
            int restored = restoreTurn(work, keyMemory, from, direct);
            done += restored;
            admission.restored(work, restored);
            if (restored < work.count) {
                counters.missedBlocks.add((long) count - done);
                break;
            }
        }
        return done;
    }

    /** Most blocks of a turn whose reads land directly. */
    static int turnBlocks(int paddedBytes) {
        return Math.max(Workspace.TURN_BLOCKS_MAX, (int)
                Math.min(Workspace.RESTORE_TURN_BLOCKS_MAX, TURN_BYTES_MAX / paddedBytes));
    }

    /** Into memory that the store allocated, where no padding of a last page falls onto somebody else's bytes. */
    private static boolean landsDirectly(Workspace work, int count) {
        MemoryRegion region = work.blocks.region();
        if (region == null || region.purpose() != MemoryPurpose.CALLER || work.blockBytes != work.paddedBytes) {
            return false;
        }
        for (int i = 0; i < count; i++) {
            long start = work.blocks.start(i, work.blockBytes);
            if (region.address(start, work.blockBytes) % MemoryRegion.PAGE_BYTES != 0) {
                return false;
            }
        }
        return true;
    }

    private int restoreTurn(Workspace work, MemoryRegion keyMemory, int from, boolean direct) {
        boolean whole = false;
        try {
            int restored = restorePinned(work, pinAll(work), keyMemory, from, direct);
            whole = true;
            long now = clock.nanoTime();
            if (restored == work.count) {
                estimate.learn(work, now - work.turnBeganNanos);
            }
            work.turnBeganNanos = now;
            return restored;
        } finally {
            if (!whole) {
                giveUp(work);
            }
            if (!work.readsAbandoned) {
                estimate.readsEnd(work);
            }
        }
    }

    /** The destination could not be written after all (it was closed): without this its blocks would stay pinned. */
    private void giveUp(Workspace work) {
        for (int i = 0; i < work.pinned; i++) {
            if (work.states[i] == BlockState.HOST) {
                host.unpin(work.extents[i]);
                work.states[i] = BlockState.MISSED;
            }
        }
        work.readsAbandoned = !work.isDrained();
        if (!work.readsAbandoned) {
            unpinDrained(work);
        }
    }

    private int restorePinned(Workspace work, int pinned, MemoryRegion keyMemory, int from, boolean direct) {
        work.clearReads();
        for (int i = 0; i < pinned; i++) {
            if (work.states[i] == BlockState.NVME) {
                addRead(work, i, direct);
            }
        }
        int reads = work.readCount;
        if (reads > 0) {
            estimate.readsBegin(work);
        }
        boolean readsHere = reads > 0 && reads <= RestoreEstimate.FEW_BLOCKS_MAX && work.reader() != null;
        if (reads > 0 && !readsHere) {
            submit(work);
        }
        if (reads < pinned) {
            restoreFromHost(work, pinned);
        }
        if (reads > 0 && !(readsHere ? readHere(work, keyMemory, from) : finishReads(work, keyMemory, from))) {
            counters.readTimeouts.increment();
            work.readsAbandoned = true; // whatever happens to them from now on: their pins are given back by upkeep
            return leadingRestored(work, pinned);
        }
        promoter.promote(work);
        return leadingRestored(work, pinned);
    }

    private void restoreFromHost(Workspace work, int pinned) {
        for (int i = 0; i < pinned; i++) {
            if (work.states[i] == BlockState.HOST) {
                work.reads[i] = Workspace.NO_READ;
                restoreOneFromHost(work, i);
            }
        }
    }

    /** Reads few blocks on this thread: two thread hops cost more than they save. False when the drive is late, or out. */
    private boolean readHere(Workspace work, MemoryRegion keyMemory, int from) {
        boolean inTime = true;
        for (int drive = 0; drive < work.drives(); drive++) {
            ReadBatch batch = work.batch(drive);
            for (int read = 0; batch != null && read < batch.count(); read++) {
                if (!inTime) { // the reader is taken
                    nvme.unpin(batch.extent(read));
                    work.states[batch.name(read)] = BlockState.MISSED;
                    continue;
                }
                work.readerReads(batch, read);
                ReadResult result = nvme.drive(drive)
                        .readNow(
                                work.reader(),
                                batch.extent(read),
                                work.blockBytes,
                                batch.region(read),
                                batch.offset(read),
                                timeoutNanos);
                inTime = result != ReadResult.PENDING;
                if (inTime) {
                    finishRead(work, batch, read, keyMemory, from, result == ReadResult.DONE);
                }
            }
        }
        return inTime;
    }

    /** Hands each drive its reads. One that has just gone out takes none: its blocks are missed. */
    private void submit(Workspace work) {
        for (int drive = 0; drive < work.drives(); drive++) {
            ReadBatch batch = work.batch(drive);
            if (batch != null && batch.count() > 0 && !nvme.drive(drive).submit(batch)) {
                for (int read = 0; read < batch.count(); read++) {
                    nvme.unpin(batch.extent(read));
                    work.states[batch.name(read)] = BlockState.MISSED;
                }
                batch.clear();
            }
        }
    }

    /** Proves what the drives deliver; false when one of them is late. What the others have read counts all the same. */
    private boolean finishReads(Workspace work, MemoryRegion keyMemory, int from) {
        boolean inTime = true;
        for (int drive = 0; drive < work.drives(); drive++) {
            ReadBatch batch = work.batch(drive);
            if (batch != null && batch.count() > 0) {
                inTime &= finishReads(work, batch, keyMemory, from);
            }
        }
        return inTime;
    }

    /** Proves blocks in the order in which the drive delivers them; false when it is late, or out. */
    private boolean finishReads(Workspace work, ReadBatch batch, MemoryRegion keyMemory, int from) {
        for (int seen = 0; seen < batch.count(); ) {
            int ended = batch.awaitMore(seen, timeoutNanos);
            if (ended == seen) {
                return false;
            }
            for (; seen < ended; seen++) {
                boolean read = batch.endedResult(seen) == ReadResult.DONE;
                finishRead(work, batch, batch.endedRead(seen), keyMemory, from, read);
            }
        }
        return batch.await(timeoutNanos); // the last read has ended; its batch is given back right behind it
    }

    private static int leadingRestored(Workspace work, int pinned) {
        int restored = 0;
        while (restored < pinned && work.states[restored] == BlockState.RESTORED) {
            work.restoredHost += work.reads[restored] == Workspace.NO_READ ? 1 : 0;
            restored++;
        }
        return restored;
    }

    /** Pins the turn's blocks in order, host first; one that moved between look-up and pin is looked up once more. */
    private int pinAll(Workspace work) {
        int number = work.binding.indexNumber();
        long hostUse = host.nextUse();
        long nvmeUse = nvme.nextUse();
        work.pinned = 0;
        work.fromDrive = 0;
        int matched = index.match(number, work.keys(), work.keyOffset(0), work.count, work.turn);
        for (int i = 0; i < matched; i++) {
            work.pinned = i;
            work.promotions[i] = Extent.NONE;
            markUsed(work.turn, i, hostUse, nvmeUse);
            if (pin(work, i, work.turn, i)) {
                continue;
            }
            counters.overtaken.increment();
            if (index.match(number, work.keys(), work.keyOffset(i), 1, work.single) == 0
                    || !pin(work, i, work.single, 0)) {
                return i;
            }
        }
        work.pinned = matched;
        return matched;
    }

    /** In each tier that has it: whichever takes its turn first sees that the block is worth its place. */
    private void markUsed(Match match, int i, long hostUse, long nvmeUse) {
        if (match.extent(Tier.HOST, i) != Extent.NONE) {
            host.markUsed(match.extent(Tier.HOST, i), hostUse);
        }
        if (match.extent(Tier.NVME, i) != Extent.NONE) {
            nvme.markUsed(match.extent(Tier.NVME, i), nvmeUse);
        }
    }

    private boolean pin(Workspace work, int i, Match match, int place) {
        work.checksums[i] = match.checksum(place);
        work.extents[i] = match.extent(Tier.HOST, place);
        if (host.pin(work.extents[i])) {
            work.states[i] = BlockState.HOST;
            return true;
        }
        work.extents[i] = match.extent(Tier.NVME, place);
        if (!work.hostOnly && match.bytes(place) == work.blockBytes && nvme.pin(work.extents[i])) {
            work.states[i] = BlockState.NVME;
            return true;
        }
        return false;
    }

    private void addRead(Workspace work, int i, boolean direct) {
        ReadBatch batch = work.batchOf(i);
        work.reads[i] = batch.count();
        if (direct) {
            long start = work.blocks.start(work.firstBlock + i, work.blockBytes);
            batch.add(work.extents[i], work.blockBytes, work.blocks.region(), start, i);
        } else {
            long start = (long) work.readCount * work.paddedBytes;
            batch.add(work.extents[i], work.blockBytes, work.staging(), start, i);
        }
        work.readCount++;
    }

    private void restoreOneFromHost(Workspace work, int i) {
        long extent = work.extents[i];
        work.states[i] = BlockState.MISSED;
        try {
            BlockListing listing = host.listing(extent, work.listing);
            if (listing.storedBytes() != work.blockBytes || !listing.sameKey(work.keys(), work.keyOffset(i))) {
                counters.keyCollisions.increment(); // 128 bits agreed, the key doesn't: a miss, not damage
                return;
            }
            long payload = host.payloadOffset(extent);
            if (verifyHost
                    && work.checksumOf(listing.region(), listing.offset(), host.memory(), payload)
                            != listing.checksum()) {
                counters.corruptBlocks.increment();
                quarantine.dropFromHost(work, i);
                return;
            }
            work.blocks.copyIn(work.firstBlock + i, work.blockBytes, host.memory(), payload);
            if (listing.birth() == SavePath.NEVER_OFFERED) {
                work.hostOnlyBlocks[i / Long.SIZE] |= 1L << i;
            }
            counters.restoredHostBlocks.increment();
            counters.restoredHostBytes.add(work.blockBytes);
            work.states[i] = BlockState.RESTORED;
        } finally {
            host.unpin(extent);
        }
    }

    private void finishRead(
            Workspace work, ReadBatch batch, int read, MemoryRegion keyMemory, int from, boolean isRead) {
        int i = batch.name(read);
        long keyAt = (long) (from + work.firstBlock + i) * PrefixIndex.KEY_BYTES;
        work.states[i] = BlockState.MISSED;
        try {
            MemoryRegion landed = batch.region(read);
            long offset = batch.offset(read);
            if (!isRead) {
                counters.readErrors.increment();
                return;
            }
            if (work.checksumOf(keyMemory, keyAt, landed, offset) != work.checksums[i]) {
                boolean isDamage = quarantine.dropFromDrive(work, i);
                (isDamage ? counters.corruptBlocks : counters.keyCollisions).increment();
                return;
            }
            if (landed != work.blocks.region()) {
                work.blocks.copyIn(work.firstBlock + i, work.blockBytes, landed, offset);
            }
            counters.restoredNvmeBlocks.increment();
            counters.restoredNvmeBytes.add(work.blockBytes);
            work.promotions[i] = work.extents[i];
            work.fromDrive++;
            work.states[i] = BlockState.RESTORED;
        } finally {
            nvme.unpin(work.extents[i]);
        }
    }

    /** Gives back the pins of a turn that gave up on its reads, once those have ended. */
    void unpinDrained(Workspace work) {
        for (int i = 0; i < work.pinned; i++) {
            if (work.states[i] == BlockState.NVME) {
                nvme.unpin(work.extents[i]);
                work.states[i] = BlockState.MISSED;
            }
        }
        estimate.readsEnd(work);
        work.readsAbandoned = false;
    }
}
