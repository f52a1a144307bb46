package io.orbitkv.cli;

import java.nio.file.Files;
import java.nio.file.Path;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What the benchmarks on a drive have in common: where they run, and their seed. */
final class BenchOptions {
    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    @Option(
            names = {"--data", "--ssd-cache-path"},
            paramLabel = "<folder>",
            description = "A folder on the drive to measure; the benchmark makes its own folders in it and removes"
                    + " them. Default: the folder for temporary files.")
    private Path data;

    @Option(
            names = "--seed",
            paramLabel = "<n>",
            defaultValue = "1",
            description = "Seed of keys and orders, any whole number. Default: ${DEFAULT-VALUE}.")
    long seed;

    /** The folder, which exists. */
    Path folder() {
        Path folder = data != null ? data : TemporaryFolders.root();
        if (!Files.isDirectory(folder)) {
            throw bad("--data is " + folder + ", which is not a folder; name one that exists");
        }
        return folder;
    }

    void requireRounds(int rounds) {
        if (rounds < 5 || rounds > 1000) {
            throw bad("--rounds is " + rounds + "; give 5 to 1000");
        }
    }

    ParameterException bad(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
