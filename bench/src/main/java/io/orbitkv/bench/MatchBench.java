package io.orbitkv.bench;

import com.sun.management.ThreadMXBean;
import io.orbitkv.index.Match;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.Tier;
import java.lang.management.ManagementFactory;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.Histogram;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Question: what does a match cost, from any block on, among many, while a writer publishes and deletes?
 *
 * <p>It fills an index with prefixes saved 64 blocks at a time, many prefixes in turn, a quarter of them forks of
 * earlier ones; every block lies in both tiers. Then one thread matches stretches of random prefixes from random
 * blocks on, and checks every block of every answer, outside of the timed part, against what its key says, while
 * another publishes blocks of other prefixes, raises generations of the oldest segments and sweeps. Prefixes that are
 * measured are never deleted, so a match that ends early is an error (<i>short</i>).
 *
 * <p>On a machine with other work a sample may hold a time slice of somebody else: samples whose wall time exceeds the
 * thread's CPU time by less than {@link #UNDISTURBED_NANOS} are also reported on their own. Who shares the core through
 * its other hardware thread does not show in CPU time, though everything takes up to twice as long beside him; so a
 * fixed piece of arithmetic is timed before each sample ({@link CoreProbe}), and undisturbed samples before which it ran
 * as fast as it can are reported on their own too.
 */
public final class MatchBench {
    /** A sample is undisturbed when its wall time exceeds its CPU time by less than this. */
    public static final long UNDISTURBED_NANOS = 20_000;

    private static final int SAVE_BLOCKS = 64;
    private static final int INTERLEAVED_PREFIXES = 64;
    private static final int FORK_PERCENT = 25;
    private static final int STABLE_SEGMENTS = 16_384;
    private static final int CHURN_SEGMENTS = 4096;
    private static final int CHURN_SAVES_PER_SEGMENT = 4;
    private static final int SWEEP_RUNS_PER_SAVE = 32;
    private static final int WHOLE_EVERY = 16;
    private static final int WARM_UP_MATCHES = 10_000;
    private static final int KEY_BYTES = PrefixIndex.KEY_BYTES;
    private static final int GENERATION_FIRST = 1;
    private static final long HIGHEST_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final int SIGNIFICANT_DIGITS = 3;

    private final Options options;
    private final Progress progress;

    /**
     * Sizes of a run.
     *
     * @param blocks blocks in the index when matching begins, at least {@code 4 * matchBlocks}
     * @param matchBlocks blocks of each match
     * @param checkedBlocks ends the run when so many blocks were matched and checked
     * @param secondsMax ends it earlier, after so many seconds of matching
     * @param writerBlocksPerSecond what the writer tries to publish; 0: no writer
     * @param seed all randomness comes from it
     */
    public record Options(
            long blocks, int matchBlocks, long checkedBlocks, int secondsMax, int writerBlocksPerSecond, long seed) {
        /** The run that the project's aim is about: 4,096 of 10 M blocks, 100,000 published a second, 10^9 checked. */
        public static Options defaults() {
            return new Options(10_000_000, 4096, 1_000_000_000L, 600, 100_000, 1);
        }
    }

    /** Hears how far a run is. Called by the thread that runs the benchmark, some times a second at most. */
    @FunctionalInterface
    public interface Progress {
        /**
         * How far it is.
         *
         * @param what what is being done
         * @param done blocks done of it
         * @param total blocks to do
         */
        void at(String what, long done, long total);
    }

