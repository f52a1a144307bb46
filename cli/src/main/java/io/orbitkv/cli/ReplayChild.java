package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Level;
import io.orbitkv.store.ShardHandle;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicReference;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * The process of a demo or a replay that owns the store and may be killed at any moment: it serves requests as an engine
 * would, and tells its parent what is written.
 */
@Command(name = "replay-child", hidden = true, description = "Internal: the process that a demo or a replay kills.")
final class ReplayChild implements Callable<Integer> {
    private static final long SYNC_MILLIS = 60_000;
    private static final int KEY_BYTES = PromptKeys.KEY_BYTES;

    /** How the child answers for blocks that its parent asks about, before the first request. */
    enum Check {
        /** It is asked nothing. */
        NONE,
        /** Where they are; nothing is read, so that what the store thinks of them stays as it was. */
        PLACES,
        /** Each is restored and compared; then the child waits for its end, since that has changed what is used. */
        BYTES
    }

    @Mixin
    private CommonOptions common;

    @Mixin
    private ChildOptions options;

    @Option(names = "--from")
    private int from;

    @Option(names = "--until")
    private int until = Integer.MAX_VALUE;

    @Option(names = "--again", split = ",")
    private int[] again = {};

    @Option(names = "--check")
    private Check check = Check.NONE;

    private final DataInputStream in =
            new DataInputStream(new BufferedInputStream(new FileInputStream(FileDescriptor.in)));
    private final Teller teller = new Teller(new FileOutputStream(FileDescriptor.out));
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

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
            teller.failed(e);
            return e.code().category().exitCode();
        }
    }

    private void run() throws IOException {
        Workload workload = options.workload();
        long openedNanos = System.nanoTime();
        try (KvStore store = KvStore.open(options.store(workload))) {
            long openNanos = System.nanoTime() - openedNanos;
            FamilyHandle family =
                    store.openFamily(PromptKeys.family(options.tool, "seed-" + options.seed, options.blockBytes));
            askFirst(store, family, workload);
            long firstQueryNanos = System.nanoTime() - openedNanos;
            store.awaitWhole(Long.MAX_VALUE); // hits are compared with those of a store that knows all
            teller.opened(store, family.shard(0), openNanos, firstQueryNanos);
            List<ReplayWorker> workers = new ArrayList<>();
            for (int i = 0; i < options.concurrency; i++) {
                workers.add(new ReplayWorker(store, family, options, workload, teller));
            }
            if (check != Check.NONE) {
                answer(store, family.shard(0), workers.get(0));
            }
            if (check == Check.BYTES) {
                throw new EOFException("there is nothing to do but to be killed: " + in.read());
            }
            teller.startCounting();
            serve(
                    workers,
                    new RequestOrder(in, again, from, Math.min(until, workload.requests()), options.concurrency));
            store.sync(store.acceptedPosition(), Level.WRITTEN, SYNC_MILLIS);
            teller.end(Unreachable.bytes(store, family.shard(0), workload));
        }
        teller.done();
    }

    /** Asks the first question before anything else, since that is what a restarted engine waits for. */
    private void askFirst(KvStore store, FamilyHandle family, Workload workload) {
        int request = Math.min(from, workload.requests() - 1);
        PromptKeys keys = new PromptKeys(workload.blocks(request));
        keys.set(workload, request);
        store.query(family, keys.buffer(), 0, workload.blocks(request)).close();
    }

    private void answer(KvStore store, ShardHandle shard, ReplayWorker worker) throws IOException {
        DataOutputStream out = teller.out();
        PromptKeys keys = new PromptKeys(1);
        byte[] key = new byte[KEY_BYTES];
        int count = in.readInt();
        for (int i = 0; i < count; i++) {
            if (i % Frames.ANSWERS_MAX == 0) {
                out.writeByte(Frames.ANSWERS);
                out.writeInt(Math.min(Frames.ANSWERS_MAX, count - i));
            }
            in.readFully(key);
            int segment = in.readInt();
            keys.setOne(key);
            int state = check == Check.BYTES
                    ? worker.restoreOne(key)
                    : store.locate(shard, keys.buffer(), 0).isStored() ? Frames.FOUND : Frames.ABSENT;
            out.writeByte(state);
            out.writeLong(store.useSequence(segment));
        }
        out.flush();
    }

    private void serve(List<ReplayWorker> workers, RequestOrder order) throws IOException {
        if (workers.size() == 1) {
            workers.get(0).serve(order);
            return;
        }
        List<Thread> threads = new ArrayList<>();
        for (ReplayWorker worker : workers) {
            Thread thread = new Thread(() -> serve(worker, order), "replay-" + threads.size());
            threads.add(thread);
            thread.start();
        }
        try {
            for (Thread thread : threads) {
                thread.join();
            }
        } catch (InterruptedException e) {
            throw new OrbitKvException(ErrorCode.CHILD_PROCESS, "interrupted while requests were served", e);
        }
        Throwable failed = failure.get();
        if (failed instanceof IOException e) {
            throw e;
        }
        if (failed instanceof OrbitKvException e) {
            throw e;
        }
        if (failed != null) {
            throw new OrbitKvException(ErrorCode.BUG, "a worker of the replay met " + failed, failed);
        }
    }

    private void serve(ReplayWorker worker, RequestOrder order) {
        try {
            worker.serve(order);
        } catch (IOException | RuntimeException | Error e) {
            failure.compareAndSet(null, e);
            order.stop();
        }
    }
}
