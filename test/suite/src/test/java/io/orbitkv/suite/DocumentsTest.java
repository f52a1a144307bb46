package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
}
