package io.orbitkv.cli;

import io.orbitkv.kit.Gen;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** A small trace of the published form: chats that share a beginning and come back with all that was said before. */
final class SmallTrace {
    private static final int CHATS_OPEN = 12;
    private static final int BLOCK_TOKENS = 512;

    private SmallTrace() {}

    /** Writes a trace; the same seed makes the same one. */
    static Path write(Path file, long seed, int requests) throws IOException {
        return write(file, seed, requests, CHATS_OPEN);
    }

    /** The same with so many chats at a time. */
    static Path write(Path file, long seed, int requests, int chatsOpen) throws IOException {
        Gen gen = new Gen(seed);
        List<List<Long>> chats = new ArrayList<>();
        List<String> lines = new ArrayList<>();
        long next = 1;
        for (int request = 0; request < requests; request++) {
            if (chats.size() < chatsOpen) {
                chats.add(new ArrayList<>(List.of(0L)));
            }
            int chat = gen.below(chats.size());
            List<Long> blocks = chats.get(chat);
            for (int more = 2 + gen.below(6); more > 0; more--) {
                blocks.add(next++);
            }
            lines.add("{\"timestamp\": " + request * 100 + ", \"input_length\": " + blocks.size() * BLOCK_TOKENS
                    + ", \"output_length\": 10, \"hash_ids\": "
                    + blocks.stream().map(String::valueOf).collect(Collectors.joining(", ", "[", "]")) + "}");
            if (blocks.size() > 40) {
                chats.remove(chat);
            }
        }
        return Files.write(file, lines);
    }
}