    /**
     * What a run found. Times of a match are microseconds.
     *
     * @param matches samples
     * @param p50Micros of all samples
     * @param p99Micros of all samples
     * @param maxMicros of all samples
     * @param undisturbedMatches samples whose wall time exceeds their CPU time by less than 20 µs
     * @param undisturbedP50Micros of those
     * @param undisturbedP99Micros of those
     * @param undisturbedMaxMicros of those
     * @param ownCoreMatches undisturbed samples that had the core's arithmetic for themselves
     * @param ownCoreP50Micros of those
     * @param ownCoreP99Micros of those
     * @param checkedBlocks blocks compared with what their keys say
     * @param wrong blocks that were not what their key says
     * @param shortMatches matches that ended early
     * @param allocatedBytesPerMatch heap bytes of the matching thread
     * @param writerBlocksPerSecond what the writer achieved
     * @param writerDeletedBlocks blocks whose places sweeps freed meanwhile
     * @param publishNanosPerBlock CPU time of filling the index, publishing alone, first touch of its memory included
     * @param placeNanosPerBlock CPU time of filling the index, noting the second tier
     * @param bytesPerBlock memory of the index in use, a block
     * @param blocks blocks in the index when matching began
     * @param indexBytes memory of the index in use
     * @param hugeBytes of its reservation on huge pages
     * @param seed to repeat it
     */
    public record Result(
            long matches,
            double p50Micros,
            double p99Micros,
            double maxMicros,
            long undisturbedMatches,
            double undisturbedP50Micros,
            double undisturbedP99Micros,
            double undisturbedMaxMicros,
            long ownCoreMatches,
            double ownCoreP50Micros,
            double ownCoreP99Micros,
            long checkedBlocks,
            long wrong,
            long shortMatches,
            double allocatedBytesPerMatch,
            double writerBlocksPerSecond,
            long writerDeletedBlocks,
            double publishNanosPerBlock,
            double placeNanosPerBlock,
            double bytesPerBlock,
            long blocks,
            long indexBytes,
            long hugeBytes,
            long seed) {}

