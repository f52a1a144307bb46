package io.orbitkv.cli;

import io.orbitkv.tiers.AdmissionPolicy;
import io.orbitkv.tiers.EvictionPolicy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The store that a replay runs against, and how it runs. */
final class ReplayOptions {
    /** Pages of a segment that hold no blocks: header, batch headers, footer. */
    private static final long SEGMENT_OWN_BYTES = 16L << 10;

    /** Segments that are open at once, and as many that can leave. */
    private static final int POOL_SEGMENTS_MIN = 8;

    private static final int CONCURRENCY_MAX = 256;

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    @Option(
            names = {"--data", "--ssd-cache-path"},
            paramLabel = "<folder>",
            description = "A data folder; give it several times for several drives. Kept at the end. Default: a"
                    + " temporary one, removed at the end.")
    List<Path> data = new ArrayList<>();

    @Option(
            names = "--block-bytes",
            paramLabel = "<size>",
            defaultValue = "64kb",
            converter = Sizes.class,
            description = "Bytes of a block, from 4kb to 32mb. Default: ${DEFAULT-VALUE}.")
    long blockBytes;

    @Option(
            names = "--pool-size",
            paramLabel = "<size>",
            defaultValue = "128mb",
            converter = Sizes.class,
            description = "Bytes of host memory that hold blocks. Default: ${DEFAULT-VALUE}.")
    long poolBytes;

    @Option(
            names = {"--ssd-cache-capacity", "--cap"},
            paramLabel = "<size>",
            defaultValue = "1200mb",
            converter = Sizes.class,
            description = "Bytes that the data folders may take on the drives, all files together."
                    + " Default: ${DEFAULT-VALUE}.")
    long capBytes;

    @Option(
            names = "--segment-bytes",
            paramLabel = "<size>",
            converter = Sizes.class,
            description = "Bytes of a segment, a power of two from 64kb to 64mb. Default: chosen by the tiers' sizes.")
    Long segmentBytes;

    @Option(
            names = "--policy",
            paramLabel = "<policy>",
            defaultValue = "second-chance",
            description = "What leaves a full tier: second-chance, segment-lru or fifo. Default: ${DEFAULT-VALUE}.")
    String policy;

    @Option(
            names = "--ssd-write-policy",
            paramLabel = "<policy>",
            defaultValue = "all",
            description = "What is written to the drives: all, reuse or duel. Default: ${DEFAULT-VALUE}.")
    String admission;

    @Option(
            names = "--admission-price",
            paramLabel = "<number>",
            defaultValue = "0.1",
            description = "What a written block costs in duel, in blocks of compute saved, 0 to 10."
                    + " Default: ${DEFAULT-VALUE}.")
    double admissionPrice;

    @Option(
            names = "--on-full",
            paramLabel = "<what>",
            defaultValue = "wait",
            description = "What a save does while the drive's queue is full: wait or drop. Default: ${DEFAULT-VALUE}.")
    String onFull;

    @Option(
            names = "--pace",
            paramLabel = "<pace>",
            defaultValue = "none",
            description = "When a request may follow the one before it: none (at once) or written (when the store has"
                    + " written it, so that hits don't depend on the machine's speed; a simulation then has no queue)."
                    + " Default: ${DEFAULT-VALUE}.")
    String pace;

    @Option(
            names = "--restart-at",
            paramLabel = "<fraction>",
            description = "Restart the store after this fraction of the requests, between 0 and 1. Default: never.")
    Double restartAt;

    @Option(
            names = "--restart-kind",
            paramLabel = "<kind>",
            description = "How the store ends at --restart-at: clean or kill. Default: kill.")
    String restartKind;

    @Option(
            names = "--concurrency",
            paramLabel = "<n>",
            defaultValue = "1",
            description = "Requests at the same time, 1 to " + CONCURRENCY_MAX + ". Default: ${DEFAULT-VALUE}.")
    int concurrency;

    @Option(
            names = "--seed",
            paramLabel = "<n>",
            defaultValue = "1",
            description = "Seed of every block's bytes, any whole number. Default: ${DEFAULT-VALUE}.")
    long seed;

