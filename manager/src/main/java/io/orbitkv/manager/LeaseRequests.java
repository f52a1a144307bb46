package io.orbitkv.manager;

import io.orbitkv.manager.wire.DoneDecoder;
import io.orbitkv.manager.wire.LeaseCodesEncoder;
import io.orbitkv.manager.wire.LocateDecoder;
import io.orbitkv.manager.wire.LocatedEncoder;
import io.orbitkv.manager.wire.PlaceKind;
import io.orbitkv.manager.wire.ReleaseDecoder;
import io.orbitkv.manager.wire.RenewDecoder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.BlockPlaces;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.ShardHandle;

/**
 * Answers where leased blocks are, and ends leases. A block in host memory is given as a place in the arena; one on a drive
 * only is read, proved and put into the part of the session's staging memory that the client names. One thread.
 */
final class LeaseRequests {
    private final Manager manager;
    private final Session session;
    private final Frames frames;
    private final Replies replies;
    private final LocateDecoder locate = new LocateDecoder();
    private final DoneDecoder done = new DoneDecoder();
    private final RenewDecoder renew = new RenewDecoder();
    private final ReleaseDecoder release = new ReleaseDecoder();
    private final LocatedEncoder located = new LocatedEncoder();
    private final LeaseCodesEncoder codes = new LeaseCodesEncoder();
    private final Blocks landing = Blocks.unset();
    private BlockPlaces places = new BlockPlaces(64);

    LeaseRequests(Manager manager, Session session, Frames frames, Replies replies) {
        this.manager = manager;
        this.session = session;
        this.frames = frames;
        this.replies = replies;
    }

    int locate(int blockLength, int version) {
        locate.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        ClientLease lease = manager.leases().enter(locate.leaseId(), session);
        try {
            return locate(lease);
        } finally {
            manager.leases().leave(lease);
        }
    }

    private int locate(ClientLease lease) {
        long from = locate.from();
        long count = locate.count();
        if (locate.shard() >= lease.family().shards()
                || from + count > lease.lease().blocks()) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "blocks " + from + " to " + (from + count) + " of shard " + locate.shard()
                            + " are not within the lease's " + lease.lease().blocks() + " blocks of "
                            + lease.family().shards() + " shards");
        }
        ShardHandle shard = lease.family().shard((int) locate.shard());
        requireStaging(locate.landingOffset(), locate.landingBytes());
        if (places.blocksMax() < count) {
            places = new BlockPlaces((int) count);
        }
        manager.store().placesInHost(lease.lease(), shard, (int) from, (int) count, places);
        return answer(lease, shard, (int) from, (int) count);
    }

    private int answer(ClientLease lease, ShardHandle shard, int from, int count) {
        located.wrapAndApplyHeader(frames.out(), Wire.LENGTH_BYTES, replies.header)
                .opId(locate.opId());
        LocatedEncoder.PlacesEncoder into = located.placesCount(count);
        long landingAt = locate.landingOffset();
        long room = locate.landingBytes() / shard.blockBytes();
        PlaceKind rest = null;
        for (int i = 0; i < count; ) {
            if (rest != null) {
                place(into, 0, 0, 0, 0, rest);
                i++;
            } else if (places.isInHost(i)) {
                place(
                        into,
                        places.offsetInSegment(i),
                        places.segment(i),
                        places.generation(i),
                        places.checksum(i),
                        PlaceKind.ARENA);
                i++;
            } else {
                int wanted = absent(i, count);
                int asked = (int) Math.min(wanted, room);
                int landed = asked == 0
                        ? 0
                        : manager.store()
                                .restore(
                                        lease.lease(),
                                        shard,
                                        from + i,
                                        asked,
                                        landing.set(session.staging(), landingAt));
                for (int j = 0; j < landed; j++, landingAt += shard.blockBytes()) {
                    place(into, landingAt, 0, 0, 0, PlaceKind.LANDED);
                }
                room -= landed;
                i += landed;
                rest = landed == wanted ? null : landed == asked ? PlaceKind.LATER : PlaceKind.MISSED;
            }
        }
        return located.limit();
    }

    /** How many blocks from one on are not in host memory. */
    private int absent(int from, int count) {
        int i = from;
        while (i < count && !places.isInHost(i)) {
            i++;
        }
        return i - from;
    }

    private static void place(
            LocatedEncoder.PlacesEncoder into, long offset, int segment, int generation, int checksum, PlaceKind kind) {
        into.next()
                .offset(offset)
                .segment(segment)
                .generation(generation)
                .checksum(Integer.toUnsignedLong(checksum))
                .kind(kind);
    }

    private void requireStaging(long offset, long bytes) {
        MemoryRegion staging = session.staging();
        long there = staging == null ? 0 : staging.bytes();
        if (offset < 0 || bytes < 0 || offset > there || bytes > there - offset) {
            throw new OrbitKvException(
                    ErrorCode.OUTSIDE_STAGING,
                    bytes + " bytes at " + offset + " do not lie within the session's " + there + " bytes of staging");
        }
    }

    int done(int blockLength, int version) {
        done.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        int blocks = manager.leases().done(done.leaseId(), (int) Math.min(done.shard(), Integer.MAX_VALUE), session);
        manager.counters().restoredByClients.add(Math.min(done.restoredBlocks(), blocks)); // the client's word, bounded
        manager.counters().overtakenClients.add(Math.min(done.overtakenBlocks(), blocks));
        return replies.ack(done.opId());
    }

    int renew(int blockLength, int version) {
        renew.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        RenewDecoder.LeasesDecoder each = renew.leases();
        LeaseCodesEncoder.LeasesEncoder into = begin(renew.opId(), each.count());
        while (each.hasNext()) {
            long id = each.next().leaseId();
            into.next().leaseId(id).code(codeOf(() -> manager.leases().renew(id, session)));
        }
        return codes.limit();
    }

    int release(int blockLength, int version) {
        release.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        ReleaseDecoder.LeasesDecoder each = release.leases();
        LeaseCodesEncoder.LeasesEncoder into = begin(release.opId(), each.count());
        while (each.hasNext()) {
            long id = each.next().leaseId();
            into.next().leaseId(id).code(codeOf(() -> manager.leases().release(id, session)));
        }
        return codes.limit();
    }

    private LeaseCodesEncoder.LeasesEncoder begin(long opId, int count) {
        codes.wrapAndApplyHeader(frames.out(), Wire.LENGTH_BYTES, replies.header)
                .opId(opId);
        return codes.leasesCount(count);
    }

    /** 0, or what was wrong with one of several leases. */
    private int codeOf(Runnable act) {
        try {
            act.run();
            return 0;
        } catch (OrbitKvException e) {
            manager.counters().refused(e.code());
            return e.code().number();
        }
    }
}
