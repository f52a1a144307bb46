package io.orbitkv.cli;

import io.orbitkv.tiers.EvictionPolicy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What a demo runs and on what; the parent hands it on to its child processes. */
final class DemoOptions {
    private static final int REQUESTS_DEFAULT = 1000;

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    @Option(
            names = {"--data", "--ssd-cache-path"},
            paramLabel = "<folder>",
            description = "The data folder; kept at the end. Give it once for each of several."
                    + " Default: a temporary one, removed at the end.")
    List<Path> data = new ArrayList<>();

    @Option(
            names = "--trace",
            paramLabel = "<file>",
            description = "Run the requests of a trace instead of generated chats: one JSON object a line with"
                    + " timestamp (ms), input_length and output_length (tokens), hash_ids (a number for each 512-token"
                    + " block). Default: generated chats.")
    Path trace;

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
            defaultValue = "64mb",
            converter = Sizes.class,
            description = "Bytes of host memory that hold blocks. Default: ${DEFAULT-VALUE}.")
    long poolBytes;

    @Option(
            names = {"--cap", "--ssd-cache-capacity"},
            paramLabel = "<size>",
            defaultValue = "512mb",
            converter = Sizes.class,
            description = "Bytes that the data folders may take on their drives, all files together."
                    + " Default: ${DEFAULT-VALUE}.")
    long capBytes;

    @Option(
            names = "--policy",
            paramLabel = "<policy>",
            defaultValue = "second-chance",
            converter = PolicyName.class,
            completionCandidates = PolicyName.class,
            description = "What leaves memory and drive when room is needed: ${COMPLETION-CANDIDATES}."
                    + " Default: ${DEFAULT-VALUE}.")
    EvictionPolicy policy;

    @Option(
            names = "--requests",
            paramLabel = "<n>",
            description =
                    "How many requests to generate, at least 2; not with --trace. Default: " + REQUESTS_DEFAULT + ".")
    Integer requests;

    @Option(
            names = "--limit",
            paramLabel = "<n>",
            description = "Run the first n requests of the trace, at least 2. Default: all.")
    Integer limit;

    @Option(
            names = "--seed",
            paramLabel = "<n>",
            defaultValue = "1",
            description =
                    "Seed of generated chats and of every block's bytes; any whole number. Default: ${DEFAULT-VALUE}.")
    long seed;

    /** Refuses what makes no sense together, before anything is started. */
    void check() {
        Sizes.requireBlock(spec, blockBytes);
        if (requests != null && trace != null) {
            throw bad("--requests is for generated chats; with --trace use --limit");
        }
        if (limit != null && trace == null) {
            throw bad("--limit is for traces; without --trace use --requests");
        }
        if (requests != null && requests < 2) {
            throw bad("--requests is " + requests + "; give at least 2, one for each side of the kill");
        }
        if (limit != null && limit < 2) {
            throw bad("--limit is " + limit + "; give at least 2, one for each side of the kill");
        }
        if (poolBytes < 8 * blockBytes) {
            throw bad("--pool-size is " + Sizes.text(poolBytes) + "; give room for at least 8 blocks of "
                    + Sizes.text(blockBytes));
        }
    }

    /** What the child processes are told, but for the folder. */
    ChildOptions child() {
        ChildOptions child = new ChildOptions();
        child.tool = "demo";
        child.trace = trace;
        child.limit =
                trace == null ? requests == null ? REQUESTS_DEFAULT : requests : limit == null ? Long.MAX_VALUE : limit;
        child.blockBytes = Math.toIntExact(blockBytes);
        child.poolBytes = poolBytes;
        child.capBytes = capBytes;
        child.policy = policy;
        child.seed = seed;
        return child;
    }

    ParameterException bad(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
