package io.orbitkv.manager;

import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.BlockPlaces;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Lease;
import io.orbitkv.store.ShardHandle;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings blocks that are asked for from the drives into host memory, one query after the other on a thread of its own, so
 * that whoever asked need not wait on the session's. A restore promotes what it reads; what it reads is looked at by nobody.
 */
final class Prefetcher implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(Prefetcher.class);
    private static final int QUERIES_MAX = 256;
    private static final int SCRATCH_BYTES = 8 << 20;

    private final KvStore store;
    private final RateLimits limits;
    private final BlockingQueue<PendingQuery> queue = new ArrayBlockingQueue<>(QUERIES_MAX);
    private final BlockPlaces places = new BlockPlaces(Wire.BLOCKS_MAX);
    private final Blocks scratch = Blocks.unset();
    private MemoryRegion memory;

    Prefetcher(KvStore store, RateLimits limits) {
        this.store = store;
        this.limits = limits;
    }

    /** Queues a query; false where too many wait. */
    boolean offer(PendingQuery query) {
        return queue.offer(query);
    }

    int waiting() {
        return queue.size();
    }

    @Override
    public void run() {
        try {
            while (!Thread.currentThread().isInterrupted()) {
                PendingQuery query = queue.take();
                try {
                    prefetch(query);
                } catch (OrbitKvException e) {
                    limits.warn(LOG, "a prefetch stopped short: " + e.getMessage());
                } finally {
                    query.ready();
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void prefetch(PendingQuery query) {
        if (query.isCancelled()) {
            return;
        }
        try (Lease lease = store.query(query.family(), query.keys(), 0, query.count())) {
            for (int shard = 0; shard < query.family().shards() && lease.blocks() > 0; shard++) {
                promote(query, lease, query.family().shard(shard));
            }
        }
    }

    private void promote(PendingQuery query, Lease lease, ShardHandle shard) {
        if (memory == null || memory.bytes() < shard.blockBytes()) {
            memory = store.allocate(Math.max(SCRATCH_BYTES, shard.blockBytes()));
        }
        int atOnce = (int) (memory.bytes() / shard.blockBytes());
        store.placesInHost(lease, shard, 0, lease.blocks(), places);
        for (int block = 0; block < lease.blocks() && !query.isCancelled(); ) {
            int run = 0;
            while (run < atOnce && block + run < lease.blocks() && !places.isInHost(block + run)) {
                run++;
            }
            if (run > 0 && store.restore(lease, shard, block, run, scratch.set(memory, 0)) < run) {
                return;
            }
            block += Math.max(1, run);
        }
    }
}
