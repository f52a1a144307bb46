package io.orbitkv.cli;

import io.orbitkv.nativeio.Machine;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Location;
import io.orbitkv.store.OpenReport;
import io.orbitkv.store.ShardHandle;
import io.orbitkv.store.StoreStats;
import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import org.agrona.DirectBuffer;

/**
 * What the child tells its parent, frame by frame ({@link Frames}): requests, and which blocks are written. Safe from
 * any thread.
 */
final class Teller {
    private static final int KEY_BYTES = PromptKeys.KEY_BYTES;

    private final DataOutputStream out;
    private final PendingBlocks pending = new PendingBlocks();
    private KvStore store;
    private ShardHandle shard;
    private StoreStats before;
    private long driveBytesBefore;

    Teller(OutputStream stdout) {
        out = new DataOutputStream(new BufferedOutputStream(stdout, 1 << 16));
    }

    /** The stream, before any worker runs. */
    DataOutputStream out() {
        return out;
    }

    void opened(KvStore opened, ShardHandle ofShard, long openNanos, long firstQueryNanos) throws IOException {
        store = opened;
        shard = ofShard;
        OpenReport report = opened.openReport();
        out.writeByte(Frames.OPENED);
        out.writeUTF(report.kind().name());
        out.writeLong(openNanos);
        out.writeLong(firstQueryNanos);
        out.writeLong(report.times().wholeNanos());
        out.writeLong(report.accounting().indexedBlocks());
        out.writeInt(opened.logSegmentBytes());
        out.flush();
    }

    /** From here on bytes and blocks count. */
    void startCounting() {
        driveBytesBefore = Machine.readBytes();
        before = store.stats();
    }

    /** Remembers consecutive blocks that are in the store, to tell when they are written. */
    synchronized void saved(DirectBuffer keys, int offset, int count, long position) {
        pending.add(keys, offset, count, position);
    }

    synchronized void request(RequestOutcome outcome) throws IOException {
        out.writeByte(Frames.REQUEST);
        out.writeInt(outcome.request);
        out.writeInt(outcome.blocks);
        out.writeInt(outcome.hostHits);
        out.writeInt(outcome.nvmeHits);
        out.writeInt(outcome.wrong);
        out.writeInt(outcome.saved);
        out.writeInt(outcome.dropped);
        out.writeInt(outcome.shortBlocks);
        out.writeLong(outcome.queryNanos);
        out.writeLong(outcome.restoreNanos);
        out.writeLong(outcome.saveNanos);
        out.writeLong(outcome.waitedNanos);
        out.writeLong(outcome.estimatedNanos);
        counters();
        written();
        out.flush();
    }

    /** The store's counts are read before the drive's, which thus covers them. */
    private void counters() throws IOException {
        StoreStats now = store.stats();
        out.writeByte(Frames.COUNTERS);
        out.writeLong(now.restoredNvmeBytes() - before.restoredNvmeBytes());
        out.writeLong(Machine.readBytes() - driveBytesBefore);
        out.writeLong(now.nvmeReadBytes() - before.nvmeReadBytes());
        out.writeLong(now.nvmeWrittenBytes() - before.nvmeWrittenBytes());
        out.writeLong(now.nvmeAdmittedBytes() - before.nvmeAdmittedBytes());
        out.writeLong(now.corruptBlocks() - before.corruptBlocks());
    }

    /** Acknowledges the blocks whose written position has passed, with the place that they have now. */
    private void written() throws IOException {
        for (int count = pending.upTo(store.writtenPosition()); count > 0; count--) {
            Location place = store.locate(shard, pending.keyBuffer(), pending.keyOffset());
            out.writeByte(place.onDrive() ? Frames.WRITTEN : Frames.GONE);
            if (place.onDrive()) {
                out.write(pending.keys(), pending.keyOffset(), KEY_BYTES);
                out.writeInt(place.segment());
                out.writeLong(place.useSequence());
            }
            pending.remove();
        }
    }

    /** Takes acknowledgements back: of blocks that a restore found damaged. */
    synchronized void damaged(DirectBuffer keys, int offset, int count) throws IOException {
        byte[] key = new byte[KEY_BYTES];
        for (int i = 0; i < count; i++) {
            int at = offset + i * KEY_BYTES;
            if (!store.locate(shard, keys, at).onDrive()) {
                keys.getBytes(at, key);
                out.writeByte(Frames.DAMAGED);
                out.write(key);
            }
        }
    }

    /** What there is to say once nothing is under way any more. */
    synchronized void end(long unreachableBytes) throws IOException {
        counters();
        written();
        out.writeByte(Frames.UNREACHABLE);
        out.writeLong(unreachableBytes);
        out.flush();
    }

    void done() throws IOException {
        out.writeByte(Frames.DONE);
        out.flush();
    }

    synchronized void failed(OrbitKvException e) throws IOException {
        out.writeByte(Frames.FAILED);
        out.writeUTF(e.code().name());
        out.writeUTF(e.getMessage());
        out.flush();
    }
}
