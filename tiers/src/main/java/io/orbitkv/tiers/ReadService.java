package io.orbitkv.tiers;

import io.orbitkv.nativeio.Extent;
import org.agrona.concurrent.ManyToOneConcurrentArrayQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads batches of blocks for callers: they queue batches, the agent starts the reads and tells when all have ended.
 */
final class ReadService {
    private static final Logger LOG = LoggerFactory.getLogger(NvmeTier.class);

    /** Most batches whose reads are under way: more than a ring's depth of single reads would ever need. */
    private static final int ACTIVE_MAX = 128;

    /** Reads of a batch that are started before another batch's turn, so that a short one doesn't wait for a long one. */
    private static final int TURN_READS = 8;

    /** A drive that fails many reads is named once in so many. */
    private static final long LOG_ONE_IN = 1024;

    private final LogContext context;
    private final ManyToOneConcurrentArrayQueue<ReadBatch> queue;
    private final ReadBatch[] active = new ReadBatch[ACTIVE_MAX];
    private int activeCount;

    /** The slot whose turn it is. */
    private int turn;

    private volatile boolean closed;

    ReadService(LogContext context) {
        this.context = context;
        this.queue = new ManyToOneConcurrentArrayQueue<>(context.options.readQueueBatches());
    }

    /** Any thread. */
    boolean submit(ReadBatch batch, NvmeTier owner) {
        if (closed) {
            return false;
        }
        batch.submitTo(owner);
        if (batch.count() == 0) {
            batch.drain();
            return true;
        }
        if (!queue.offer(batch)) {
            batch.refuse();
            return false;
        }
        if (closed) { // partner: close() sets it, then empties the queue; one of us takes the batch out
            refuseQueued();
        }
        return true;
    }

    /** Starts as many reads as the ring takes; how many. */
    int start() {
        int work = 0;
        while (activeCount < ACTIVE_MAX) {
            ReadBatch batch = queue.poll();
            if (batch == null) {
                break;
            }
            activate(batch);
            work++;
        }
        if (activeCount == 0) {
            return work;
        }
        int idle = 0;
        for (; idle < ACTIVE_MAX && activeCount > 0; turn = (turn + 1) % ACTIVE_MAX) {
            idle++;
            if (active[turn] != null && !active[turn].isStarted()) {
                int started = start(turn);
                if (started == 0) {
                    break; // the ring is full
                }
                work += started;
                idle = 0;
            }
        }
        return work;
    }

    private void activate(ReadBatch batch) {
        for (int slot = 0; slot < ACTIVE_MAX; slot++) {
            if (active[slot] == null) {
                active[slot] = batch;
                activeCount++;
                return;
            }
        }
        throw new IllegalStateException("no slot free among " + ACTIVE_MAX);
    }

    private int start(int slot) {
        ReadBatch batch = active[slot];
        int work = 0;
        while (work < TURN_READS && !batch.isStarted()) {
            int i = batch.nextToStart();
            long extent = batch.extent(i);
            if (!isReadable(extent, batch.pages(i))) {
                batch.start();
                NvmeCounters.add(context.counters.readsStale, 1);
                work++;
                if (end(slot, i, ReadResult.STALE)) {
                    break;
                }
                continue;
            }
            long bytes = (long) batch.pages(i) * DiskFormat.PAGE_BYTES;
            if (batch.region(i).bytes() == 0) { // closed by its owner after the wait was given up: nobody else's loss
                batch.start();
                context.counters.readsFailed.getAndAdd(1);
                work++;
                if (end(slot, i, ReadResult.FAILED)) {
                    break;
                }
                continue;
            }
            if (!context.io.read(extent, batch.region(i), batch.offset(i), bytes, Token.pack(Token.READ, slot, i))) {
                break;
            }
            batch.start();
            context.table.readStarts(Extent.segment(extent));
            work++;
        }
        return work;
    }

    private boolean isReadable(long extent, int pages) {
        return context.table.holds(extent) && pages <= context.geometry.segmentPages() - Extent.page(extent);
    }

    void onRead(int slot, int i, int result) {
        ReadBatch batch = active[slot];
        context.table.readEnds(Extent.segment(batch.extent(i)));
        if (result < 0) {
            noteFailure(batch.pages(i), batch.extent(i), result);
            end(slot, i, ReadResult.FAILED);
            return;
        }
        context.counters.reads.getAndAdd(1);
        context.counters.readBytes.getAndAdd(result);
        end(slot, i, ReadResult.DONE);
    }

    /** The drive has answered a read with an error. Any thread. */
    void noteFailure(int pages, long extent, int result) {
        if (context.counters.readsFailed.getAndAdd(1) % LOG_ONE_IN == 0) {
            LOG.warn(
                    "Reading {} pages at {} failed with errno {}; check the drive",
                    pages,
                    Extent.text(extent),
                    -result);
        }
    }

    /** Whether the whole batch has ended. */
    private boolean end(int slot, int i, ReadResult result) {
        ReadBatch batch = active[slot];
        if (!batch.end(i, result)) {
            return false;
        }
        active[slot] = null;
        activeCount--;
        batch.drain();
        return true;
    }

    /** Nothing queued and nothing under way. */
    boolean isIdle() {
        return activeCount == 0 && queue.isEmpty();
    }

    /** After a failure: takes no more batches and ends what was not started; what it did. */
    int abandon() {
        closed = true;
        return drop();
    }

    /** The drive is out: ends what was not started; what it did. */
    int drop() {
        int work = refuseQueued();
        for (int slot = 0; slot < ACTIVE_MAX && activeCount > 0; slot++) {
            while (active[slot] != null && !active[slot].isStarted()) {
                int i = active[slot].nextToStart();
                active[slot].start();
                context.counters.readsFailed.getAndAdd(1);
                end(slot, i, ReadResult.FAILED);
                work++;
            }
        }
        return work;
    }

    /** The ring is closed, so no read is in flight: everything that is left ends. Agent's thread, or after it. */
    void close() {
        abandon();
        for (int slot = 0; slot < ACTIVE_MAX; slot++) {
            ReadBatch batch = active[slot];
            for (int i = 0; batch != null && active[slot] == batch && i < batch.count(); i++) {
                if (batch.isPending(i)) {
                    end(slot, i, ReadResult.FAILED);
                }
            }
        }
    }

    /** Takes out what nobody will start any more. The agent is closed or failing: calls exclude each other. */
    private synchronized int refuseQueued() {
        int work = 0;
        for (ReadBatch batch = queue.poll(); batch != null; batch = queue.poll()) {
            boolean ended = false;
            for (int i = 0; i < batch.count(); i++) {
                context.counters.readsFailed.getAndAdd(1);
                ended = batch.end(i, ReadResult.FAILED);
            }
            assert ended : "a queued batch had reads under way";
            batch.drain();
            work++;
        }
        return work;
    }

    int queued() {
        return queue.size();
    }
}
