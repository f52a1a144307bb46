package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.TestFolders;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;

/**
 * Goal: the program in {@code docs/embedding.md} is what a reader needs: complete, short, and it works. Method: take it
 * out of the document, compile it, run it in a JVM with the documented flags, and compare what it prints with the
 * comments that say so.
 */
class EmbeddingTest {
    private static final int LINES_MAX = 40;
    private static final Path ROOT = Path.of(System.getProperty("orbitkv.root"));
    private static final Pattern PROGRAM = Pattern.compile("```java\\n(.*?)```", Pattern.DOTALL);
    private static final Pattern PRINTED = Pattern.compile("System\\.out\\.println\\(.*\\); // (.*)");
    private static final long TIMEOUT_SECONDS = 60;

    @Test
    void theProgramOfTheDocumentCompilesAndPrintsWhatItsCommentsSay() throws Exception {
        Matcher block = PROGRAM.matcher(Files.readString(ROOT.resolve("docs").resolve("embedding.md")));
        assertTrue(block.find(), "docs/embedding.md has a block of Java");
        String program = block.group(1);
        long lines = program.lines().count();
        assertTrue(lines <= LINES_MAX, "the program has " + lines + " lines");
        List<String> expected = new ArrayList<>();
        Matcher printed = PRINTED.matcher(program);
        while (printed.find()) {
            expected.add(printed.group(1).trim());
        }
        assertTrue(expected.size() >= 2, "the program says what it prints");
        try (TestFolders folders = new TestFolders()) {
            Path classes = folders.make("embedding-classes");
            compile(program, classes);
            Path output = classes.resolve("output");
            List<String> command = List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "@"
                            + ROOT.resolve("bin")
                                    .resolve("jvm." + (Runtime.version().feature() >= 25 ? "25" : "17")),
                    "-cp",
                    classes + ":" + System.getProperty("java.class.path"),
                    "Embedded",
                    folders.make("embedding-store").toString());
            Process run = new ProcessBuilder(command)
                    .redirectOutput(output.toFile())
                    .redirectError(classes.resolve("errors").toFile())
                    .start();
            try {
                assertTrue(run.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS), "the program ended");
                assertEquals(0, run.exitValue(), Files.readString(classes.resolve("errors")));
            } finally {
                run.destroyForcibly();
            }
            List<String> own = Files.readAllLines(output).stream()
                    .filter(line -> !line.contains(" INFO ") && !line.contains(" WARN "))
                    .toList(); // where the class path has no configuration for logs, they go to the console
            assertEquals(expected, own);
        }
    }

    private static void compile(String program, Path classes) throws Exception {
        Path source = Files.writeString(classes.resolve("Embedded.java"), program);
        int result = ToolProvider.getSystemJavaCompiler()
                .run(
                        null,
                        null,
                        null,
                        "-Xlint:all,-processing,-path,-classfile",
                        "-Werror",
                        "-proc:none",
                        "-d",
                        classes.toString(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        source.toString());
        assertEquals(0, result, "the program compiles without a warning");
    }
}
