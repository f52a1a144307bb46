package io.orbitkv.store;

import io.orbitkv.index.Match;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.Drives;
import org.agrona.DirectBuffer;

/** Finds the longest stored prefix over all shards of a family: no I/O, no lock, no allocation. */
final class QueryPath {
    private final PrefixIndex index;
    private final Drives nvme;
    private final Leases leases;
    private final Counters counters;
    private final Admission admission;
    private final RestoreEstimate estimate;
    private final int queryBlocksMax;
    private final Lease miss;

    QueryPath(
            PrefixIndex index,
            Drives nvme,
            Leases leases,
            Counters counters,
            Admission admission,
            RestoreEstimate estimate,
            int queryBlocksMax) {
        this.index = index;
        this.nvme = nvme;
        this.leases = leases;
        this.counters = counters;
        this.admission = admission;
        this.estimate = estimate;
        this.queryBlocksMax = queryBlocksMax;
        this.miss = new Lease(leases);
    }

    Lease query(FamilyHandle family, DirectBuffer keys, int keysOffset, int count, Workspace work) {
        int common = Math.min(count, queryBlocksMax);
        counters.queries.increment();
        counters.queriedBlocks.add(common);
        int shards = family.shards();
        for (int shard = 0; shard < shards && common > 0; shard++) {
            common = index.match(family.shard(shard).binding().indexNumber(), keys, keysOffset, common, work.prompt);
            common = onServingDrives(work.prompt, common);
        }
        admission.asked(family, keys, keysOffset, Math.min(count, queryBlocksMax), common);
        if (common == 0) {
            return miss;
        }
        Lease lease = leases.take(common, (long) shards * family.shard(0).blockBytes());
        if (lease == null || lease.blocks() < common) {
            counters.leasesRefused.increment();
        }
        if (lease == null) {
            return miss;
        }
        boolean isShorter = lease.blocks() < common;
        common = lease.blocks();
        long nowNanos = leases.nowNanos();
        double pace = RestoreEstimate.pace(nowNanos - work.queryBeganNanos, common * shards);
        int host = 0;
        double hostNanos = 0;
        double nvmeNanos = 0;
        for (int shard = 0; shard < shards; shard++) {
            ShardHandle of = family.shard(shard);
            int length = common;
            if (shards > 1 || isShorter) { // asked again at the common length: the shards before had matched further
                length = index.match(of.binding().indexNumber(), keys, keysOffset, common, work.prompt);
                length = onServingDrives(work.prompt, length);
            }
            RestoreEstimate.Paths paths =
                    work.paths.count(work.prompt, length, RestorePath.turnBlocks(of.paddedBytes()));
            host += paths.hostBlocks();
            hostNanos += estimate.hostNanos(paths, of.blockBytes(), pace);
            nvmeNanos += estimate.nvmeNanos(paths, of.blockBytes());
        }
        int all = common * shards;
        lease.estimate(hostNanos, nvmeNanos, pace);
        lease.hold(family, keys, keysOffset, host, all - host, leases.expiryNanos(nowNanos));
        counters.hitHostBlocks.add(host);
        counters.hitNvmeBlocks.add((long) all - host);
        return lease;
    }

    /** How many of the first blocks of a match lie in host memory, or on a drive that is in service. */
    private int onServingDrives(Match match, int length) {
        for (int i = 0; i < length && nvme.isAnyOut(); i++) {
            if (match.extent(Tier.HOST, i) == Extent.NONE && !nvme.serves(match.extent(Tier.NVME, i))) {
                return i;
            }
        }
        return length;
    }
}