    /** Refuses what is out of range or makes no sense together, before anything is started. */
    void check() {
        policy = choice("--policy", policy, new PolicyName().names());
        admission = choice("--ssd-write-policy", admission, List.of("all", "reuse", "duel"));
        onFull = choice("--on-full", onFull, List.of("wait", "drop"));
        pace = choice("--pace", pace, List.of("none", "written"));
        if (restartKind != null) {
            restartKind = choice("--restart-kind", restartKind, List.of("clean", "kill"));
        }
        Sizes.requireBlock(spec, blockBytes);
        if (!(admissionPrice >= 0 && admissionPrice <= 10)) {
            throw bad("--admission-price is " + admissionPrice + "; give 0 to 10");
        }
        if (restartAt != null && !(restartAt > 0 && restartAt < 1)) {
            throw bad("--restart-at is " + restartAt + "; give a fraction between 0 and 1, for example 0.5");
        }
        if (restartKind != null && restartAt == null) {
            throw bad("--restart-kind is given without --restart-at; say when, for example --restart-at 0.5");
        }
        if (concurrency < 1 || concurrency > CONCURRENCY_MAX) {
            throw bad("--concurrency is " + concurrency + "; give 1 to " + CONCURRENCY_MAX);
        }
        if (segmentBytes != null
                && (segmentBytes < 64 << 10 || segmentBytes > 64 << 20 || Long.bitCount(segmentBytes) != 1)) {
            throw bad("--segment-bytes is " + segmentBytes + "; give a power of two from 64kb to 64mb");
        }
    }

    /** Refuses what the store can't do, or can't hold with these sizes: contradictions that would end the first save. */
    void checkStore() {
        if (segmentBytes != null && segmentBytes < blockBytes + SEGMENT_OWN_BYTES) {
            throw bad("--block-bytes is " + Sizes.text(blockBytes) + " and --segment-bytes " + Sizes.text(segmentBytes)
                    + "; a segment has to hold a block and " + Sizes.text(SEGMENT_OWN_BYTES)
                    + " of its own: give larger segments, or leave --segment-bytes out");
        }
        long poolNeeded = Math.max(8 * blockBytes, segmentBytes == null ? 0 : POOL_SEGMENTS_MIN * segmentBytes);
        if (poolBytes < poolNeeded) {
            throw bad("--pool-size is " + Sizes.text(poolBytes) + "; give at least " + Sizes.text(poolNeeded)
                    + ": room for 8 blocks and for " + POOL_SEGMENTS_MIN + " segments, open ones and others");
        }
    }

    /** What the child processes are told, but for the folders. */
    ChildOptions child(TraceOptions trace) {
        ChildOptions child = new ChildOptions();
        child.trace = trace.file;
        child.format = trace.format;
        child.blockTokens = trace.blockTokens;
        child.limit = trace.requestsMax();
        child.blockBytes = Math.toIntExact(blockBytes);
        child.poolBytes = poolBytes;
        child.capBytes = capBytes;
        child.segmentBytes = segmentBytes == null ? 0 : segmentBytes;
        child.policy = eviction();
        child.admission = writePolicy();
        child.admissionPrice = admissionPrice;
        child.onFull = ChildOptions.OnFull.valueOf(onFull.toUpperCase(Locale.ROOT));
        child.pace = ChildOptions.Pace.valueOf(pace.toUpperCase(Locale.ROOT));
        child.concurrency = concurrency;
        child.seed = seed;
        return child;
    }

    /** What leaves a full tier; after {@link #check}. */
    EvictionPolicy eviction() {
        return new PolicyName().convert(policy);
    }

    /** What is written to the drives; after {@link #check}. */
    AdmissionPolicy writePolicy() {
        return AdmissionPolicy.valueOf(admission.toUpperCase(Locale.ROOT));
    }

    /** How the store ends on the way. */
    Replay.Restart restart() {
        if (restartAt == null) {
            return Replay.Restart.NONE;
        }
        return "clean".equals(restartKind) ? Replay.Restart.CLEAN : Replay.Restart.KILL;
    }

    /** Whether the store's sizes were given, and not left to the defaults. */
    boolean isSized() {
        CommandLine.ParseResult given = spec.commandLine().getParseResult();
        return given.hasMatchedOption("--pool-size") || given.hasMatchedOption("--ssd-cache-capacity");
    }

    private String choice(String flag, String value, List<String> choices) {
        String lower = value.toLowerCase(Locale.ROOT).replace('_', '-');
        if (!choices.contains(lower)) {
            throw bad(flag + " is '" + value + "'; give one of " + String.join(", ", choices));
        }
        return lower;
    }

    ParameterException bad(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
