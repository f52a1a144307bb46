package io.orbitkv.cli;

import io.orbitkv.bench.trace.TraceFormat;
import io.orbitkv.bench.trace.TraceReader;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.tiers.AdmissionPolicy;
import io.orbitkv.tiers.EvictionPolicy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/**
 * What a demo or a replay runs and on what: its parent fills this in and writes it out as flags, the child process reads
 * them back.
 */
final class ChildOptions {
    /** What a save does while the queue to the drive is full. */
    enum OnFull {
        /** Tries again until the blocks are taken, so that none is dropped. */
        WAIT,
        /** Leaves the rest of its request out. */
        DROP
    }

    /** When the next request may come. */
    enum Pace {
        /** As soon as the one before it has been answered. */
        NONE,
        /** When the store has written, and taken note of, all of the one before it: nothing depends on speed then. */
        WRITTEN
    }

    @Option(names = "--tool")
    String tool = "replay";

    @Option(names = "--data")
    List<Path> data = new ArrayList<>();

    @Option(names = "--trace")
    Path trace;

    @Option(names = "--format")
    TraceFormat format = TraceFormat.MOONCAKE;

    @Option(names = "--block-tokens")
    int blockTokens = TraceReader.BLOCK_TOKENS_DEFAULT;

    /** Of a trace the first so many, of generated chats all. */
    @Option(names = "--limit")
    long limit = Long.MAX_VALUE;

    @Option(names = "--block-bytes")
    int blockBytes;

    @Option(names = "--pool-bytes")
    long poolBytes;

    @Option(names = "--cap-bytes")
    long capBytes;

    /** 0: chosen by the store. */
    @Option(names = "--segment-bytes")
    long segmentBytes;

    @Option(names = "--policy")
    EvictionPolicy policy = EvictionPolicy.SECOND_CHANCE;

    @Option(names = "--admission")
    AdmissionPolicy admission = AdmissionPolicy.ALL;

    @Option(names = "--admission-price")
    double admissionPrice = 0.1;

    @Option(names = "--on-full")
    OnFull onFull = OnFull.WAIT;

    @Option(names = "--pace")
    Pace pace = Pace.NONE;

    @Option(names = "--concurrency")
    int concurrency = 1;

    @Option(names = "--seed")
    long seed = 1;

    /** The flags that say all this. */
    List<String> arguments() {
        List<String> arguments = new ArrayList<>(List.of(
                "--tool=" + tool,
                "--format=" + format,
                "--block-tokens=" + blockTokens,
                "--limit=" + limit,
                "--block-bytes=" + blockBytes,
                "--pool-bytes=" + poolBytes,
                "--cap-bytes=" + capBytes,
                "--segment-bytes=" + segmentBytes,
                "--policy=" + policy,
                "--admission=" + admission,
                "--admission-price=" + admissionPrice,
                "--on-full=" + onFull,
                "--pace=" + pace,
                "--concurrency=" + concurrency,
                "--seed=" + seed));
        data.forEach(folder -> arguments.add("--data=" + folder.toAbsolutePath()));
        if (trace != null) {
            arguments.add("--trace=" + trace.toAbsolutePath());
        }
        return arguments;
    }

    /** Reads or generates the requests: the same in parent and child. */
    Workload workload() {
        return trace != null
                ? Workload.read(trace, format, blockTokens, limit)
                : Chats.generate(seed, Math.toIntExact(limit), poolBytes / blockBytes, capBytes / blockBytes);
    }

    /** How the store is opened. */
    StoreOptions store(Workload workload) {
        return StoreOptions.inFolders(data)
                .poolBytes(poolBytes)
                .capBytes(capBytes)
                .segmentBytes(segmentBytes)
                .blockBytesLargest(blockBytes)
                .policy(policy)
                .admission(admission)
                .admissionPrice(admissionPrice)
                .queryBlocksMax(Math.max(1 << 14, workload.longest()));
    }
}
