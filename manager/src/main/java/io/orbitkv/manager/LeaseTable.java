package io.orbitkv.manager;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.Lease;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.agrona.collections.Long2ObjectHashMap;
import org.agrona.collections.LongHashSet;

/**
 * The leases that clients hold. A lease belongs to the session that asked and ends with it at the latest; every session of
 * its instance may restore under it. Safe from any thread; nothing here waits.
 */
final class LeaseTable {
    /** So many expired leases keep an error code of their own. */
    private static final int EXPIRED_MAX = 1 << 16;

    private final long instanceBytesMax;
    private final int sessionLeasesMax;
    private final Map<String, Instance> instances = new HashMap<>();
    private final Long2ObjectHashMap<ClientLease> leases = new Long2ObjectHashMap<>();
    private final LongHashSet expired = new LongHashSet();
    private long nextId = 1;
    private long refused;

    LeaseTable(long instanceBytesMax, int sessionLeasesMax) {
        this.instanceBytesMax = instanceBytesMax == 0 ? Long.MAX_VALUE : instanceBytesMax;
        this.sessionLeasesMax = sessionLeasesMax;
    }

    synchronized Instance join(String name) {
        Instance instance = instances.computeIfAbsent(name, Instance::new);
        instance.sessions++;
        return instance;
    }

    /** A session ends: so do its leases, and its instance where it was the last one. */
    synchronized void leave(Session session, Instance instance) {
        List<ClientLease> theirs = new ArrayList<>();
        for (ClientLease lease : leases.values()) {
            if (lease.owner() == session) {
                theirs.add(lease);
            }
        }
        theirs.forEach(this::end);
        if (--instance.sessions == 0) {
            instances.remove(instance.name());
        }
    }

    /**
     * Gives a lease a number.
     *
     * @return 0 where a budget is spent: the lease was given back, and the query is a miss
     */
    synchronized long add(Session session, Instance instance, Lease lease) {
        if (session.leases >= sessionLeasesMax || lease.bytes() > instanceBytesMax - instance.leasedBytes) {
            refused++;
            lease.close();
            return 0;
        }
        long id = nextId++;
        leases.put(id, new ClientLease(id, session, instance, lease));
        session.leases++;
        instance.leasedBytes += lease.bytes();
        return id;
    }

    /** Begins to work under a lease, and lets it last as if it were new; end it with {@link #leave(ClientLease)}. */
    synchronized ClientLease enter(long id, Session session) {
        ClientLease lease = require(id, session);
        lease.users++;
        return lease;
    }

    synchronized void leave(ClientLease lease) {
        if (--lease.users == 0 && lease.ended) {
            lease.lease().close();
        }
    }

    /** Lets a lease last as if it were new. */
    synchronized void renew(long id, Session session) {
        require(id, session);
    }

    private ClientLease require(long id, Session session) {
        ClientLease lease = find(id, session);
        if (!lease.lease().renew()) {
            expire(lease);
            throw expired(id);
        }
        return lease;
    }

    /** Ends a lease before its time. */
    synchronized void release(long id, Session session) {
        end(find(id, session));
    }

    /** Ends a lease of this session, if it has not ended by itself, for a query that takes its place. */
    synchronized void supersede(long id, Session session) {
        ClientLease lease = leases.get(id);
        if (lease != null && lease.owner() == session) {
            end(lease);
        }
    }

    /** A shard has all its blocks; where all shards have, the lease ends. How many blocks it was over. */
    synchronized int done(long id, int shard, Session session) {
        ClientLease lease = find(id, session);
        if (shard < 0 || shard >= lease.family().shards()) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "the lease's family has shards 0 to " + (lease.family().shards() - 1) + ", got " + shard);
        }
        int blocks = lease.lease().blocks();
        if (lease.done(shard)) {
            end(lease);
        }
        return blocks;
    }

    private ClientLease find(long id, Session session) {
        ClientLease lease = leases.get(id);
        if (lease != null && lease.instance() == session.instance()) {
            return lease;
        }
        if (lease != null) {
            throw new OrbitKvException(
                    ErrorCode.FOREIGN_LEASE, "lease " + id + " is another instance's; ask for one of your own");
        }
        if (expired.contains(id)) {
            throw expired(id);
        }
        if (id < 1 || id >= nextId) {
            throw new OrbitKvException(ErrorCode.UNKNOWN_LEASE, "there never was a lease " + id);
        }
        throw new OrbitKvException(
                ErrorCode.LEASE_ENDED, "lease " + id + " was released, done or superseded before; query again");
    }

    private static OrbitKvException expired(long id) {
        return new OrbitKvException(
                ErrorCode.LEASE_EXPIRED, "lease " + id + " has expired; query again, and renew while you wait");
    }

    private void end(ClientLease lease) {
        if (leases.remove(lease.id()) == null) {
            return;
        }
        lease.ended = true;
        lease.owner().leases--;
        lease.instance().leasedBytes -= lease.bytes();
        if (lease.users == 0) {
            lease.lease().close();
        }
    }

    private void expire(ClientLease lease) {
        if (expired.size() == EXPIRED_MAX) {
            expired.clear();
        }
        expired.add(lease.id());
        end(lease);
    }

    /** Ends leases whose time is over. */
    synchronized void sweep() {
        List<ClientLease> over = new ArrayList<>();
        for (ClientLease lease : leases.values()) {
            if (lease.users == 0 && !lease.lease().isLive()) {
                over.add(lease);
            }
        }
        over.forEach(this::expire);
    }

    synchronized int held() {
        return leases.size();
    }

    synchronized long leasedBytes() {
        long bytes = 0;
        for (Instance instance : instances.values()) {
            bytes += instance.leasedBytes;
        }
        return bytes;
    }

    synchronized int instances() {
        return instances.size();
    }

    synchronized long refused() {
        return refused;
    }
}
