package io.orbitkv.manager;

import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.Lease;
import java.util.BitSet;

/** A lease of a client, by its number. Guarded by {@link LeaseTable}. */
final class ClientLease {
    private final long id;
    private final Session owner;
    private final Instance instance;
    private final Lease lease;
    private final FamilyHandle family;
    private final long bytes;

    /** Made where there is more than one. */
    private BitSet shardsDone;

    /** Requests that work under it now: its store lease is not given back before they end. */
    int users;

    boolean ended;

    ClientLease(long id, Session owner, Instance instance, Lease lease) {
        this.id = id;
        this.owner = owner;
        this.instance = instance;
        this.lease = lease;
        this.family = lease.family(); // leases are pooled: once it is given back it may say something else
        this.bytes = lease.bytes();
    }

    long id() {
        return id;
    }

    Session owner() {
        return owner;
    }

    Instance instance() {
        return instance;
    }

    Lease lease() {
        return lease;
    }

    FamilyHandle family() {
        return family;
    }

    long bytes() {
        return bytes;
    }

    /** Notes that a shard's blocks are where they belong; whether all shards' are. */
    boolean done(int shard) {
        if (family.shards() == 1) {
            return true;
        }
        shardsDone = shardsDone == null ? new BitSet(family.shards()) : shardsDone;
        shardsDone.set(shard);
        return shardsDone.cardinality() == family.shards();
    }
}
