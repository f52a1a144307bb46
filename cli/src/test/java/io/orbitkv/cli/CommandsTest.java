package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: every command ends with the exit code that its outcome has, says what is wrong in one line with code and remedy,
 * and prints JSON as the last line of stdout alone.
 * Method: commands in this process with stdout and stderr caught; put, get and verify on a real folder.
 */
class CommandsTest {
    private static final Path FOLDERS = Path.of("target", "commands-test");

    private Path folder;

    @BeforeEach
    void makeFolder() throws IOException {
        Files.createDirectories(FOLDERS);
        folder = Files.createTempDirectory(FOLDERS, "t"); // on the build's own drive, where direct I/O works
        folder.toFile().deleteOnExit();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "                                            | no command given",
                "nonsense                                    | nonsense",
                "demo --cap 12q                              | '12q' is not a size",
                "demo --cap 0                                | --cap",
                "demo --pool-size 1mb --block-bytes 1mb      | --pool-size",
                "demo --block-bytes 1kb                      | --block-bytes is 1024 bytes",
                "demo --block-bytes 64mb                     | --block-bytes",
                "demo --kill-at 1                            | --kill-at is 1.0",
                "demo --kill-at x                            | --kill-at",
                "demo --requests 1                           | --requests is 1",
                "demo --requests 10 --trace x                | --requests is for generated chats",
                "demo --limit 10                             | --limit is for traces",
                "demo --trace target/none --limit 1          | --limit is 1",
                "demo --trace target/none                    | cannot read the trace target/none",
                "demo --plot target/none/x.svg               | --plot",
                "demo --seed 1.5                             | --seed",
                "demo --no-such-flag                         | --no-such-flag",
                "demo --log-level loud                       | --log-level",
                "put                                         | --data",
                "put --data target/x                         | <file>",
                "put --data target/x target/none             | cannot read target/none",
                "put --data target/x --block-bytes 5 pom.xml | --block-bytes",
                "put --data target/x --model= pom.xml        | --model is empty",
                "get --data target/x --prompt p              | --out",
                "get --data target/x --prompt p --out target | --out",
                "verify                                      | --data",
                "bench                                       | no benchmark given",
                "bench nonsense                              | nonsense",
                "bench save --rounds 1                       | --rounds is 1",
                "bench save --block-bytes 64kb,5000          | --block-bytes has 5000",
                "bench restore --data target/none            | --data is target/none",
                "bench match --blocks 10                     | --blocks is 10",
                "bench match --match-blocks 0                | --match-blocks is 0",
            })
    void badUsageIsExitCode2(String line, String reason) {
        CommandRun run = CommandRun.of(line == null ? new String[0] : line.split(" +"));
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains(reason), run.err());
        assertTrue(run.err().startsWith("orbitkv: OKV-8"), run.err());
        assertFalse(run.err().contains("\tat "), run.err());
        assertEquals("", run.out());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "demo",
                "put",
                "get",
                "verify",
                "inspect",
                "explain",
                "recover",
                "migrate",
                "export",
                "import",
                "doctor",
                "bench",
                "bench save",
                "bench restore",
                "bench match"
            })
    void helpIsExitCode0(String command) {
        List<String> args =
                new ArrayList<>(List.of((command + " --help").strip().split(" ")));
        CommandRun run = CommandRun.of(args.toArray(new String[0]));
        assertEquals(0, run.exitCode(), run.err());
    }

    /** Alone beside the root, as a call of it has it, and among all others. */
    @Test
    void commandsAreCalledByTheirNames() {
        Main.commandLine().getSubcommands().forEach((name, command) -> {
            assertEquals(
                    name,
                    command.getCommand()
                            .getClass()
                            .getAnnotation(picocli.CommandLine.Command.class)
                            .name());
            assertEquals(
                    Set.of(name),
                    Main.commandLine(name, "--help").getSubcommands().keySet());
        });
        assertEquals(18, Main.commandLine("unknown").getSubcommands().size());
    }

    @Test
    void everyOptionWithAValueNamesItsDefaultOrIsRequired() {
        for (picocli.CommandLine command : Main.commandLine().getSubcommands().values()) {
            for (picocli.CommandLine.Model.OptionSpec option :
                    command.getCommandSpec().options()) {
                String text = String.join(" ", option.description());
                boolean flag = option.arity().max() == 0;
                assertTrue(
                        flag
                                || option.required()
                                || text.contains("Default:")
                                || command.getCommandSpec().usageMessage().hidden(),
                        command.getCommandName() + " " + option.longestName() + ": " + text);
            }
        }
    }

    @Test
    void putGetAndVerify() throws IOException {
        byte[] bytes = new byte[300_001];
        new SplittableRandom(7).nextBytes(bytes);
        Path file = folder.resolve("file.bin");
        Files.write(file, bytes);
        String data = "--data=" + folder.resolve("data");
        String[] put = {"put", data, "--block-bytes=16kb", "--cap=64mb", "--pool-size=16mb", "--json", file.toString()};

        CommandRun first = CommandRun.of(put);
        assertEquals(0, first.exitCode(), first.err());
        assertTrue(first.lastLine().contains("\"blocks\":19,\"present_blocks\":0,\"saved_blocks\":19"), first.out());
        CommandRun again = CommandRun.of(put);
        assertEquals(0, again.exitCode(), again.err());
        assertTrue(again.lastLine().contains("\"present_blocks\":19,\"saved_blocks\":0"), again.out());

        Path out = folder.resolve("out.bin");
        String[] get = {
            "get",
            data,
            "--block-bytes=16kb",
            "--cap=64mb",
            "--pool-size=16mb",
            "--json",
            "--prompt=file.bin",
            "--out=" + out
        };
        CommandRun got = CommandRun.of(get);
        assertEquals(0, got.exitCode(), got.err());
        assertArrayEquals(bytes, Files.readAllBytes(out));
        assertTrue(got.lastLine().contains("\"found_blocks\":19"), got.out());

        bytes[200_000]++;
        Files.write(file, bytes);
        CommandRun other = CommandRun.of(put);
        assertEquals(1, other.exitCode(), other.err());
        assertTrue(other.err().contains("holds other bytes already"), other.err());

        CommandRun verified = CommandRun.of("verify", data, "--json");
        assertEquals(0, verified.exitCode(), verified.err());
        assertTrue(
                verified.lastLine().startsWith("{") && verified.lastLine().contains("\"clean\":true"), verified.out());

        get[6] = "--prompt=unknown";
        CommandRun missing = CommandRun.of(get);
        assertEquals(1, missing.exitCode(), missing.err());
        assertTrue(missing.err().contains("nothing is stored under prompt 'unknown'"), missing.err());
    }

    @Test
    void severalDataFolders() throws IOException {
        byte[] bytes = new byte[500_001];
        new SplittableRandom(8).nextBytes(bytes);
        Path file = folder.resolve("spread.bin");
        Files.write(file, bytes);
        String first = "--data=" + folder.resolve("first");
        String second = "--ssd-cache-path=" + folder.resolve("second");
        CommandRun put = CommandRun.of("put", first, second, "--cap=64mb", "--pool-size=16mb", file.toString());
        assertEquals(0, put.exitCode(), put.err());
        Path out = folder.resolve("spread.out");
        CommandRun got = CommandRun.of("get", second, first, "--pool-size=16mb", "--prompt=spread.bin", "--out=" + out);
        assertEquals(0, got.exitCode(), got.err());
        assertArrayEquals(bytes, Files.readAllBytes(out));
        assertEquals(0, CommandRun.of("verify", first, second).exitCode());
        CommandRun doctor = CommandRun.of("doctor", first, second);
        assertTrue(doctor.out().contains("file system of " + folder.resolve("second")), doctor.out());

        CommandRun twice = CommandRun.of("verify", first, first);
        assertEquals(2, twice.exitCode(), twice.err());
        CommandRun tooFew = CommandRun.of("get", second, "--prompt=spread.bin", "--out=" + out);
        assertEquals(3, tooFew.exitCode(), tooFew.err());
        assertTrue(tooFew.err().contains("OKV-206") && tooFew.err().contains("2 data folders"), tooFew.err());

        TestFolders.remove(folder.resolve("second"));
        CommandRun missing = CommandRun.of("get", first, second, "--prompt=spread.bin", "--out=" + out);
        assertEquals(3, missing.exitCode(), missing.err());
        assertTrue(missing.err().contains("OKV-201") && missing.err().contains("mkdir"), missing.err());
        Files.createDirectory(folder.resolve("second"));
        CommandRun lost = CommandRun.of("verify", first, second);
        assertEquals(1, lost.exitCode(), lost.err());
        assertTrue(lost.out().contains("OKV-208") && lost.out().contains("its blocks are lost"), lost.out());
        CommandRun again = CommandRun.of("put", first, second, file.toString());
        assertEquals(0, again.exitCode(), again.err());
        assertEquals(0, CommandRun.of("verify", second, first).exitCode());
    }

    @Test
    void environmentIsExitCode3() throws IOException {
        Path file = folder.resolve("plain");
        Files.writeString(file, "x");
        CommandRun notAFolder = CommandRun.of("put", "--data=" + file, file.toString());
        assertEquals(3, notAFolder.exitCode(), notAFolder.err());
        assertTrue(notAFolder.err().contains("orbitkv: OKV-2"), notAFolder.err());
        assertFalse(notAFolder.err().contains("\tat "), notAFolder.err());
        CommandRun noFolder = CommandRun.of("verify", "--data=" + folder.resolve("none"));
        assertEquals(3, noFolder.exitCode(), noFolder.err());
        CommandRun noStore = CommandRun.of("verify", "--data=" + folder);
        assertEquals(3, noStore.exitCode(), noStore.err());
    }

    @Test
    void doctorOfAFolderThatIsNotThereIsExitCode3() {
        CommandRun run = CommandRun.of("doctor", "--data=" + folder.resolve("none"));
        assertEquals(3, run.exitCode(), run.err());
        assertTrue(run.err().contains("OKV-201"), run.err());
    }

    @Test
    void doctorPrintsJsonLast() {
        CommandRun run = CommandRun.of("doctor", "--json", "--data=" + folder);
        assertEquals(0, run.exitCode(), run.err());
        assertEquals(1, run.out().strip().lines().count(), run.out());
        assertTrue(run.lastLine().contains("\"name\":\"io_uring\""), run.out());
    }

    @Test
    void everyFailureHasTheExitCodeOfItsCategory() {
        PrintStream nowhere = new PrintStream(new ByteArrayOutputStream(), true, StandardCharsets.UTF_8);
        for (ErrorCode code : ErrorCode.values()) {
            assertEquals(code.category().exitCode(), Main.report(new OrbitKvException(code, "x"), nowhere));
        }
        assertEquals(4, Main.report(new IllegalStateException("x"), nowhere));
        assertEquals(3, Main.report(new OutOfMemoryError("x"), nowhere));
    }

    @Test
    void onlyBugsShowAStackTrace() {
        ByteArrayOutputStream caught = new ByteArrayOutputStream();
        PrintStream err = new PrintStream(caught, true, StandardCharsets.UTF_8);
        Main.report(new OrbitKvException(ErrorCode.FOLDER_IN_USE, "x"), err);
        assertEquals("orbitkv: OKV-202: x\n", caught.toString(StandardCharsets.UTF_8));
        Main.report(new IllegalStateException("y"), err);
        assertTrue(caught.toString(StandardCharsets.UTF_8).contains("\tat "));
    }
}
