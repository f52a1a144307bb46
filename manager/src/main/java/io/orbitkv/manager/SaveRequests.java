package io.orbitkv.manager;

import io.orbitkv.manager.wire.SaveAbortDecoder;
import io.orbitkv.manager.wire.SaveBeginDecoder;
import io.orbitkv.manager.wire.SaveCommitDecoder;
import io.orbitkv.manager.wire.SaveGrantedEncoder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.SaveResult.DropReason;
import io.orbitkv.store.ShardHandle;
import java.util.ArrayDeque;
import org.agrona.DirectBuffer;
import org.agrona.collections.Long2ObjectHashMap;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Takes blocks in: the client says which, is told which of them are wanted, writes those into its staging memory, and
 * commits. The store copies them out and checksums its own copy. One thread.
 */
final class SaveRequests {
    private static final int SAVES_MAX = 64;

    private final Manager manager;
    private final Session session;
    private final Frames frames;
    private final Replies replies;
    private final SaveBeginDecoder begin = new SaveBeginDecoder();
    private final SaveCommitDecoder commit = new SaveCommitDecoder();
    private final SaveAbortDecoder abort = new SaveAbortDecoder();
    private final SaveGrantedEncoder granted = new SaveGrantedEncoder();
    private final UnsafeBuffer keys = new UnsafeBuffer(0, 0);
    private final Long2ObjectHashMap<PendingSave> pending = new Long2ObjectHashMap<>();
    private final ArrayDeque<PendingSave> idle = new ArrayDeque<>();
    private final byte[] parent = new byte[Wire.KEY_BYTES];
    private final UnsafeBuffer parentKey = new UnsafeBuffer(new byte[Wire.KEY_BYTES]);
    private final Blocks source = Blocks.unset();
    private final SaveResult result = new SaveResult();
    private final SaveTotals totals = new SaveTotals();
    private final Holes holes = new Holes();
    private byte[] wanted = new byte[8];
    private long[] starts = new long[64];
    private long nextId = 1;

    SaveRequests(Manager manager, Session session, Frames frames, Replies replies) {
        this.manager = manager;
        this.session = session;
        this.frames = frames;
        this.replies = replies;
    }

    int begin(int blockLength, int version) {
        begin.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        if (manager.isStopping()) {
            throw new OrbitKvException(ErrorCode.STOPPING, "the manager is stopping and takes nothing in any more");
        }
        FamilyHandle family = session.family(begin.family());
        ShardHandle shard = family.shard((int) Math.min(begin.shard(), Integer.MAX_VALUE));
        for (int i = 0; i < parent.length; i++) {
            parent[i] = (byte) begin.parent(i);
        }
        boolean hasParent = begin.hasParent() != 0;
        begin.wrapKeys(keys);
        int count = Wire.keys(keys.capacity());
        if (pending.size() >= SAVES_MAX) {
            throw new OrbitKvException(
                    ErrorCode.BUSY, SAVES_MAX + " saves of this session are begun; commit or abort one of them");
        }
        PendingSave save = idle.isEmpty() ? new PendingSave() : idle.pop();
        save.begin(shard, hasParent, parent, keys, 0, count);
        return grant(save);
    }

    private int grant(PendingSave save) {
        int bytes = (save.count() + 7) / 8;
        if (wanted.length < bytes) {
            wanted = new byte[bytes];
        }
        java.util.Arrays.fill(wanted, 0, bytes, (byte) 0);
        int count = 0;
        for (int i = 0; i < save.count(); i++) {
            boolean want = !manager.store().isStored(save.shard(), save.keys(), i * Wire.KEY_BYTES);
            save.want(i, want);
            wanted[i / 8] |= (byte) (want ? 1 << i % 8 : 0);
            count += want ? 1 : 0;
        }
        long id = 0;
        if (count == 0) {
            idle.push(save);
        } else {
            id = nextId++;
            pending.put(id, save);
        }
        return granted.wrapAndApplyHeader(frames.out(), Wire.LENGTH_BYTES, replies.header)
                .opId(begin.opId())
                .saveId(id)
                .wantedBlocks(count)
                .putWanted(wanted, 0, bytes)
                .limit();
    }

