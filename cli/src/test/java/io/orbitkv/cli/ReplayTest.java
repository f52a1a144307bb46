package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Seed;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Goal: a replay runs every request of a trace once, through a kill or a stop, with one worker or several, and counts what
 * it should; nonsense is refused before anything starts.
 * Method: small generated traces against real stores in child processes; the JSON and the exit code.
 */
@Tag("long")
class ReplayTest {
    private static final Path FOLDERS = Path.of("target", "replay-test").toAbsolutePath();
    private static final int REQUESTS = 260;

    /**
     * Of a hundred: the stores have some fifty segments of 15 blocks, and the headers of many small batches cost up to one
     * of those. On a whole trace with segments of 1 MiB the difference is below 0.1 points; see docs/qualification.md.
     */
    private static final double SIMULATION_POINTS = 4;

    private final long seed = Seed.of(ReplayTest.class);
    private Path folder;
    private Path trace;

    @BeforeEach
    void makeTrace() throws IOException {
        Files.createDirectories(FOLDERS);
        folder = Files.createTempDirectory(FOLDERS, "t");
        trace = SmallTrace.write(folder.resolve("trace.jsonl"), seed, REQUESTS);
    }

    @AfterEach
    void removeFolder() {
        TemporaryFolders.delete(folder);
    }

    private CommandRun replay(String... more) {
        List<String> arguments = new ArrayList<>(List.of(
                "replay",
                "--json",
                "--trace=" + trace,
                "--data=" + folder.resolve("data"),
                "--block-bytes=16kb",
                "--pool-size=4mb"));
        arguments.addAll(List.of(more));
        if (arguments.stream().noneMatch(argument -> argument.startsWith("--cap="))) {
            arguments.add("--cap=20mb");
        }
        return CommandRun.of(arguments.toArray(new String[0]));
    }

    private void requireWhole(CommandRun run) {
        assertEquals(0, run.exitCode(), "seed " + seed + ": " + run.err());
        assertEquals(1, run.out().strip().lines().count(), run.out());
        assertEquals(REQUESTS, run.number("requests"));
        assertEquals(0, run.number("wrong_blocks"));
        assertEquals(0, run.number("lost_written"));
        assertEquals(0, run.number("corrupt_blocks"));
        assertTrue(run.number("disk_peak_bytes") > 0, run.out());
        assertTrue(run.number("disk_peak_bytes") <= run.number("cap_bytes"), run.out());
        assertTrue(run.number("nvme_read_bytes") >= run.number("nvme_hit_bytes"), run.out());
        assertTrue(run.number("drive_read_bytes") >= run.number("nvme_hit_bytes"), run.out());
        assertEquals(run.number("hit_blocks"), run.number("host") + run.number("nvme"));
        assertEquals(run.number("hit_blocks") * 16_384, run.number("restored_bytes"));
        for (String key : List.of(
                "hit_rate", "compute_saved", "nvme_written_bytes", "nvme_admitted_bytes", "saved_bytes", "elapsed_s")) {
            assertTrue(run.number(key) > 0, key + " in " + run.out());
        }
    }

    @Test
    void nothingIsLostInAKill() throws IOException {
        Path plot = folder.resolve("replay.svg");
        CommandRun run = replay("--restart-at=0.5", "--restart-kind=kill", "--plot=" + plot);
        requireWhole(run);
        assertEquals(0, run.number("dropped_saves"));
        assertTrue(run.out().contains("\"restart\":{\"kind\":\"kill\",\"opened_as\":\"kill\""), run.out());
        assertTrue(run.number("acknowledged_blocks") > 100, run.out());
        assertTrue(run.number("first_query_ms") > 0 && run.number("index_ms") > 0, run.out());
        assertTrue(run.number("nvme") > 0, run.out());
        assertTrue(Files.readString(plot).contains("kill -9"));
    }

