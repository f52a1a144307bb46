package io.orbitkv.cli;

import io.orbitkv.kit.Payload;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Level;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.ShardHandle;
import io.orbitkv.store.SyncOutcome;
import java.io.IOException;
import java.util.concurrent.locks.LockSupport;
import org.agrona.DirectBuffer;

/**
 * An engine's loop over requests: query the prefix, restore what is there, compare every byte of it, save the rest. One
 * thread's.
 */
final class ReplayWorker {
    /** Blocks that are restored or saved in one call lie in a buffer of about this size. */
    private static final long BUFFER_BYTES = 16L << 20;

    /** All workers' buffers together, where a block is not larger. */
    private static final long BUFFERS_BYTES = 256L << 20;

    private static final long SYNC_MILLIS = 10_000;

    /** A save that gets no block in for so long gives up: the drive has failed, or the pool can't hold the request. */
    private static final long STUCK_NANOS = 10_000_000_000L;

    private static final long PAUSE_NANOS = 100_000;
    private static final int KEY_BYTES = PromptKeys.KEY_BYTES;

    private final KvStore store;
    private final FamilyHandle family;
    private final ShardHandle shard;
    private final ChildOptions options;
    private final Workload workload;
    private final Teller teller;
    private final PromptKeys keys;
    private final Blocks blocks = Blocks.unset();
    private final SaveResult result = new SaveResult();
    private final RequestOutcome outcome = new RequestOutcome();
    private final MemoryRegion buffer;
    private final int blockBytes;
    private final int group;
    private long corruptSeen;

    ReplayWorker(KvStore store, FamilyHandle family, ChildOptions options, Workload workload, Teller teller) {
        this.store = store;
        this.family = family;
        this.shard = family.shard(0);
        this.options = options;
        this.workload = workload;
        this.teller = teller;
        keys = new PromptKeys(workload.longest());
        blockBytes = options.blockBytes;
        buffer = store.allocate(Math.max(blockBytes, Math.min(BUFFER_BYTES, BUFFERS_BYTES / options.concurrency)));
        group = (int) (buffer.bytes() / blockBytes);
    }

    /** Serves requests until there are no more. */
    void serve(RequestOrder order) throws IOException {
        corruptSeen = store.stats().corruptBlocks();
        for (int request = order.next(); request >= 0; request = order.next()) {
            serve(request);
        }
    }

    /** Restores one block by itself: a state of {@link Frames}. */
    int restoreOne(byte[] key) {
        keys.setOne(key);
        long corrupt = store.stats().corruptBlocks();
        try (Lease lease = store.query(family, keys.buffer(), 0, 1)) {
            if (lease.blocks() == 0 || store.restore(lease, shard, 0, 1, blocks.set(buffer, 0)) == 0) {
                return store.stats().corruptBlocks() > corrupt ? Frames.DAMAGED_BLOCK : Frames.ABSENT;
            }
        }
        return isRight(0, 0) ? Frames.FOUND : Frames.WRONG;
    }

    private void serve(int request) throws IOException {
        int count = workload.blocks(request);
        outcome.begin(request, count);
        keys.set(workload, request);
        long began = System.nanoTime();
        Lease lease = store.query(family, keys.buffer(), 0, count);
        outcome.queryNanos = System.nanoTime() - began;
        int found;
        int restored;
        try (lease) {
            found = lease.blocks();
            restored = restore(lease, found);
            outcome.hostHits = lease.restoredBlocks(Tier.HOST);
            outcome.nvmeHits = lease.restoredBlocks(Tier.NVME);
            outcome.estimatedNanos = restored == found ? (long) (lease.restoreMicros() * 1e3) : 0;
        }
        outcome.shortBlocks = found - restored;
        if (restored < found) {
            tellDamaged(restored, found);
        }
        save(restored, count);
        teller.request(outcome);
        if (options.pace == ChildOptions.Pace.WRITTEN) {
            settle();
        }
    }

    /** Waits until admission has taken note of the request, what it offers the drive then included, and all is written. */
    private void settle() {
        while (store.stats().admission().usesWaitingBytes() > 0) {
            LockSupport.parkNanos(PAUSE_NANOS);
        }
        makeRoom();
    }

    private void tellDamaged(int restored, int found) throws IOException {
        long corrupt = store.stats().corruptBlocks();
        if (corrupt > corruptSeen) {
            corruptSeen = corrupt;
            teller.damaged(keys.buffer(), restored * KEY_BYTES, found - restored);
        }
    }

    /** Restores what was found, in groups that fit the buffer; blocks restored. */
    private int restore(Lease lease, int found) {
        int done = 0;
        while (done < found) {
            int wanted = Math.min(group, found - done);
            long began = System.nanoTime();
            int got = store.restore(lease, shard, done, wanted, blocks.set(buffer, 0));
            outcome.restoreNanos += System.nanoTime() - began;
            for (int i = 0; i < got; i++) {
                outcome.wrong += isRight(i, done + i) ? 0 : 1;
            }
            done += got;
            if (got < wanted) {
                break; // evicted meanwhile, or damaged: the rest is computed again
            }
        }
        return done;
    }

    /** Whether a place of the buffer holds the bytes that belong to a key. */
    private boolean isRight(int place, int keyBlock) {
        return Payload.firstDifference(buffer, (long) place * blockBytes, blockBytes, keys.head(keyBlock), options.seed)
                == Payload.NO_DIFFERENCE;
    }

    /** Saves the blocks from the first that was not restored on, as an engine that has just computed them. */
    private void save(int first, int end) {
        for (int done = first; done < end; ) {
            int count = Math.min(group, end - done);
            for (int i = 0; i < count; i++) {
                Payload.fill(buffer, (long) i * blockBytes, blockBytes, keys.head(done + i), options.seed);
            }
            int taken = saveGroup(done, count);
            done += taken;
            if (taken < count) {
                outcome.dropped += end - done;
                return;
            }
        }
    }

    private int saveGroup(int first, int count) {
        int taken = saveOnce(first, count, 0);
        if (taken == count || options.onFull == ChildOptions.OnFull.DROP) {
            return taken;
        }
        long began = System.nanoTime();
        long progress = began;
        while (taken < count && System.nanoTime() - progress < STUCK_NANOS && makeRoom()) {
            int more = saveOnce(first + taken, count - taken, taken);
            taken += more;
            if (more > 0) {
                progress = System.nanoTime();
            } else {
                LockSupport.parkNanos(PAUSE_NANOS); // somebody reads from every segment
            }
        }
        outcome.waitedNanos += System.nanoTime() - began;
        return taken;
    }

    /** One call of save; blocks that are in the store afterwards. */
    private int saveOnce(int first, int count, int bufferBlock) {
        DirectBuffer buffered = keys.buffer();
        long began = System.nanoTime();
        store.save(
                shard,
                first == 0 ? null : buffered,
                (first - 1) * KEY_BYTES,
                buffered,
                first * KEY_BYTES,
                count,
                blocks.set(buffer, (long) bufferBlock * blockBytes),
                result);
        outcome.saveNanos += System.nanoTime() - began;
        int taken = result.present() + result.accepted();
        outcome.saved += result.accepted();
        if (result.accepted() > 0) {
            teller.saved(buffered, first * KEY_BYTES, taken, result.position());
        }
        return taken;
    }

    /** Waits until what was accepted is written, so that the queue has room; false: the drive does not get on. */
    private boolean makeRoom() {
        return store.sync(store.acceptedPosition(), Level.WRITTEN, SYNC_MILLIS) != SyncOutcome.FAILED;
    }
}