    int commit(int blockLength, int version) {
        commit.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        PendingSave save = end(commit.saveId());
        try {
            SaveCommitDecoder.PlacesDecoder places = commit.places();
            int given = places.count();
            if (starts.length < given) {
                starts = new long[given];
            }
            for (int i = 0; i < given; i++) {
                starts[i] = places.next().offset();
                requireStaging(starts[i], save.shard().blockBytes());
            }
            save(save, given);
            return replies.saved(commit.opId(), totals);
        } finally {
            idle.push(save);
        }
    }

    int abort(int blockLength, int version) {
        abort.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        idle.push(end(abort.saveId()));
        return replies.ack(abort.opId());
    }

    private PendingSave end(long id) {
        PendingSave save = pending.remove(id);
        if (save == null) {
            throw new OrbitKvException(
                    ErrorCode.UNKNOWN_SAVE, "save " + id + " is not one that this session has begun and not ended");
        }
        return save;
    }

    /**
     * Saves runs of consecutive wanted blocks, so that the store is given no block that it was not given bytes for: one
     * that was stored when the save began may be gone by now, and then is missing.
     */
    private void save(PendingSave save, int given) {
        totals.reset();
        DropReason hole = holeBefore(save);
        if (hole == DropReason.NONE) {
            saveRuns(save, given);
        } else {
            totals.drop(given, hole);
        }
        if (totals.dropped > 0) {
            holes.add(save.keys(), (save.count() - 1) * Wire.KEY_BYTES, totals.reason);
        }
    }

    /** Why the save that this one goes on behind was dropped; NONE where its last block is stored by now. */
    private DropReason holeBefore(PendingSave save) {
        byte[] before = save.parent();
        DropReason hole = before == null ? DropReason.NONE : holes.behind(before);
        if (hole == DropReason.NONE) {
            return hole;
        }
        parentKey.putBytes(0, before);
        return manager.store().isStored(save.shard(), parentKey, 0) ? DropReason.NONE : hole;
    }

    private void saveRuns(PendingSave save, int given) {
        int next = 0;
        for (int block = 0; block < save.count() && next < given; ) {
            if (!save.isWanted(block)) {
                block++;
                continue;
            }
            int run = 1;
            while (next + run < given && block + run < save.count() && save.isWanted(block + run)) {
                run++;
            }
            saveRun(save, block, next, run);
            if (result.dropped() > 0) {
                totals.drop(given - next - run, result.reason());
                break;
            }
            block += run;
            next += run;
        }
    }

    private void saveRun(PendingSave save, int block, int place, int run) {
        DirectBuffer before = null;
        int beforeAt = 0;
        if (block > 0) {
            before = save.keys();
            beforeAt = (block - 1) * Wire.KEY_BYTES;
        } else if (save.parent() != null) {
            parentKey.putBytes(0, save.parent());
            before = parentKey;
        }
        System.arraycopy(starts, place, starts, 0, run); // those before have been saved
        int keysAt = block * Wire.KEY_BYTES;
        manager.store()
                .save(
                        save.shard(),
                        before,
                        beforeAt,
                        save.keys(),
                        keysAt,
                        run,
                        source.setScattered(session.staging(), starts),
                        result);
        totals.add(result);
    }

    private void requireStaging(long offset, int bytes) {
        MemoryRegion staging = session.staging();
        long there = staging == null ? 0 : staging.bytes();
        if (offset < 0 || offset > there - bytes) {
            throw new OrbitKvException(
                    ErrorCode.OUTSIDE_STAGING,
                    "a block of " + bytes + " bytes at " + offset + " does not lie within the session's " + there
                            + " bytes of staging");
        }
    }
}
