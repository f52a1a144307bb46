package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Goal: documents say what the code does. Method: they are read beside it. */
class DocumentsTest {
    private static final Path ROOT = Path.of(System.getProperty("orbitkv.root"));

    @Test
    void operationsExplainEveryErrorCode() throws IOException {
        String operations = Files.readString(ROOT.resolve("docs/operations.md"));
        for (ErrorCode code : ErrorCode.values()) {
            String row =
                    "| " + code.label() + " | " + code + " | " + code.category().exitCode() + " |";
            assertTrue(operations.contains(row), () -> "docs/operations.md lacks a row that starts with " + row);
        }
    }

    @Test
    void everyDecisionIsListed() throws IOException {
        String list = Files.readString(ROOT.resolve("docs/decisions/README.md"));
        try (var files = Files.list(ROOT.resolve("docs/decisions"))) {
            files.map(file -> file.getFileName().toString())
                    .filter(name -> !name.equals("README.md"))
                    .forEach(name -> assertTrue(list.contains("(" + name + ")"), () -> name + " is not listed"));
        }
    }

    /** A fault that was reported of others counts as tested only while its test is there. */
    @Test
    void everyTestOfTheScoreboardExists() throws IOException {
        Matcher named = Pattern.compile("`([A-Z]\\w+)\\.(\\w+)`")
                .matcher(Files.readString(ROOT.resolve("docs/reported-faults.md")));
        Map<String, String> sources = testSources();
        int tests = 0;
        while (named.find()) {
            String source = sources.getOrDefault(named.group(1) + ".java", "");
            assertTrue(source.contains(" " + named.group(2) + "("), () -> "there is no test " + named.group());
            tests++;
        }
        assertTrue(tests > 20, tests + " tests are named");
    }

    private static Map<String, String> testSources() throws IOException {
        Map<String, String> sources = new HashMap<>();
        try (var files = Files.walk(ROOT)) {
            for (Path file : (Iterable<Path>) files.filter(f -> f.toString().contains("/src/test/java/"))
                    .filter(f -> f.toString().endsWith("Test.java"))::iterator) {
                sources.put(file.getFileName().toString(), Files.readString(file));
            }
        }
        return sources;
    }
}
