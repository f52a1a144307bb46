package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code orbitkv get}: writes what is there of a file that put has kept. */
@Command(
        name = "get",
        sortOptions = false,
        description = {
            "Restores a file that 'orbitkv put' has kept and writes what it finds, from the start up to the first block"
                    + " that is missing. Every block is verified.",
            "Give the same --prompt, --model and --block-bytes as for put. Exit code 1 when a part is missing."
        })
final class GetCommand implements Callable<Integer> {
    @Mixin
    private FileOptions options;

    @Option(
            names = "--prompt",
            required = true,
            paramLabel = "<text>",
            description = "The prompt that put has used: by default the file's name.")
    private String prompt;

    @Option(
            names = "--out",
            required = true,
            paramLabel = "<file>",
            description = "Where to write; replaced if it exists.")
    private Path out;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() throws IOException {
        common.apply();
        options.check();
        Path parent = out.toAbsolutePath().getParent();
        if (Files.isDirectory(out) || !Files.isDirectory(parent)) {
            throw options.bad("cannot write to " + out + " given with --out; name a file in a folder that exists");
        }
        DataPaths.requireFolders(options.data, "name the one that put has used");
        try (StoredFile stored = StoredFile.open(options, prompt)) {
            get(stored);
        }
        return 0;
    }

    private void get(StoredFile stored) throws IOException {
        long bytes = stored.storedBytes();
        if (bytes < 0) {
            common.print(report(0, 0, 0, 0));
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS,
                    "nothing is stored under prompt '" + prompt + "', model '" + options.model + "' and blocks of "
                            + options.blockBytes + " bytes, or it was evicted; nothing was written");
        }
        int blocks = stored.blocksFor(bytes);
        stored.keys(blocks);
        long[] written = new long[1];
        int found;
        try (OutputStream target = new BufferedOutputStream(Files.newOutputStream(out))) {
            found = stored.restore(0, blocks, (number, block) -> {
                int skip = number == 0 ? StoredFile.HEADER_BYTES : 0;
                int length = (int) Math.min(block.length - skip, bytes - written[0]);
                target.write(block, skip, length);
                written[0] += length;
            });
        }
        common.print(report(bytes, written[0], blocks, found));
        System.err.println(
                found + " of " + blocks + " blocks found, " + written[0] + " of " + bytes + " bytes written to " + out);
        if (found < blocks) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS,
                    blocks - found + " of " + blocks + " blocks are missing; " + out + " holds the first " + written[0]
                            + " of " + bytes + " bytes. Put the file again");
        }
    }

    private Json report(long fileBytes, long writtenBytes, int blocks, int found) {
        return new Json()
                .put("prompt", prompt)
                .put("out", out.toString())
                .put("file_bytes", fileBytes)
                .put("written_bytes", writtenBytes)
                .put("blocks", blocks)
                .put("found_blocks", found);
    }
}
