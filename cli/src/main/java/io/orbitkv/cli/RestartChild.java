package io.orbitkv.cli;

import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.recovery.FillState;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Level;
import io.orbitkv.store.OpenReport;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.StoreOptions;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.Histogram;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The process of {@code bench restart} that fills a store, or opens it and says how long that took, and then is killed. */
@Command(name = "restart-child", hidden = true, description = "Internal: the process that bench restart kills.")
final class RestartChild implements Callable<Integer> {
    static final int PROMPT_BLOCKS = 256;
    private static final long SYNC_MILLIS = 60_000;
    private static final long SECOND_NANOS = 1_000_000_000;
    private static final long LOOK_NANOS = 5_000_000;
    private static final long NANOS_MAX = 60_000_000_000L;

    @Mixin
    private CommonOptions common;

    @Option(names = "--data")
    private Path data;

    @Option(names = "--cap")
    private long capBytes;

    @Option(names = "--pool")
    private long poolBytes;

    @Option(names = "--block-bytes")
    private int blockBytes;

    @Option(names = "--prompts")
    private int prompts;

    @Option(names = "--launched")
    private long launchedNanos;

    @Option(names = "--rate", defaultValue = "1000")
    private int ratePerSecond;

    @Option(names = "--fill")
    private boolean isFilling;

    @Option(names = "--stop")
    private boolean stops;

    private final DataOutputStream out = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
    private final PromptKeys keys = new PromptKeys(PROMPT_BLOCKS);

    @Override
    public Integer call() throws IOException {
        common.apply();
        System.setOut(System.err); // stdout is for the parent alone
        long mainNanos = System.nanoTime();
        KvStore store = KvStore.open(
                StoreOptions.in(data).capBytes(capBytes).poolBytes(poolBytes).blockBytesLargest(blockBytes));
        FamilyHandle family = store.openFamily(PromptKeys.family("restart", "restart", blockBytes));
        if (isFilling) {
            fill(store, family);
        } else {
            open(store, family, mainNanos);
        }
        out.flush();
        if (stops) {
            store.close();
        }
        while (!stops) {
            LockSupport.park(); // there is nothing to do but to be killed
        }
        return 0;
    }

    private void fill(KvStore store, FamilyHandle family) throws IOException {
        MemoryRegion memory = store.allocate((long) PROMPT_BLOCKS * blockBytes);
        Blocks source = Blocks.of(memory);
        SaveResult result = new SaveResult();
        for (int prompt = 0; prompt < prompts; prompt++) {
            keys.set("restart-" + prompt, PROMPT_BLOCKS);
            int done = 0;
            while (done < PROMPT_BLOCKS) {
                save(store, family, source, done, PROMPT_BLOCKS - done, result);
                done += result.accepted() + result.present();
                if (done < PROMPT_BLOCKS) {
                    store.sync(store.acceptedPosition(), Level.WRITTEN, SYNC_MILLIS);
                }
            }
        }
        store.sync(store.acceptedPosition(), Level.WRITTEN, SYNC_MILLIS);
        out.writeLong(store.stats().nvmeAdmittedBlocks());
    }

    private void save(KvStore store, FamilyHandle family, Blocks source, int from, int count, SaveResult result) {
        store.save(
                family.shard(0),
                from == 0 ? null : keys.buffer(),
                Math.max(0, from - 1) * PromptKeys.KEY_BYTES,
                keys.buffer(),
                from * PromptKeys.KEY_BYTES,
                count,
                source,
                result);
    }

    private void open(KvStore store, FamilyHandle family, long mainNanos) throws IOException {
        int firstHits = query(store, family, 0);
        long firstQueryNanos = System.nanoTime();
        Histogram saves = new Histogram(NANOS_MAX, 3);
        long queries = 0;
        long hits = 0;
        SplittableRandom random = new SplittableRandom(launchedNanos);
        Blocks source = Blocks.of(store.allocate(blockBytes));
        SaveResult result = new SaveResult();
        while (store.openReport().fill() == FillState.FILLING) {
            if (ratePerSecond == 0) {
                LockSupport.parkNanos(LOOK_NANOS);
                continue;
            }
            hits += query(store, family, random.nextInt(prompts)) > 0 ? 1 : 0;
            queries++;
            keys.set("new-" + launchedNanos + "-" + queries, 1);
            long began = System.nanoTime();
            save(store, family, source, 0, 1, result);
            saves.recordValue(Math.min(NANOS_MAX, System.nanoTime() - began));
            LockSupport.parkNanos(SECOND_NANOS / ratePerSecond);
        }
        long cpuNanos = ProcessHandle.current()
                .info()
                .totalCpuDuration()
                .orElse(Duration.ZERO)
                .toNanos();
        store.awaitWhole(0);
        OpenReport report = store.openReport();
        report.timeLines().forEach(System.err::println);
        out.writeUTF(report.kind().name());
        out.writeLong(mainNanos - launchedNanos);
        out.writeLong(report.openNanos());
        out.writeLong(firstQueryNanos - launchedNanos);
        out.writeLong(report.times().wholeNanos());
        out.writeLong(report.accounting().indexedBlocks());
        out.writeInt(firstHits);
        out.writeLong(queries);
        out.writeLong(hits);
        out.writeLong(saves.getValueAtPercentile(50));
        out.writeLong(saves.getValueAtPercentile(99));
        out.writeLong(saves.getMaxValue());
        out.writeLong(residentPeakKib());
        out.writeLong(cpuNanos);
    }

    private int query(KvStore store, FamilyHandle family, int prompt) {
        keys.set("restart-" + prompt, PROMPT_BLOCKS);
        try (Lease lease = store.query(family, keys.buffer(), 0, PROMPT_BLOCKS)) {
            return lease.blocks();
        }
    }

    private static long residentPeakKib() throws IOException {
        for (String line : java.nio.file.Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        return 0;
    }
}
