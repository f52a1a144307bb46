package io.orbitkv.suite;

import io.orbitkv.index.Family;
import io.orbitkv.index.KeyChain;
import io.orbitkv.kit.Payload;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Level;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.store.StoreStats;
import io.orbitkv.tiers.TierState;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * A store under traffic on a drive that somebody breaks and mends: how long until it is out of service and back, what that costs
 * a hit in host memory, and whether any restored byte is wrong. Started by {@code test/drive-faults.sh}.
 *
 * <p>One thread saves and restores what it has just saved, from host memory; another restores what lies on the drive only, into
 * memory in which a canary stands once it was given up on.
 */
final class DriveFaults {
    private static final int BLOCK_BYTES = 64 << 10;
    private static final int BLOCKS = 4;
    private static final int BLOCK_TOKENS = 2;
    private static final int KEY_BYTES = 32;
    private static final int POOL_BYTES = 64 << 20;
    private static final int SAMPLES_MAX = 1 << 20;
    private static final byte CANARY = 0x5A;
    private static final long SEED = 0;
    private static final double OUT_SECONDS_MAX = 2;
    private static final double BACK_SECONDS_MAX = 10;
    private static final double P99_RATIO_MAX = 2;

    private final KvStore store;
    private final Path commands;
    private final FamilyHandle family;
    private final AtomicInteger newest = new AtomicInteger();
    private final AtomicLong wrong = new AtomicLong();
    private final AtomicLong fromDrive = new AtomicLong();
    private final long[] samples = new long[SAMPLES_MAX];
    private final AtomicInteger sampled = new AtomicInteger();
    private volatile boolean ends;

    /** One prompt's keys and memory; a thread's own. */
    private final class Prompts implements AutoCloseable {
        final UnsafeBuffer keys = new UnsafeBuffer(new byte[BLOCKS * KEY_BYTES]);
        final MemoryRegion memory =
                MemoryRegion.anonymous((long) BLOCKS * BLOCK_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
        final Blocks blocks = Blocks.of(memory);
        final SaveResult result = new SaveResult();
        final int[] tokens = new int[BLOCKS * BLOCK_TOKENS];
        final KeyChain chain = new KeyChain(BLOCK_TOKENS);

        void keys(int prompt) {
            Arrays.fill(tokens, prompt);
            chain.keys(null, 0, tokens, 0, BLOCKS, keys, 0);
        }

        void save(int prompt) {
            keys(prompt);
            for (int i = 0; i < BLOCKS; i++) {
                Payload.fill(memory, (long) i * BLOCK_BYTES, BLOCK_BYTES, keys.getLong(i * KEY_BYTES), SEED);
            }
            store.save(family.shard(0), null, 0, keys, 0, BLOCKS, blocks, result);
        }

        /** How many blocks were restored, all of them right or counted as wrong; minus 1 without any on the drive. */
        int restore(int prompt, boolean drive) {
            keys(prompt);
            try (Lease lease = store.query(family, keys, 0, BLOCKS)) {
                if (drive && lease.hostBlocks() == lease.blocks()) {
                    return -1;
                }
                int restored = store.restore(lease, family.shard(0), 0, lease.blocks(), blocks);
                for (int i = 0; i < restored; i++) {
                    long at = (long) i * BLOCK_BYTES;
                    long difference =
                            Payload.firstDifference(memory, at, BLOCK_BYTES, keys.getLong(i * KEY_BYTES), SEED);
                    if (difference != Payload.NO_DIFFERENCE) {
                        wrong.incrementAndGet();
                    }
                }
                return restored;
            }
        }

        @Override
        public void close() {
            memory.close();
        }
    }

    private DriveFaults(KvStore store, Path commands) {
        this.store = store;
        this.commands = commands;
        this.family = store.openFamily(Family.builder()
                .modelId("drive-faults")
                .weightsDigest(new byte[KEY_BYTES])
                .tokenizerDigest(new byte[KEY_BYTES])
                .kvDtype("bf16")
                .layout("BLNHC".getBytes(StandardCharsets.US_ASCII))
                .blockBytes(BLOCK_BYTES)
                .blockTokens(BLOCK_TOKENS)
                .engine("test")
                .hash("sha256", "0")
                .scope("test")
                .build());
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 8) {
            System.err.println(
                    "usage: DriveFaults <name> <folder> <rounds> <seconds> <cap in MiB> <breaks> <mends> <commands>");
            System.exit(2);
        }
        StoreOptions options = StoreOptions.in(Path.of(args[1]))
                .poolBytes(POOL_BYTES)
                .capBytes(Long.parseLong(args[4]) << 20)
                .segmentBytes(1 << 20)
                .blockBytesLargest(BLOCK_BYTES);
        boolean good;
        try (KvStore store = KvStore.open(options)) {
            good = new DriveFaults(store, Path.of(args[7]))
                    .run(args[0], Integer.parseInt(args[2]), Integer.parseInt(args[3]), args[5], args[6]);
        }
        System.exit(good ? 0 : 1);
    }

