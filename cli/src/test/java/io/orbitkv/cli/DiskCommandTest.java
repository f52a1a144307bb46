package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Goal: {@code bench disk} says what is missing or wrong, with the exit code of it, and leaves nothing behind. Method: runs
 * in this process with an fio that isn't there, one that fails, and flags out of range.
 */
class DiskCommandTest {
    private static final String PROGRAM = "orbitkv.fio";

    @TempDir
    private Path folder;

    @AfterEach
    void forgetProgram() {
        System.clearProperty(PROGRAM);
    }

    private String err = "";

    private int run(String... args) {
        PrintStream before = System.err;
        ByteArrayOutputStream caught = new ByteArrayOutputStream();
        System.setErr(new PrintStream(caught, true, StandardCharsets.UTF_8));
        try {
            return Main.commandLine(args).execute(args);
        } finally {
            System.setErr(before);
            err = caught.toString(StandardCharsets.UTF_8);
        }
    }

    @Test
    void aMissingFioIsTheMachinesFaultAndHasARemedy() throws IOException {
        System.setProperty(PROGRAM, "/nonexistent/fio");
        assertEquals(3, run("bench", "disk", "--data", folder.toString()), err);
        assertTrue(err.contains("OKV-102") && err.contains("apt-get install fio"), err);
        try (Stream<Path> left = Files.list(folder)) {
            assertEquals(0, left.count());
        }
    }

    @Test
    void anFioThatFailsIsNamedWithWhatItSaid() {
        System.setProperty(PROGRAM, "/bin/false");
        assertEquals(3, run("bench", "disk", "--data", folder.toString()), err);
        assertTrue(err.contains("fio does not run"), err);
    }

    @ParameterizedTest
    @CsvSource({
        "--rounds, 4, give 5 to 1000",
        "--bytes, 100mb, multiple of 128mb",
        "--block-bytes, 96kb, power of two",
        "--block-bytes, 16mb, power of two",
        "--random-block-bytes, 2kb, power of two",
        "--data, /nonexistent, name one that exists"
    })
    void valuesOutOfRangeAreUsageErrors(String option, String value, String remedy) {
        assertEquals(2, run("bench", "disk", option, value), err);
        assertTrue(err.contains("OKV-801") && err.contains(remedy), err);
    }
}
