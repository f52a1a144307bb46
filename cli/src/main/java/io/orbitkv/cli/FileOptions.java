package io.orbitkv.cli;

import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Where put and get keep files, and under what. */
final class FileOptions {
    private static final long CAP_BYTES_DEFAULT = 1L << 30;

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    @Option(
            names = {"--data", "--ssd-cache-path"},
            required = true,
            paramLabel = "<folder>",
            description = "The data folder. Give it once for each, where the store is spread over several.")
    List<Path> data;

    @Option(
            names = "--block-bytes",
            paramLabel = "<size>",
            defaultValue = "64kb",
            converter = Sizes.class,
            description =
                    "Bytes of a block, from 4kb to 32mb; a part of what names the blocks. Default: ${DEFAULT-VALUE}.")
    long blockBytes;

    @Option(
            names = "--model",
            paramLabel = "<name>",
            defaultValue = "orbitkv-file",
            description = "The model of the family that the blocks belong to. Default: ${DEFAULT-VALUE}.")
    String model;

    @Option(
            names = "--pool-size",
            paramLabel = "<size>",
            defaultValue = "64mb",
            converter = Sizes.class,
            description = "Bytes of host memory that hold blocks meanwhile. Default: ${DEFAULT-VALUE}.")
    long poolBytes;

    @Option(
            names = {"--cap", "--ssd-cache-capacity"},
            paramLabel = "<size>",
            converter = Sizes.class,
            description =
                    "Bytes that the data folders may take on their drives in all. Default: what a store there was made with,"
                            + " 1gb for a new one.")
    private Long capBytes;

    /** The cap to open a folder with: 0 where a store there decides. */
    long capBytes() {
        if (capBytes != null) {
            return capBytes;
        }
        return DataPaths.holdStore(data) ? 0 : CAP_BYTES_DEFAULT;
    }

    void check() {
        Sizes.requireBlock(spec, blockBytes);
        if (model.isBlank()) {
            throw bad("--model is empty; give a name");
        }
    }

    ParameterException bad(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