    /**
     * Prepares a run.
     *
     * @param options its sizes
     * @param progress hears how far it is
     */
    public MatchBench(Options options, Progress progress) {
        if (options.matchBlocks() < 1 || options.blocks() < 4L * options.matchBlocks()) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "a match of " + options.matchBlocks() + " blocks needs an index of at least 4 times as many, not "
                            + options.blocks());
        }
        if (options.writerBlocksPerSecond() < 0 || options.checkedBlocks() < 1 || options.secondsMax() < 1) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "checked blocks and seconds are at least 1 and the writer's rate at least 0, got " + options);
        }
        this.options = options;
        this.progress = progress;
    }

    /** Runs it: minutes, with the default sizes. */
    public Result run() {
        long churnBlocks = (long) CHURN_SEGMENTS * CHURN_SAVES_PER_SEGMENT * SAVE_BLOCKS;
        long blocksMax = options.blocks() + options.blocks() / 4 + 2 * churnBlocks;
        try (Generations host = new Generations(STABLE_SEGMENTS + CHURN_SEGMENTS);
                Generations nvme = new Generations(STABLE_SEGMENTS + CHURN_SEGMENTS);
                PrefixIndex index = new PrefixIndex(blocksMax, host, nvme)) {
            Prompts prompts = new Prompts(options);
            Filler filler = new Filler(index, prompts);
            filler.fill(options.blocks(), progress);
            long blocks = index.blocks();
            double bytesPerBlock = (double) index.usedBytes() / blocks;
            Writer writer = new Writer(index, host, nvme, filler.namespace, options);
            Thread thread = new Thread(writer, "match-bench-writer");
            if (options.writerBlocksPerSecond() > 0) {
                thread.start();
            }
            Reader reader = new Reader(index, prompts, filler.namespace, options);
            try {
                reader.read(progress);
            } finally {
                writer.stop = true;
                join(thread);
            }
            if (writer.failure != null) {
                throw new OrbitKvException(ErrorCode.BUG, "the benchmark's writer failed", writer.failure);
            }
            Histogram all = reader.all;
            Histogram calm = reader.undisturbed;
            Histogram own = reader.ownCore;
            return new Result(
                    all.getTotalCount(),
                    micros(all.getValueAtPercentile(50)),
                    micros(all.getValueAtPercentile(99)),
                    micros(all.getMaxValue()),
                    calm.getTotalCount(),
                    micros(calm.getValueAtPercentile(50)),
                    micros(calm.getValueAtPercentile(99)),
                    micros(calm.getMaxValue()),
                    own.getTotalCount(),
                    micros(own.getValueAtPercentile(50)),
                    micros(own.getValueAtPercentile(99)),
                    reader.checked,
                    reader.wrong,
                    reader.shortMatches,
                    reader.allocatedBytesPerMatch,
                    writer.achievedPerSecond(),
                    writer.deleted,
                    (double) filler.publishNanos / blocks,
                    (double) filler.placeNanos / blocks,
                    bytesPerBlock,
                    blocks,
                    index.usedBytes(),
                    index.hugeBytes(),
                    options.seed());
        }
    }

    private static double micros(long nanos) {
        return nanos / 1000.0;
    }

    private static void join(Thread thread) {
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** What a key says about its block, so that nothing has to be remembered. */
    private static final class Truth {
        private Truth() {}

        static void key(long seed, long prompt, int block, UnsafeBuffer into, int offset) {
            long word = mix(seed + prompt * 0x9E3779B97F4A7C15L) + block;
            long key0 = mix(word);
            long tag = mix(key0 ^ word);
            into.putLong(offset, key0);
            into.putLong(offset + 8, tag);
            into.putLong(offset + 16, key0 + tag);
            into.putLong(offset + 24, word);
        }

        static int checksum(long key0) {
            return (int) (key0 >>> 20);
        }

        static int bytes(long key0) {
            return (int) key0 & 0xff_ffff | 1;
        }

        /** Blocks of a save lie together, as in a log. */
        static long stableExtent(long prompt, int block, long key0, Tier tier) {
            long place = mix(prompt * 4096 + block / 32 + tier.ordinal());
            return Extent.pack((int) (place & (STABLE_SEGMENTS - 1)), (int) (key0 >>> 48), GENERATION_FIRST);
        }

        static long mix(long value) {
            long x = value;
            x = (x ^ x >>> 30) * 0xBF58476D1CE4E5B9L;
            x = (x ^ x >>> 27) * 0x94D049BB133111EBL;
            return x ^ x >>> 31;
        }
    }

    /** The prompts whose blocks are stable: twice as long as a match, some of them forks of earlier ones. */
    private static final class Prompts {
        final long seed;
        final int length;
        final int count;
        final int[] parent;
        final int[] forkAt;

        Prompts(Options options) {
            this.seed = options.seed();
            this.length = 2 * options.matchBlocks();
            SplittableRandom random = new SplittableRandom(seed);
            int most = Math.toIntExact(options.blocks() / length * 2 + 2);
            this.parent = new int[most];
            this.forkAt = new int[most];
            long blocks = 0;
            int made = 0;
            while (made < most && blocks < options.blocks()) {
                // A fork leaves a prompt that is already whole, so that it ends in a run of that one.
                if (made >= INTERLEAVED_PREFIXES && random.nextInt(100) < FORK_PERCENT) {
                    parent[made] = random.nextInt(made / INTERLEAVED_PREFIXES * INTERLEAVED_PREFIXES);
                    forkAt[made] = random.nextInt(length);
                }
                blocks += length - forkAt[made];
                made++;
            }
            this.count = made;
        }

        /** The prompt that a block belongs to at first. */
        int owner(int prompt, int block) {
            int owner = prompt;
            while (block < forkAt[owner]) {
                owner = parent[owner];
            }
            return owner;
        }

        void key(int prompt, int block, UnsafeBuffer into, int offset) {
            Truth.key(seed, owner(prompt, block), block, into, offset);
        }
    }

    private static final class Filler {
        final PrefixIndex index;
        final Prompts prompts;
        final int namespace;
        final UnsafeBuffer keys = new UnsafeBuffer(new byte[(SAVE_BLOCKS + 1) * KEY_BYTES]);
        final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long publishNanos;
        long placeNanos;

        Filler(PrefixIndex index, Prompts prompts) {
            this.index = index;
            this.prompts = prompts;
            this.namespace = index.newNamespace();
        }

        void fill(long total, Progress progress) {
            for (int first = 0; first < prompts.count; first += INTERLEAVED_PREFIXES) {
                int last = Math.min(prompts.count, first + INTERLEAVED_PREFIXES);
                for (int block = 0; block < prompts.length; block += SAVE_BLOCKS) {
                    for (int prompt = first; prompt < last; prompt++) {
                        int from = Math.max(block, prompts.forkAt[prompt]);
                        if (from < block + SAVE_BLOCKS) {
                            save(prompt, from, Math.min(prompts.length, block + SAVE_BLOCKS));
                        }
                    }
                }
                progress.at("filling the index", index.blocks(), total);
            }
        }

        private void save(int prompt, int from, int to) {
            if (from > 0) {
                prompts.key(prompt, from - 1, keys, 0);
            }
            for (int block = from; block < to; block++) {
                prompts.key(prompt, block, keys, (block - from + 1) * KEY_BYTES);
            }
            long start = threads.getCurrentThreadCpuTime();
            index.expect(to - from);
            for (int block = from; block < to; block++) {
                int at = (block - from + 1) * KEY_BYTES;
                long key0 = keys.getLong(at);
                PrefixIndex.Publication answer = index.publish(
                        namespace,
                        block == 0 ? null : keys,
                        at - KEY_BYTES,
                        keys,
                        at,
                        Truth.bytes(key0),
                        Truth.checksum(key0),
                        Tier.HOST,
                        Truth.stableExtent(prompt, block, key0, Tier.HOST));
                if (answer != PrefixIndex.Publication.PUBLISHED) {
                    throw new OrbitKvException(ErrorCode.BUG, "filling the index: a block was answered " + answer);
                }
            }
            long published = threads.getCurrentThreadCpuTime();
            for (int block = from; block < to; block++) {
                int at = (block - from + 1) * KEY_BYTES;
                long key0 = keys.getLong(at);
                index.place(
                        namespace,
                        keys,
                        at,
                        Tier.HOST,
                        Truth.stableExtent(prompt, block, key0, Tier.HOST),
                        Tier.NVME,
                        Truth.stableExtent(prompt, block, key0, Tier.NVME));
            }
            publishNanos += published - start;
            placeNanos += threads.getCurrentThreadCpuTime() - published;
        }
    }

    /** Publishes and deletes blocks that nobody measures, at a steady rate. */
    private static final class Writer implements Runnable {
        final PrefixIndex index;
        final Generations host;
        final Generations nvme;
        final int namespace;
        final Options options;
        final SplittableRandom random;
        final UnsafeBuffer keys = new UnsafeBuffer(new byte[(SAVE_BLOCKS + 1) * KEY_BYTES]);
        volatile boolean stop;
        volatile Throwable failure;
        long published;
        long deleted;
        long nanos;

        Writer(PrefixIndex index, Generations host, Generations nvme, int namespace, Options options) {
            this.index = index;
            this.host = host;
            this.nvme = nvme;
            this.namespace = namespace;
            this.options = options;
            this.random = new SplittableRandom(options.seed() + 1);
        }

        @Override
        public void run() {
            try {
                write();
            } catch (RuntimeException | Error e) {
                failure = e;
            }
        }

        private void write() {
            long start = System.nanoTime();
            long nanosPerSave = TimeUnit.SECONDS.toNanos(SAVE_BLOCKS) / options.writerBlocksPerSecond();
            long prompt = 1L << 40; // far from the stable ones
            int block = 0;
            for (long save = 0; !stop; save++) {
                if (block > 0 && random.nextInt(16) == 0) {
                    prompt++;
                    block = 0;
                }
                int slot = (int) (save / CHURN_SAVES_PER_SEGMENT % CHURN_SEGMENTS);
                if (save % CHURN_SAVES_PER_SEGMENT == 0 && save >= CHURN_SEGMENTS * CHURN_SAVES_PER_SEGMENT) {
                    host.raise(STABLE_SEGMENTS + slot);
                    nvme.raise(STABLE_SEGMENTS + slot);
                }
                save(prompt, block, STABLE_SEGMENTS + slot);
                block += SAVE_BLOCKS;
                deleted += index.sweep(SWEEP_RUNS_PER_SAVE);
                long wait = start + (save + 1) * nanosPerSave - System.nanoTime();
                if (wait > 0) {
                    LockSupport.parkNanos(wait);
                }
            }
            nanos = System.nanoTime() - start;
        }

        private void save(long prompt, int from, int segment) {
            for (int i = 0; i <= SAVE_BLOCKS; i++) {
                Truth.key(options.seed(), prompt, from + i - 1, keys, i * KEY_BYTES);
            }
            long hostExtent = Extent.pack(segment, 0, host.current(segment));
            long nvmeExtent = Extent.pack(segment, 0, nvme.current(segment));
            index.expect(SAVE_BLOCKS);
            for (int i = 1; i <= SAVE_BLOCKS; i++) {
                int at = i * KEY_BYTES;
                long key0 = keys.getLong(at);
                PrefixIndex.Publication answer = index.publish(
                        namespace,
                        from + i == 1 ? null : keys,
                        at - KEY_BYTES,
                        keys,
                        at,
                        Truth.bytes(key0),
                        Truth.checksum(key0),
                        Tier.HOST,
                        hostExtent);
                if (answer == PrefixIndex.Publication.PUBLISHED) {
                    published++;
                    index.place(namespace, keys, at, Tier.HOST, hostExtent, Tier.NVME, nvmeExtent);
                }
            }
        }

        double achievedPerSecond() {
            return nanos == 0 ? 0 : published * 1e9 / nanos;
        }
    }

    private static final class Reader {
        final PrefixIndex index;
        final Prompts prompts;
        final int namespace;
        final Options options;
        final int matchBlocks;
        final Match match;
        final Match whole;
        final UnsafeBuffer keys;
        final Histogram all = new Histogram(HIGHEST_NANOS, SIGNIFICANT_DIGITS);
        final Histogram undisturbed = new Histogram(HIGHEST_NANOS, SIGNIFICANT_DIGITS);
        final Histogram ownCore = new Histogram(HIGHEST_NANOS, SIGNIFICANT_DIGITS);
        final CoreProbe probe = new CoreProbe();
        final SplittableRandom random;
        final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long checked;
        long wrong;
        long shortMatches;
        private long samples;
        double allocatedBytesPerMatch;

        Reader(PrefixIndex index, Prompts prompts, int namespace, Options options) {
            this.index = index;
            this.prompts = prompts;
            this.namespace = namespace;
            this.options = options;
            this.matchBlocks = options.matchBlocks();
            this.match = Match.ofExtents(matchBlocks);
            this.whole = new Match(matchBlocks);
            this.keys = new UnsafeBuffer(new byte[matchBlocks * KEY_BYTES]);
            this.random = new SplittableRandom(options.seed() + 2);
        }

        void read(Progress progress) {
            for (int i = 0; i < WARM_UP_MATCHES; i++) {
                sample();
            }
            all.reset();
            undisturbed.reset();
            ownCore.reset();
            checked = 0;
            long thread = Thread.currentThread().getId();
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(options.secondsMax());
            long nextReport = System.nanoTime();
            long allocated = 0;
            while (checked < options.checkedBlocks() && System.nanoTime() < end) {
                long before = threads.getThreadAllocatedBytes(thread);
                for (int i = 0; i < 100 && checked < options.checkedBlocks(); i++) {
                    sample();
                }
                allocated += threads.getThreadAllocatedBytes(thread) - before;
                if (System.nanoTime() > nextReport) {
                    progress.at("matching", checked, options.checkedBlocks());
                    nextReport = System.nanoTime() + TimeUnit.SECONDS.toNanos(1);
                }
            }
            allocatedBytesPerMatch = (double) allocated / Math.max(1, all.getTotalCount());
        }

        private void sample() {
            int prompt = random.nextInt(prompts.count);
            int from = random.nextInt(prompts.length - matchBlocks + 1);
            for (int i = 0; i < matchBlocks; i++) {
                prompts.key(prompt, from + i, keys, i * KEY_BYTES);
            }
            boolean hasOwnCore = probe.hasOwnCore();
            // The CPU clock is a system call: outside of the timed part.
            long cpuBefore = threads.getCurrentThreadCpuTime();
            long start = System.nanoTime();
            int matched = index.match(namespace, keys, 0, matchBlocks, match);
            long wall = System.nanoTime() - start;
            long cpu = threads.getCurrentThreadCpuTime() - cpuBefore;
            all.recordValue(Math.min(wall, HIGHEST_NANOS));
            if (wall - cpu < UNDISTURBED_NANOS) {
                undisturbed.recordValue(Math.min(wall, HIGHEST_NANOS));
                if (hasOwnCore) {
                    ownCore.recordValue(Math.min(wall, HIGHEST_NANOS));
                }
            }
            check(prompt, from, matched);
            if (++samples % WHOLE_EVERY == 0) {
                checkWhole();
            }
        }

        /** What the timed match leaves out, stored bytes and checksum, of every few samples. */
        private void checkWhole() {
            int matched = index.match(namespace, keys, 0, matchBlocks, whole);
            if (matched < matchBlocks) {
                shortMatches++;
            }
            for (int i = 0; i < matched; i++) {
                long key0 = keys.getLong(i * KEY_BYTES);
                if (whole.bytes(i) != Truth.bytes(key0) || whole.checksum(i) != Truth.checksum(key0)) {
                    wrong++;
                }
            }
        }

        private void check(int prompt, int from, int matched) {
            if (matched < matchBlocks) {
                shortMatches++;
            }
            for (int i = 0; i < matched; i++) {
                long key0 = keys.getLong(i * KEY_BYTES);
                int block = from + i;
                int owner = prompts.owner(prompt, block);
                if (match.extent(Tier.HOST, i) != Truth.stableExtent(owner, block, key0, Tier.HOST)
                        || match.extent(Tier.NVME, i) != Truth.stableExtent(owner, block, key0, Tier.NVME)) {
                    wrong++;
                }
            }
            checked += matched;
        }
    }
}