    @Test
    void aStopLosesNothingAndSeveralWorkersServeEachRequestOnce() {
        CommandRun run = replay("--restart-at=0.4", "--restart-kind=clean", "--concurrency=3", "--on-full=drop");
        requireWhole(run);
        assertTrue(run.out().contains("\"restart\":{\"kind\":\"clean\",\"opened_as\":\"clean\""), run.out());
        assertTrue(run.out().contains("\"before\":{\"requests\":104,"), run.out());
    }

    @Test
    void workersThatWereKilledServeTheirRequestsAgain() {
        CommandRun run = replay("--restart-at=0.5", "--concurrency=4", "--policy=segment-lru");
        requireWhole(run);
        assertEquals(0, run.number("dropped_saves"));
        assertTrue(run.out().contains("\"policy\":\"segment-lru\",\"admission\":\"all\""), run.out());
    }

    /** A store that has the time to write after each request is what the simulator describes. */
    @ParameterizedTest
    @CsvSource({"10mb, all", "18mb, all"})
    void hitsAreThoseOfTheSimulation(String cap, String admission) throws IOException {
        trace = SmallTrace.write(folder.resolve("chats.jsonl"), seed, 600, 60);
        String[] store = {
            "--pace=written", "--cap=" + cap, "--segment-bytes=256kb", "--ssd-write-policy=" + admission, "--simulate"
        };
        CommandRun simulated = replay(store);
        assertEquals(0, simulated.exitCode(), simulated.err());
        double expected = simulated.number("hit_rate"); // of the store: it stands before the other policies
        CommandRun real = replay(Arrays.copyOf(store, store.length - 1));
        assertEquals(0, real.exitCode(), real.err());
        assertEquals(
                expected,
                real.number("hit_rate"),
                SIMULATION_POINTS / 100,
                "seed " + seed + ": simulated and real, " + real.out());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--pool-size=100kb                           | --pool-size is 100 KiB; give at least 512 KiB",
                "--segment-bytes=1mb --pool-size=4mb         | --pool-size is 4.00 MiB; give at least 8.00 MiB",
                "--segment-bytes=64kb --block-bytes=64kb     | a segment has to hold a block",
                "--segment-bytes=100kb                       | --segment-bytes is 102400",
                "--block-bytes=64mb                          | --block-bytes",
                "--cap=1mb                                   | OKV-",
                "--restart-at=1                              | --restart-at is 1.0",
                "--restart-kind=kill                         | --restart-kind is given without --restart-at",
                "--restart-at=0.5 --restart-kind=soft        | --restart-kind is 'soft'; give one of clean, kill",
                "--concurrency=0                             | --concurrency is 0",
                "--pace=fast                                 | --pace is 'fast'; give one of none, written",
                "--on-full=maybe                             | --on-full is 'maybe'; give one of wait, drop",
                "--policy=lifo                               | --policy is 'lifo'",
                "--ssd-write-policy=some                     | --ssd-write-policy is 'some'",
                "--format=xml                                | --format",
                "--limit=1                                   | --limit is 1",
                "--block-tokens=64                           | line 1",
                "--plot=/none/such/x.svg                     | --plot",
            })
    void nonsenseIsExitCode2(String flags, String reason) {
        List<String> arguments = new ArrayList<>(List.of("replay", "--json", "--trace=" + trace));
        arguments.addAll(List.of(flags.split(" +")));
        CommandRun run = CommandRun.of(arguments.toArray(new String[0]));
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains(reason), run.err());
        assertFalse(run.err().contains("\tat "), run.err());
        assertEquals("", run.out());
    }

    @Test
    void aBadLineIsNamedWithItsNumberAndTheRemedy() throws IOException {
        List<String> lines = new ArrayList<>(Files.readAllLines(trace));
        lines.set(41, lines.get(41).replace("\"hash_ids\": [0,", "\"hash_ids\": [-1,"));
        Files.write(trace, lines);
        CommandRun run = replay();
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains("OKV-802") && run.err().contains("trace.jsonl, line 42"), run.err());
        assertTrue(run.err().contains("mend or remove the line"), run.err());
    }
}
