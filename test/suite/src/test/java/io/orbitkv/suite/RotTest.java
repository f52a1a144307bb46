package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.TestFolders;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * Goal: no restored byte is ever wrong, though the drive rots while the store runs.
 * Method: a replay of a small trace that asks for the same prompts again and again, and {@link FlipPayload} in a process
 * of its own, which flips bits in its segment files meanwhile. {@code test/flip-during-replay.sh} does it with any trace.
 */
class RotTest {
    private static final Path ROOT = Path.of(System.getProperty("orbitkv.root", "../.."));
    private static final int FLIPS = 50;
    private static final int ROUNDS = 40;
    private static final int PROMPTS = 12;
    private static final int PROMPT_BLOCKS = 40;

    @Test
    void aForeignProcessThatFlipsPayloadBitsIsFoundOut() throws Exception {
        try (TestFolders folders = new TestFolders()) {
            Path folder = folders.make("rot");
            Path data = folder.resolve("data");
            Path trace = trace(folder.resolve("trace.jsonl"));
            Process flips = java(folder, "flips", FlipPayload.class.getName(), data.toString(), "" + FLIPS, "10");
            Process replay = launcher(
                    folder,
                    "replay",
                    "--json",
                    "--trace=" + trace,
                    "--data=" + data,
                    "--block-bytes=16kb",
                    "--pool-size=1mb",
                    "--segment-bytes=128kb",
                    "--cap=24mb");
            try {
                assertTrue(replay.waitFor(120, TimeUnit.SECONDS), "the replay did not end");
                String out = Files.readString(folder.resolve("replay.out"), StandardCharsets.UTF_8);
                String err = Files.readString(folder.resolve("replay.err"), StandardCharsets.UTF_8);
                assertEquals(0, replay.exitValue(), err);
                assertEquals(0, number(out, "wrong_blocks"), out);
                assertEquals(ROUNDS * PROMPTS, number(out, "requests"), out);
                assertTrue(number(out, "corrupt_blocks") > 0, "no damage was met: " + out);
                assertTrue(err.contains("wrong bytes on the drive at segment"), err);
            } finally {
                flips.destroyForcibly();
                replay.destroyForcibly();
            }
        }
    }

    /** Rounds over the same prompts: more than the pool holds, less than the drive does, so that every round reads it. */
    private static Path trace(Path file) throws IOException {
        List<String> lines = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            for (int prompt = 0; prompt < PROMPTS; prompt++) {
                StringBuilder ids = new StringBuilder();
                for (int block = 0; block < PROMPT_BLOCKS; block++) {
                    ids.append(block == 0 ? "" : ", ").append(prompt * PROMPT_BLOCKS + block);
                }
                lines.add("{\"timestamp\": " + lines.size() + ", \"input_length\": " + PROMPT_BLOCKS * 512
                        + ", \"output_length\": 1, \"hash_ids\": [" + ids + "]}");
            }
        }
        return Files.write(file, lines);
    }

    private static Process launcher(Path folder, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(
                List.of(ROOT.resolve("bin/orbitkv").toAbsolutePath().normalize().toString()));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("ORBITKV_CLASSPATH", System.getProperty("java.class.path"));
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        return builder.redirectOutput(folder.resolve("replay.out").toFile())
                .redirectError(folder.resolve("replay.err").toFile())
                .start();
    }

    private static Process java(Path folder, String name, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xshare:auto",
                "-cp",
                System.getProperty("java.class.path")));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve(name + ".out").toFile())
                .start();
    }

    private static long number(String json, String key) {
        Matcher matcher = Pattern.compile("\"" + key + "\":([0-9]+)").matcher(json);
        assertTrue(matcher.find(), key + " in " + json);
        return Long.parseLong(matcher.group(1));
    }
}
