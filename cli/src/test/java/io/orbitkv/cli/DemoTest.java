package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: the launcher starts the commands as documented, and a small demo survives its own kill.
 * Method: {@code bin/orbitkv} as a real process on the classes of this build; its JSON and exit codes. The launcher is
 * also started through a symbolic link with blanks in its path, from another folder.
 */
class DemoTest {
    private static final Path ROOT = Path.of(System.getProperty("orbitkv.root", ".."));
    private static final Path FOLDERS = Path.of("target", "demo-test").toAbsolutePath();

    private Path folder;

    private record Run(int exitCode, String out, String err) {}

    @BeforeEach
    void makeFolder() throws IOException {
        Files.createDirectories(FOLDERS);
        folder = Files.createTempDirectory(FOLDERS, "with blank ");
    }

    private Run run(Path launcher, Map<String, String> environment, String... args)
            throws IOException, InterruptedException {
        Path out = folder.resolve("stdout");
        Path err = folder.resolve("stderr");
        ProcessBuilder builder = new ProcessBuilder();
        builder.command().add(launcher.toString());
        builder.command().addAll(List.of(args));
        builder.environment().put("ORBITKV_CLASSPATH", System.getProperty("java.class.path"));
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        builder.environment().putAll(environment);
        builder.directory(folder.toFile());
        Process process =
                builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
        assertTrue(process.waitFor(120, TimeUnit.SECONDS), "the command did not end");
        return new Run(
                process.exitValue(),
                Files.readString(out, StandardCharsets.UTF_8),
                Files.readString(err, StandardCharsets.UTF_8));
    }

    private static Path launcher() {
        return ROOT.resolve("bin/orbitkv").toAbsolutePath().normalize();
    }

    @Test
    void smallDemoSurvivesItsKill() throws IOException, InterruptedException {
        Path plot = folder.resolve("demo.svg");
        Run run = run(
                launcher(),
                Map.of(),
                "demo",
                "--json",
                "--requests=300",
                "--pool-size=16mb",
                "--cap=192mb",
                "--block-bytes=64kb",
                "--data=" + folder.resolve("data"),
                "--plot=" + plot);
        assertEquals(0, run.exitCode(), run.err());
        String[] lines = run.out().strip().split("\n", -1);
        assertEquals(1, lines.length, run.out());
        Map<String, Object> json = read(lines[0]);
        assertEquals(300L, json.get("requests"));
        assertEquals(0L, json.get("wrong_blocks"));
        assertEquals(0L, json.get("lost_written"));
        assertEquals("KILL", json.get("recovery.kind"));
        for (String key : List.of(
                "restored_bytes",
                "acknowledged_blocks",
                "before.requests",
                "after.requests",
                "before.hit_blocks_nvme",
                "after.hit_blocks_nvme")) {
            assertTrue((Long) json.get(key) > 0, key + " in " + lines[0]);
        }
        for (String phase : List.of("before", "after")) {
            assertTrue(
                    (Long) json.get(phase + ".drive_read_bytes") >= (Long) json.get(phase + ".nvme_hit_bytes"),
                    lines[0]);
        }
        assertTrue((Long) json.get("disk_peak_bytes") <= (Long) json.get("cap_bytes"), lines[0]);
        assertTrue(Files.size(plot) > 1000);
        Run verified = run(launcher(), Map.of(), "verify", "--data=" + folder.resolve("data"), "--json");
        assertEquals(0, verified.exitCode(), verified.err());
    }

    @Test
    void startsThroughALinkFromAnywhere() throws IOException, InterruptedException {
        Path link = Files.createSymbolicLink(folder.resolve("my orbitkv"), launcher());
        Run run = run(link, Map.of(), "--version");
        assertEquals(0, run.exitCode(), run.err());
        assertTrue(run.out().startsWith("orbitkv "), run.out());
    }

    @Test
    void badFlagsAndBadLinesAreExitCode2() throws IOException, InterruptedException {
        Run flag = run(launcher(), Map.of(), "demo", "--cap", "12q");
        assertEquals(2, flag.exitCode());
        assertTrue(flag.err().contains("OKV-801") && flag.err().contains("'12q'"), flag.err());
        Path trace = folder.resolve("trace.jsonl");
        Files.writeString(trace, "{\"timestamp\":1}\n");
        Run line = run(launcher(), Map.of(), "demo", "--trace", trace.toString());
        assertEquals(2, line.exitCode());
        assertTrue(line.err().contains("OKV-802") && line.err().contains("trace.jsonl, line 1"), line.err());
    }

    @Test
    void aMissingJavaIsExitCode3() throws IOException, InterruptedException {
        Run run = run(launcher(), Map.of("JAVA_HOME", folder.toString()), "--version");
        assertEquals(3, run.exitCode());
        assertTrue(run.err().contains("JAVA_HOME"), run.err());
    }

    /** The numbers, strings and truth values of an object, by their path with points between. */
    private static Map<String, Object> read(String text) throws IOException {
        Map<String, Object> values = new HashMap<>();
        Deque<String> path = new ArrayDeque<>();
        try (JsonParser parser = new JsonFactory().createParser(text)) {
            for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
                String name = path.isEmpty() ? "" : path.peek();
                switch (token) {
                    case START_OBJECT ->
                        path.push(name + (parser.currentName() == null ? "" : parser.currentName() + "."));
                    case END_OBJECT -> path.pop();
                    case VALUE_NUMBER_INT -> values.put(name + parser.currentName(), parser.getLongValue());
                    case VALUE_NUMBER_FLOAT -> values.put(name + parser.currentName(), parser.getDoubleValue());
                    case VALUE_STRING -> values.put(name + parser.currentName(), parser.getText());
                    default -> {}
                }
            }
        }
        return values;
    }
}
