package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.Level;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code orbitkv put}: keeps a file as the blocks of one prompt. */
@Command(
        name = "put",
        sortOptions = false,
        description = {
            "Keeps a file in a data folder, cut into blocks, and prints their keys. Meant for trying out and for scripts:"
                    + " OrbitKV is a cache, so what is put may be evicted when the folder is full.",
            "The blocks are those of one prompt, the text of --prompt. A stored block never changes: putting other bytes"
                    + " under the same prompt, model and block size is refused with exit code 1.",
            "Returns when all blocks are durable."
        })
final class PutCommand implements Callable<Integer> {
    @Mixin
    private FileOptions options;

    @Option(
            names = "--prompt",
            paramLabel = "<text>",
            description = "The prompt that the blocks stand for. Default: the file's name, without its folder.")
    private String prompt;

    @Parameters(paramLabel = "<file>", description = "The file to keep.")
    private Path file;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() throws IOException {
        common.apply();
        options.check();
        if (!Files.isRegularFile(file) || !Files.isReadable(file)) {
            throw options.bad("cannot read " + file + "; name a file that exists and is readable");
        }
        if (DataPaths.holdStore(options.data)) {
            DataPaths.requireFolders(options.data, "name the folders that the store was made in");
        }
        String text = prompt != null ? prompt : file.getFileName().toString();
        try (FileChannel content = FileChannel.open(file, StandardOpenOption.READ);
                StoredFile stored = StoredFile.open(options, text)) {
            put(content, stored, text);
        }
        return 0;
    }

    private void put(FileChannel content, StoredFile stored, String text) throws IOException {
        long bytes = content.size();
        int blocks = stored.blocksFor(bytes);
        PromptKeys keys = stored.keys(blocks);
        int present = compare(content, bytes, stored, blocks, text);
        int taken = stored.save(content, bytes, present, blocks);
        boolean durable = stored.sync(Level.DURABLE);
        int missing = blocks - present - taken;
        Json json = new Json()
                .put("file", file.toString())
                .put("prompt", text)
                .put("file_bytes", bytes)
                .put("block_bytes", stored.blockBytes())
                .put("blocks", blocks)
                .put("present_blocks", present)
                .put("saved_blocks", taken)
                .put("dropped_blocks", missing)
                .put("durable", durable)
                .array("keys");
        for (int block = 0; block < blocks; block++) {
            json.add(keys.hex(block));
            if (!common.json) {
                System.out.println(keys.hex(block));
            }
        }
        common.print(json.end());
        System.err.println(taken + " of " + blocks + " blocks saved, " + present + " were there already; "
                + (durable ? "all durable" : "NOT durable") + " under prompt '" + text + "'");
        if (missing > 0 || !durable) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS,
                    missing + " blocks were not taken in" + (durable ? "" : ", and the drive did not flush in time")
                            + "; give a larger --pool-size or look at the drive with 'orbitkv doctor "
                            + DataPaths.arguments(options.data) + "'");
        }
    }

    /** How many of the first blocks are there; refuses if they hold other bytes. */
    private int compare(FileChannel content, long bytes, StoredFile stored, int blocks, String text) {
        byte[] expected = new byte[stored.blockBytes()];
        return stored.restore(0, blocks, (number, found) -> {
            stored.read(content, bytes, number, expected);
            if (!Arrays.equals(found, expected)) {
                throw new OrbitKvException(
                        ErrorCode.FOUND_PROBLEMS,
                        "prompt '" + text + "' holds other bytes already (block " + number
                                + " differs), and stored blocks never change; choose another --prompt");
            }
        });
    }
}
