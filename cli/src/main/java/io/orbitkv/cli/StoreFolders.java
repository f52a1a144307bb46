package io.orbitkv.cli;

import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine.Option;

/** The folders of the store that a command is about. */
final class StoreFolders {
    @Option(
            names = {"--data", "--ssd-cache-path"},
            required = true,
            paramLabel = "<folder>",
            description = "The data folder. Give it once for each, where the store is spread over several.")
    List<Path> data;
}
