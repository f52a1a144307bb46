package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: the Python package does what its own tests say, with the classes of this build. Method: they are run, which needs
 * {@code python3} (3.10 or newer) and nothing else.
 */
class PythonTest {
    private static final Path ROOT = Path.of(System.getProperty("orbitkv.root")).toAbsolutePath();
    private static final int TESTS_AT_LEAST = 30;
    private static final long MINUTES = 25;

    @TempDir
    Path folder;

    @Test
    void itsTestsPass() throws Exception {
        assumeTrue(!"false".equals(System.getProperty("orbitkv.python")), "skipped by -Dorbitkv.python=false");
        Path said = folder.resolve("python.txt");
        ProcessBuilder builder = new ProcessBuilder("python3", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
                .directory(ROOT.resolve("python").toFile())
                .redirectErrorStream(true)
                .redirectOutput(said.toFile());
        builder.environment().put("ORBITKV_CLASSPATH", System.getProperty("java.class.path"));
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        builder.environment().put("TMPDIR", folder.toString());
        builder.environment().put("PYTHONDONTWRITEBYTECODE", "1");
        Process python = start(builder);
        try {
            assertTrue(python.waitFor(MINUTES, TimeUnit.MINUTES), () -> "still running: " + text(said));
        } finally {
            python.descendants().forEach(ProcessHandle::destroyForcibly);
            python.destroyForcibly();
        }
        assertEquals(0, python.exitValue(), () -> text(said));
        Matcher ran = Pattern.compile("Ran (\\d+) tests").matcher(text(said));
        assertTrue(ran.find() && Integer.parseInt(ran.group(1)) >= TESTS_AT_LEAST, () -> text(said));
    }

    private static Process start(ProcessBuilder builder) {
        try {
            return builder.start();
        } catch (IOException e) {
            abort("skipped without python3, 3.10 or newer (Debian: apt-get install python3): " + e.getMessage());
            throw new AssertionError(e);
        }
    }

    private static String text(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            return "nothing was said";
        }
    }
}
