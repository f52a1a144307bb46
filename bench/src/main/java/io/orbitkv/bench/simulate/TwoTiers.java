package io.orbitkv.bench.simulate;

import io.orbitkv.tiers.AdmissionPolicy;

/**
 * Runs a trace against a store: host memory before a drive, each with its own eviction.
 *
 * <pre>
 * query      leading blocks that are in host memory or on the drive: hits
 * restore    hits are used in both tiers; those from the drive are copied into host memory
 * save       what is left and nowhere yet goes into host memory, and to the drive where admission lets it
 * </pre>
 *
 * <p>New blocks of a request go on in the lane where the block before them lies open in host memory; otherwise the key at
 * which the request left what was stored picks the lane. On the drive they take the lane of the same number. What a
 * restore copies into host memory takes the lane of the request's first key. Blocks that wait for the drive lie in host
 * memory meanwhile, whatever leaves it.
 */
final class TwoTiers {
    private static final SegmentTier NONE = null;

    private final KeyTrace trace;
    private final StoreShape shape;
    private final SegmentTier host;
    private final SegmentTier nvme;
    private final Admission admission;
    private final Tally tally;
    private final int lanes;
    private final WriteQueue queue;

    TwoTiers(KeyTrace trace, StoreShape shape) {
        this.trace = trace;
        this.shape = shape;
        host = shape.host() == null ? NONE : new SegmentTier(shape.hostOrder(), shape.host(), trace);
        nvme = shape.nvme() == null ? NONE : new SegmentTier(shape.nvmeOrder(), shape.nvme(), trace);
        admission = admission();
        tally = new Tally(trace, key -> inHost(key) || onNvme(key));
        queue = new WriteQueue(trace.uniqueBlocks(), nvme == NONE ? 0 : shape.queueBlocks());
        lanes = shape.host() == null ? shape.nvme().lanes() : shape.host().lanes();
        if (host != NONE && nvme != NONE && shape.nvme().lanes() != lanes) {
            throw new IllegalArgumentException(
                    lanes + " lanes in host memory and " + shape.nvme().lanes() + " on the drive");
        }
    }

    private Admission admission() {
        if (nvme == NONE) {
            return Admission.ALL;
        }
        long blocks = shape.nvme().capacityBlocks();
        return switch (shape.admission()) {
            case ALL -> Admission.ALL;
            case REUSE -> new SecondUse(trace, blocks);
            case DUEL -> new Duel(trace, blocks, shape.price());
        };
    }

    SimResult run(String policy) {
        for (int request = 0; request < trace.requests(); request++) {
            serve(request);
            tally.endRequest(request);
        }
        return tally.result(
                policy,
                host == NONE ? 0 : shape.host().capacityBlocks(),
                nvme == NONE ? 0 : shape.nvme().capacityBlocks(),
                nvme == NONE ? 0 : nvme.written(),
                nvme == NONE ? 0 : nvme.writtenAgain());
    }

    private void serve(int request) {
        begin(request);
        int start = trace.start(request);
        int end = trace.start(request + 1);
        int miss = query(request, start, end);
        int restoreLane = laneOfKey(trace.key(start));
        for (int place = start; place < miss; place++) {
            restore(trace.key(place), restoreLane);
        }
        if (miss < end) {
            int saveLane = lane(start, miss);
            for (int place = miss; place < end; place++) {
                save(trace.key(place), saveLane);
            }
        }
        admission.end(request, miss);
    }

    private void begin(int request) {
        if (host != NONE) {
            host.begin(request);
        }
        if (nvme != NONE) {
            nvme.begin(request);
        }
    }

    /** Counts the hits; where they end. */
    private int query(int request, int start, int end) {
        for (int place = start; place < end; place++) {
            int key = trace.key(place);
            if (inHost(key)) {
                tally.hostHit(request, place - start);
            } else if (onNvme(key)) {
                tally.nvmeHit(request, place - start);
            } else {
                return place;
            }
        }
        return end;
    }

    /** Where a request goes on that left what was stored at a place. */
    private int lane(int start, int place) {
        if (host != NONE && place > start) {
            int open = host.laneOf(trace.key(place - 1));
            if (open >= 0) {
                return open;
            }
        }
        return laneOfKey(trace.key(place));
    }

    private int laneOfKey(int key) {
        return lanes == 1 ? 0 : (int) Long.remainderUnsigned(Mix.hash(key), lanes);
    }

    private void restore(int key, int lane) {
        boolean stored = onNvme(key);
        if (inHost(key)) {
            if (host != NONE && host.has(key)) {
                host.touch(key);
            }
            if (!stored && nvme != NONE && shape.admission() != AdmissionPolicy.ALL && admission.admits(key)) {
                offer(key, lane);
            }
        }
        if (stored) {
            nvme.touch(key);
            if (host != NONE && !host.has(key)) {
                host.add(key, lane);
            }
        }
    }

    private void save(int key, int lane) {
        if (inHost(key) || onNvme(key)) {
            return;
        }
        if (host != NONE) {
            host.add(key, lane);
        }
        if (nvme != NONE && admission.admits(key)) {
            offer(key, lane);
        }
    }

    /** Queues a block for the drive; the one that has waited longest is written when the queue is full. */
    private void offer(int key, int lane) {
        if (queue.capacity() == 0) {
            nvme.add(key, lane);
            return;
        }
        if (queue.isWaiting(key)) {
            return;
        }
        if (queue.isFull()) {
            int next = queue.first();
            int itsLane = queue.laneOf(next);
            queue.remove(next);
            nvme.add(next, itsLane);
        }
        queue.add(key, lane);
    }

    private boolean inHost(int key) {
        return (host != NONE && host.has(key)) || queue.isWaiting(key);
    }

    private boolean onNvme(int key) {
        return nvme != NONE && nvme.has(key);
    }
}
