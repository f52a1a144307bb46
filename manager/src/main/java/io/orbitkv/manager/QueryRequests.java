package io.orbitkv.manager;

import io.orbitkv.manager.wire.CancelDecoder;
import io.orbitkv.manager.wire.PollDecoder;
import io.orbitkv.manager.wire.PrefetchDecoder;
import io.orbitkv.manager.wire.QueryDecoder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.FillState;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.Lease;
import org.agrona.DirectBuffer;
import org.agrona.collections.Long2LongHashMap;
import org.agrona.collections.Long2ObjectHashMap;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Answers queries on the session's thread. A query that may wait keeps its keys here, so that asking again sends none. A
 * query with the number of an earlier one takes its place: the lease of that one ends.
 */
final class QueryRequests {
    private static final int RETRY_MILLIS = 5;
    private static final long NONE = 0;

    private final Manager manager;
    private final Session session;
    private final Frames frames;
    private final Replies replies;
    private final int queriesMax;
    private final QueryDecoder query = new QueryDecoder();
    private final PollDecoder poll = new PollDecoder();
    private final PrefetchDecoder prefetch = new PrefetchDecoder();
    private final CancelDecoder cancel = new CancelDecoder();
    private final UnsafeBuffer keys = new UnsafeBuffer(0, 0);

    /** The lease that each query of this session got last. */
    private final Long2LongHashMap leaseOf = new Long2LongHashMap(NONE);

    private final Long2ObjectHashMap<PendingQuery> pending = new Long2ObjectHashMap<>();

    QueryRequests(Manager manager, Session session, Frames frames, Replies replies) {
        this.manager = manager;
        this.session = session;
        this.frames = frames;
        this.replies = replies;
        this.queriesMax = manager.options().leasesMax();
    }

    int query(int blockLength, int version) {
        query.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        FamilyHandle family = session.family(query.family());
        long queryId = query.queryId();
        boolean mayPend = query.mayPend() != 0;
        query.wrapKeys(keys);
        int count = Wire.keys(keys.capacity());
        supersede(queryId);
        return answer(query.opId(), queryId, family, keys, count, mayPend);
    }

    int poll(int blockLength, int version) {
        poll.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        PendingQuery asked = pending.get(poll.queryId());
        if (asked == null) {
            throw new OrbitKvException(
                    ErrorCode.UNKNOWN_QUERY,
                    "no query " + poll.queryId() + " of this session waits; ask with its keys");
        }
        if (!asked.isReady()) {
            return replies.pending(poll.opId(), poll.queryId(), RETRY_MILLIS);
        }
        pending.remove(poll.queryId());
        return answer(poll.opId(), poll.queryId(), asked.family(), asked.keys(), asked.count(), false);
    }

    private int answer(long opId, long queryId, FamilyHandle family, DirectBuffer of, int count, boolean mayPend) {
        Lease lease = manager.store().query(family, of, 0, count);
        if (lease.blocks() == 0) {
            boolean filling = mayPend && manager.store().openReport().fill() == FillState.FILLING;
            return filling ? pend(opId, queryId, new PendingQuery(family, of, count)) : replies.miss(opId, queryId);
        }
        if (mayPend && lease.nvmeBlocks() > 0 && pending.size() < queriesMax) {
            PendingQuery asked = new PendingQuery(family, of, lease.blocks());
            if (manager.prefetcher().offer(asked)) {
                lease.close();
                return pend(opId, queryId, asked);
            }
        }
        long id = manager.leases().add(session, session.instance(), lease);
        if (id == 0) {
            return replies.miss(opId, queryId);
        }
        if (leaseOf.size() >= 4 * queriesMax) {
            leaseOf.clear(); // those leases end by themselves
        }
        leaseOf.put(queryId, id);
        return replies.ready(opId, queryId, id, lease);
    }

    private int pend(long opId, long queryId, PendingQuery asked) {
        if (pending.size() >= queriesMax) {
            return replies.miss(opId, queryId);
        }
        pending.put(queryId, asked);
        return replies.pending(opId, queryId, RETRY_MILLIS);
    }

    private void supersede(long queryId) {
        PendingQuery asked = pending.remove(queryId);
        if (asked != null) {
            asked.cancel();
        }
        long lease = leaseOf.remove(queryId);
        if (lease != NONE) {
            manager.leases().supersede(lease, session);
        }
    }

    int prefetch(int blockLength, int version) {
        prefetch.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        FamilyHandle family = session.family(prefetch.family());
        prefetch.wrapKeys(keys);
        int count = Wire.keys(keys.capacity());
        supersede(prefetch.queryId());
        PendingQuery asked = new PendingQuery(family, keys, count);
        if (pending.size() < queriesMax && manager.prefetcher().offer(asked)) {
            pending.put(prefetch.queryId(), asked);
        }
        return replies.ack(prefetch.opId());
    }

    int cancel(int blockLength, int version) {
        cancel.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        supersede(cancel.queryId());
        return replies.ack(cancel.opId());
    }

    void end() {
        pending.values().forEach(PendingQuery::cancel);
    }
}
