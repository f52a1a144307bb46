package io.orbitkv.cli;

import io.orbitkv.kit.Payload;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Machine;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Level;
import io.orbitkv.store.Location;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.ShardHandle;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.store.StoreStats;
import io.orbitkv.store.SyncOutcome;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.concurrent.Callable;
import org.agrona.DirectBuffer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * The process of a demo that owns the store and may be killed at any moment: an engine's loop of query, restore and
 * save, that compares every restored byte and tells its parent what is written.
 */
@Command(name = "demo-child", hidden = true, description = "Internal: the process that a demo kills.")
final class DemoChild implements Callable<Integer> {
    private static final long BUFFER_BYTES = 16L << 20;
    private static final int RETRIES_MAX = 50;
    private static final long SYNC_MILLIS = 10_000;
    private static final int KEY_BYTES = PromptKeys.KEY_BYTES;

    @Mixin
    private CommonOptions common;

    @Mixin
    private DemoOptions options;

    @Option(names = "--from", description = "The request to begin with.")
    private int from;

    @Option(names = "--check", description = "Answer for blocks that the parent asks about, before the first request.")
    private boolean check;

    private final DataInputStream in =
            new DataInputStream(new BufferedInputStream(new FileInputStream(FileDescriptor.in)));
    private final DataOutputStream out =
            new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16));
    private final PendingBlocks pending = new PendingBlocks();
    private final Blocks blocks = Blocks.unset();
    private final SaveResult result = new SaveResult();
    private final byte[] oneKey = new byte[KEY_BYTES];
    private Workload workload;
    private PromptKeys keys;
    private KvStore store;
    private FamilyHandle family;
    private ShardHandle shard;
    private MemoryRegion buffer;
    private int blockBytes;
    private int group;
    private long readBytesAtStart;
    private long nvmeBytesAtStart;
    private StoreStats restoredStats;
    private int wrong;
    private int saved;
    private int dropped;
    private long saveNanos;
    private long restoreNanos;

    @Override
    public Integer call() throws IOException {
        System.setOut(System.err); // stdout is for frames alone
        common.apply();
        try {
            run();
            return 0;
        } catch (EOFException e) {
            return ErrorCode.CHILD_PROCESS.category().exitCode(); // the parent is gone: nobody is left to tell
        } catch (OrbitKvException e) {
            out.writeByte(Frames.FAILED);
            out.writeUTF(e.code().name());
            out.writeUTF(e.getMessage());
            out.flush();
            return e.code().category().exitCode();
        }
    }

    private void run() throws IOException {
        workload = options.workload();
        keys = new PromptKeys(workload.longest());
        blockBytes = Math.toIntExact(options.blockBytes);
        long openedNanos = System.nanoTime();
        try (KvStore opened = KvStore.open(storeOptions())) {
            store = opened;
            long openNanos = System.nanoTime() - openedNanos;
            family = store.openFamily(PromptKeys.family("demo", "seed-" + options.seed, blockBytes));
            shard = family.shard(0);
            buffer = store.allocate(Math.max(BUFFER_BYTES, blockBytes));
            group = (int) (buffer.bytes() / blockBytes);
            tellOpened(openedNanos, openNanos);
            if (check) {
                answer();
            }
            readBytesAtStart = Machine.readBytes();
            restoredStats = store.stats();
            nvmeBytesAtStart = restoredStats.restoredNvmeBytes();
            for (int request = from; request < workload.requests(); request++) {
                awaitCredit(request);
                serve(request);
            }
            store.sync(store.acceptedPosition(), Level.WRITTEN, SYNC_MILLIS);
            tellWritten();
        }
        out.writeByte(Frames.DONE);
        out.flush();
    }

    private StoreOptions storeOptions() {
        return StoreOptions.in(options.data)
                .poolBytes(options.poolBytes)
                .capBytes(options.capBytes)
                .policy(options.policy)
                .blockBytesLargest(blockBytes)
                .queryBlocksMax(Math.max(1 << 14, workload.longest()));
    }

    /** Asks the first question before anything else, since that is what a restarted engine waits for. */
    private void tellOpened(long openedNanos, long openNanos) throws IOException {
        int request = Math.min(from, workload.requests() - 1);
        keys.set(workload, request);
        store.query(family, keys.buffer(), 0, workload.blocks(request)).close();
        long firstQueryNanos = System.nanoTime() - openedNanos;
        out.writeByte(Frames.OPENED);
        out.writeUTF(store.openReport().kind().name());
        out.writeLong(openNanos);
        out.writeLong(firstQueryNanos);
        out.writeLong(store.openReport().accounting().indexedBlocks());
        out.flush();
    }

    /** Restores each block that the parent asks about, by itself, and compares it. */
    private void answer() throws IOException {
        int count = in.readInt();
        for (int i = 0; i < count; i++) {
            if (i % Frames.ANSWERS_MAX == 0) {
                out.writeByte(Frames.ANSWERS);
                out.writeInt(Math.min(Frames.ANSWERS_MAX, count - i));
            }
            in.readFully(oneKey);
            int segment = in.readInt();
            keys.setOne(oneKey);
            out.writeByte(restoreOne());
            out.writeLong(store.useSequence(segment));
        }
        out.flush();
    }

    private int restoreOne() {
        try (Lease lease = store.query(family, keys.buffer(), 0, 1)) {
            if (lease.blocks() == 0 || store.restore(lease, shard, 0, 1, blocks.set(buffer, 0)) == 0) {
                return Frames.ABSENT;
            }
        }
        return isRight(0, 0) ? Frames.FOUND : Frames.WRONG;
    }

    /** Whether a place of the buffer holds the bytes that belong to a key. */
    private boolean isRight(int place, int keyBlock) {
        return Payload.firstDifference(buffer, (long) place * blockBytes, blockBytes, keys.head(keyBlock), options.seed)
                == Payload.NO_DIFFERENCE;
    }

    private void awaitCredit(int request) throws IOException {
        int ahead = request - from;
        if (ahead >= 2 * Frames.CREDIT_REQUESTS && ahead % Frames.CREDIT_REQUESTS == 0 && in.read() < 0) {
            throw new EOFException("the parent is gone");
        }
    }

    private void serve(int request) throws IOException {
        int count = workload.blocks(request);
        wrong = 0;
        saved = 0;
        dropped = 0;
        saveNanos = 0;
        restoreNanos = 0;
        keys.set(workload, request);
        StoreStats before = restoredStats; // only restores change what is compared
        long began = System.nanoTime();
        Lease lease = store.query(family, keys.buffer(), 0, count);
        long queryNanos = System.nanoTime() - began;
        int found;
        int restored;
        try (lease) {
            found = lease.blocks();
            restored = restore(lease, found);
        }
        StoreStats after = store.stats();
        restoredStats = after;
        save(restored, count);

        out.writeByte(Frames.REQUEST);
        out.writeInt(request);
        out.writeInt(count);
        out.writeInt((int) (after.restoredHostBlocks() - before.restoredHostBlocks()));
        out.writeInt((int) (after.restoredNvmeBlocks() - before.restoredNvmeBlocks()));
        out.writeInt(wrong);
        out.writeInt(saved);
        out.writeInt(dropped);
        out.writeInt(found - restored);
        out.writeLong(queryNanos);
        out.writeLong(restoreNanos);
        out.writeLong(saveNanos);
        out.writeLong(after.restoredNvmeBytes() - nvmeBytesAtStart); // before the drive's count, which thus covers it
        out.writeLong(Machine.readBytes() - readBytesAtStart);
        tellWritten();
        out.flush();
    }

    /** Restores what was found, in groups that fit the buffer; blocks restored. */
    private int restore(Lease lease, int found) {
        int done = 0;
        while (done < found) {
            int wanted = Math.min(group, found - done);
            long began = System.nanoTime();
            int got = store.restore(lease, shard, done, wanted, blocks.set(buffer, 0));
            restoreNanos += System.nanoTime() - began;
            for (int i = 0; i < got; i++) {
                if (!isRight(i, done + i)) {
                    wrong++;
                }
            }
            done += got;
            if (got < wanted) {
                break; // evicted meanwhile: the rest is computed again
            }
        }
        return done;
    }

    /** Saves the blocks from the first that was not restored on, as an engine that has just computed them. */
    private void save(int first, int end) {
        int done = first;
        int retries = 0;
        while (done < end) {
            int count = Math.min(group, end - done);
            for (int i = 0; i < count; i++) {
                Payload.fill(buffer, (long) i * blockBytes, blockBytes, keys.head(done + i), options.seed);
            }
            for (int at = 0; at < count; ) {
                int taken = saveOnce(done + at, count - at, at);
                at += taken;
                if (at < count) {
                    if (++retries > RETRIES_MAX || !makeRoom()) {
                        dropped += end - done - at;
                        return;
                    }
                }
            }
            done += count;
        }
    }

    /** One call of save; blocks that are in the store afterwards. */
    private int saveOnce(int first, int count, int bufferBlock) {
        DirectBuffer buffered = keys.buffer();
        long began = System.nanoTime();
        store.save(
                shard,
                first == 0 ? null : buffered,
                (first - 1) * KEY_BYTES,
                buffered,
                first * KEY_BYTES,
                count,
                blocks.set(buffer, (long) bufferBlock * blockBytes),
                result);
        saveNanos += System.nanoTime() - began;
        int taken = result.present() + result.accepted();
        saved += result.accepted();
        if (result.accepted() > 0) {
            pending.add(buffered, first * KEY_BYTES, taken, result.position());
        }
        return taken;
    }

    /** Waits until what was accepted is written, so that the queue has room. */
    private boolean makeRoom() {
        return store.sync(store.acceptedPosition(), Level.WRITTEN, SYNC_MILLIS) == SyncOutcome.REACHED;
    }

    /** Acknowledges the blocks whose written position has passed, with the place that they have now. */
    private void tellWritten() throws IOException {
        for (int count = pending.upTo(store.writtenPosition()); count > 0; count--) {
            Location place = store.locate(shard, pending.keyBuffer(), pending.keyOffset());
            out.writeByte(place.onDrive() ? Frames.WRITTEN : Frames.GONE);
            if (place.onDrive()) {
                out.write(pending.keys(), pending.keyOffset(), KEY_BYTES);
                out.writeLong(pending.position());
                out.writeInt(place.segment());
                out.writeLong(place.useSequence());
            }
            pending.remove();
        }
    }
}