    private boolean run(String name, int rounds, int seconds, String breaks, String mends) throws Exception {
        try (Prompts fill = new Prompts()) {
            while (newest.get() < 2 * POOL_BYTES / (BLOCKS * BLOCK_BYTES)) {
                fill.save(newest.get() + 1);
                newest.incrementAndGet();
                store.sync(store.acceptedPosition(), Level.WRITTEN, 10_000);
            }
        }
        Thread host = start(this::hostTraffic);
        Thread drive = start(this::driveTraffic);
        double[] out = new double[rounds];
        double[] back = new double[rounds];
        double[] ratio = new double[rounds];
        boolean canary = true;
        for (int round = 0; round < rounds; round++) {
            double normal = p99(seconds > 10 ? 5 : seconds);
            canary &= fault(round, seconds, breaks, mends, out, back, ratio, normal);
        }
        ends = true;
        host.join();
        drive.join();
        StoreStats stats = store.stats();
        double outMax = Arrays.stream(out).max().orElseThrow();
        double backMax = Arrays.stream(back).max().orElseThrow();
        double ratioMedian = median(ratio);
        boolean good = outMax <= OUT_SECONDS_MAX
                && backMax <= BACK_SECONDS_MAX
                && ratioMedian <= P99_RATIO_MAX
                && wrong.get() == 0
                && canary
                && fromDrive.get() > 0;
        System.out.printf(
                Locale.ROOT,
                "%s: rounds %d, out after max %.2f s (median %.2f), host hits' p99 %.2f x normal (median), back after max %.2f s"
                        + " (median %.2f), wrong blocks %d, canary %s, restored from the drive %d, dropped %d, host only %d,"
                        + " segments failed %d, outages %d: %s%n",
                name,
                rounds,
                outMax,
                median(out),
                ratioMedian,
                backMax,
                median(back),
                wrong.get(),
                canary ? "whole" : "OVERWRITTEN",
                fromDrive.get(),
                stats.nvmeDroppedBlocks(),
                stats.savedWithoutDriveBlocks(),
                stats.nvmeSegmentsFailed(),
                stats.driveOutages(),
                good ? "good" : "BEYOND A BOUND");
        return good;
    }

    /** Breaks the drive and mends it; whether the canary lived. */
    private boolean fault(
            int round,
            int seconds,
            String breaks,
            String mends,
            double[] out,
            double[] back,
            double[] ratio,
            double normal)
            throws Exception {
        long began = sh(breaks);
        out[round] = until(TierState.OUT, began);
        try (Prompts given = new Prompts()) {
            // What was given up on is given away: a late read must not land there.
            given.restore(1, true);
            given.memory.fill(0, given.memory.bytes(), CANARY);
            double during = p99(seconds);
            ratio[round] = during / normal;
            began = sh(mends);
            back[round] = until(TierState.SERVING, began);
            System.out.printf(
                    Locale.ROOT,
                    "  round %d: out %.2f s, p99 %.0f us normal, %.0f us during, back %.2f s%n",
                    round + 1,
                    out[round],
                    normal,
                    during,
                    back[round]);
            for (long i = 0; i < given.memory.bytes(); i++) {
                if (given.memory.getByte(i) != CANARY) {
                    return false;
                }
            }
            return true;
        }
    }

    private double until(TierState state, long start) {
        while (store.drives().get(0).state() != state) {
            double seconds = (System.nanoTime() - start) / 1e9;
            if (seconds > 60) {
                return seconds;
            }
            LockSupport.parkNanos(1_000_000);
        }
        return (System.nanoTime() - start) / 1e9;
    }

    /** The 99th percentile of what host hits take for so long, in microseconds. */
    private double p99(int seconds) {
        sampled.set(0);
        long until = System.nanoTime() + seconds * 1_000_000_000L;
        while (System.nanoTime() < until) {
            LockSupport.parkNanos(10_000_000);
        }
        int count = Math.min(sampled.get(), SAMPLES_MAX);
        long[] taken = Arrays.copyOf(samples, count);
        Arrays.sort(taken);
        return count == 0 ? Double.POSITIVE_INFINITY : taken[(int) (count * 0.99)] / 1e3;
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    private static Thread start(Runnable work) {
        Thread thread = new Thread(work);
        thread.start();
        return thread;
    }

    private void hostTraffic() {
        try (Prompts mine = new Prompts()) {
            while (!ends) {
                int prompt = newest.get() + 1;
                mine.save(prompt);
                newest.set(prompt);
                for (int i = 0; i < 8 && !ends; i++) {
                    long began = System.nanoTime();
                    int restored = mine.restore(prompt - i, false);
                    long nanos = System.nanoTime() - began;
                    int slot = restored > 0 ? sampled.getAndIncrement() : SAMPLES_MAX;
                    if (slot < SAMPLES_MAX) {
                        samples[slot] = nanos;
                    }
                    LockSupport.parkNanos(500_000);
                }
                LockSupport.parkNanos(20_000_000);
            }
        }
    }

    private void driveTraffic() {
        try (Prompts mine = new Prompts()) {
            for (int i = 0; !ends; i++) {
                int last = newest.get();
                int prompt = Math.max(1, last - 400 - i % 100);
                int restored = mine.restore(prompt, true);
                if (restored > 0) {
                    fromDrive.addAndGet(restored);
                }
                LockSupport.parkNanos(5_000_000);
            }
        }
    }

    /**
     * Has the script do something, by two files: a child process of this one would hang with the drive, when it closes the files
     * that it has inherited.
     *
     * @return when it was done, on the clock of {@link System#nanoTime()}
     */
    private long sh(String command) throws Exception {
        Files.writeString(commands.resolve("command.new"), command);
        Files.move(commands.resolve("command.new"), commands.resolve("command"), StandardCopyOption.ATOMIC_MOVE);
        while (Files.exists(commands.resolve("command"))) {
            LockSupport.parkNanos(1_000_000);
        }
        long doneMillis =
                Long.parseLong(Files.readString(commands.resolve("done")).trim());
        return System.nanoTime() - (System.currentTimeMillis() - doneMillis) * 1_000_000;
    }
}
