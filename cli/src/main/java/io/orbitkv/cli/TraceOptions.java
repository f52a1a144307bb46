package io.orbitkv.cli;

import io.orbitkv.bench.trace.TraceFormat;
import io.orbitkv.bench.trace.TraceReader;
import java.nio.file.Path;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Which trace, and how it is written. */
final class TraceOptions {
    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    @Option(
            names = "--trace",
            required = true,
            paramLabel = "<file>",
            description =
                    "The trace: requests with the hashes of their prompts' blocks; docs/traces.md has the formats.")
    Path file;

    @Option(
            names = "--format",
            paramLabel = "<format>",
            defaultValue = "MOONCAKE",
            description = "How the trace is written: ${COMPLETION-CANDIDATES}. Default: ${DEFAULT-VALUE}.")
    TraceFormat format;

    @Option(
            names = "--block-tokens",
            paramLabel = "<n>",
            defaultValue = "" + TraceReader.BLOCK_TOKENS_DEFAULT,
            description = "Tokens of a block in the trace, 1 to 1048576. Default: ${DEFAULT-VALUE}.")
    int blockTokens;

    @Option(
            names = "--limit",
            paramLabel = "<n>",
            description = "Run the first n requests of the trace, at least 2. Default: all.")
    Integer limit;

    /** Refuses numbers that are out of range. */
    void check() {
        if (blockTokens < 1 || blockTokens > 1 << 20) {
            throw bad("--block-tokens is " + blockTokens + "; give 1 to 1048576");
        }
        if (limit != null && limit < 2) {
            throw bad("--limit is " + limit + "; give at least 2, or leave it out to run the whole trace");
        }
    }

    /** The most requests to read. */
    long requestsMax() {
        return limit == null ? Long.MAX_VALUE : limit;
    }

    /** Opens the trace. */
    TraceReader open() {
        return TraceReader.open(file, format, blockTokens, requestsMax());
    }

    /** Reads the whole trace. */
    Workload workload() {
        return Workload.read(file, format, blockTokens, requestsMax());
    }

    private ParameterException bad(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
