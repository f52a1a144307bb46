package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A process that runs a class of the tests, with the flags of this Java. */
final class JavaChild {
    private static final Path ROOT = Path.of(System.getProperty("orbitkv.root"));

    private JavaChild() {}

    /** Starts it, and waits for its first line, which begins with what it is to say. */
    static Process start(String says, Class<?> main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin/java").toString(),
                "@" + ROOT.resolve("bin/jvm." + (Runtime.version().feature() < 24 ? 17 : 25)),
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-cp",
                System.getProperty("java.class.path"),
                main.getName()));
        command.addAll(List.of(arguments));
        Process child = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String said = line(child);
        assertTrue(said.startsWith(says), said);
        return child;
    }

    /** The next line of a process that was not read from before; "null" where it has none. */
    static String line(Process child) throws IOException {
        return String.valueOf(
                new BufferedReader(new InputStreamReader(child.getInputStream(), StandardCharsets.UTF_8)).readLine());
    }
}
