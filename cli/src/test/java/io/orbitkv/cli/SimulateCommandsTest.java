package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import io.orbitkv.nativeio.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Goal: {@code replay --simulate} and {@code plan} answer with tables, a plot and JSON as the last line of stdout, and
 * refuse what they don't understand with exit code 2, the line or flag, and the remedy.
 * Method: the commands in this process on a small trace of generated chats.
 */
class SimulateCommandsTest {
    private static final int REQUESTS = 120;

    @TempDir
    private Path folder;

    private Path trace;

    @BeforeEach
    void writeTrace() throws IOException {
        SplittableRandom random = new SplittableRandom(7);
        StringBuilder csv = new StringBuilder("time,tokens,hashes\n");
        for (int i = 0; i < REQUESTS; i++) {
            int chat = random.nextInt(12);
            int blocks = 2 + i / 6;
            csv.append(i).append(',').append(blocks * 512).append(",0");
            for (int block = 1; block < blocks; block++) {
                csv.append(' ').append(chat * 1000 + block);
            }
            csv.append('\n');
        }
        trace = folder.resolve("chats.csv");
        Files.writeString(trace, csv);
    }

    @Test
    void simulatesEveryPolicy() throws IOException {
        Path plot = folder.resolve("plot.svg");
        CommandRun run = CommandRun.of(
                "replay",
                "--simulate",
                "--trace=" + trace,
                "--format=csv",
                "--capacities=10%,100blocks,16mb",
                "--plot=" + plot,
                "--json");
        assertEquals(0, run.exitCode(), run.err());
        requireJson(run.lastLine());
        assertEquals(1, run.out().strip().lines().count(), "stdout holds the JSON alone");
        for (String policy : new String[] {"belady", "second-chance-8", "segment-lru-32", "two-tiers-duel"}) {
            assertTrue(run.lastLine().contains("\"policy\":\"" + policy + "\""), policy);
            assertTrue(run.err().contains(policy), policy);
        }
        assertTrue(run.lastLine().contains("\"capacity_blocks\":256"), "16mb of 64 KiB blocks");
        assertTrue(run.lastLine().contains("\"requests\":" + REQUESTS), run.lastLine());
        String svg = Files.readString(plot);
        assertTrue(svg.startsWith("<svg ") && svg.contains("belady"), svg);
        assertFalse(svg.contains("NaN"), svg);
    }

    @Test
    void simulatesTheStoreThatTheSizesDescribe() {
        CommandRun run = CommandRun.of(
                "replay",
                "--simulate",
                "--trace=" + trace,
                "--format=csv",
                "--pool-size=8mb",
                "--ssd-cache-capacity=64mb",
                "--json");
        assertEquals(0, run.exitCode(), run.err());
        assertTrue(run.lastLine().contains("\"store\":{\"pool_bytes\":8388608"), run.lastLine());
    }

    @Test
    void plansWithAReason() throws IOException {
        Path plot = folder.resolve("plan.svg");
        CommandRun run = CommandRun.of(
                "plan",
                "--trace=" + trace,
                "--format=csv",
                "--block-bytes=64mb",
                "--pool-sizes=1gb,2gb",
                "--drive-sizes=none,4gb,30%,100%",
                "--plot=" + plot,
                "--json");
        assertEquals(0, run.exitCode(), run.err());
        requireJson(run.lastLine());
        assertEquals(8, count(run.lastLine().replaceAll("\"frontier\".*", ""), "\"pool_points_per_gib\""));
        assertTrue(run.lastLine().contains("\"recommended\":{\"pool_bytes\":"), run.lastLine());
        assertTrue(run.lastLine().contains("\"reason\":\"Take a pool of "), run.lastLine());
        assertTrue(Files.readString(plot).contains("pool of 2.00 GiB"), "plot");
    }

    private static int count(String text, String part) {
        Matcher matcher = Pattern.compile(Pattern.quote(part)).matcher(text);
        int found = 0;
        while (matcher.find()) {
            found++;
        }
        return found;
    }

    /** Shares that come to less than a block are asked for by nobody but the defaults. */
    @Test
    void aTraceOfOneBlockHasASimulation() throws IOException {
        Path one = folder.resolve("one.csv");
        Files.writeString(one, "0,512,1\n1,512,1\n");
        CommandRun run = CommandRun.of("replay", "--simulate", "--trace", one.toString(), "--format", "csv");
        assertEquals(0, run.exitCode(), run.err());
        assertTrue(run.out().contains("100%"), run.out());
    }

    private static void requireJson(String line) throws IOException {
        try (JsonParser parser = new JsonFactory().createParser(line)) {
            while (parser.nextToken() != null) {
                assertTrue(parser.currentToken() != null);
            }
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "replay --trace T --capacities 5%                            | --capacities is for --simulate",
                "replay --trace T --host-share 0.5                           | --host-share is for --simulate",
                "replay --simulate --trace T --capacities 0%                 | '0%' is not a capacity",
                "replay --simulate --trace T --capacities 101%               | '101%' is not a capacity",
                "replay --simulate --trace T --capacities x                  | 'x' is not a capacity",
                "replay --simulate --trace T --capacities -1blocks           | '-1blocks' is not a capacity",
                "replay --simulate --trace T --capacities ,                  | --capacities: none is given",
                "plan --trace T --block-bytes 64mb --pool-sizes ,            | --pool-sizes: none is given",
                "plan --trace T --block-bytes 64mb --admission-price 11      | --admission-price is 11.0",
                "replay --simulate --trace T --capacities 4kb                | is less than one block",
                "replay --simulate --trace T --host-share 2                  | --host-share is 2.0",
                "replay --simulate --trace T --policy lru                    | --policy is 'lru'",
                "replay --simulate --trace T --restart-at 2                  | --restart-at is 2.0",
                "replay --simulate --trace T --restart-kind kill             | without --restart-at",
                "replay --simulate --trace T --concurrency 0                 | --concurrency is 0",
                "replay --simulate --trace T --segment-bytes 3mb             | --segment-bytes is 3145728",
                "replay --simulate --trace T --block-bytes 1kb               | --block-bytes is 1024",
                "replay --simulate --trace T --block-tokens 0                | --block-tokens is 0",
                "replay --simulate --trace T --block-tokens 64               | line 2: the line has",
                "replay --simulate --trace T --limit 1                       | --limit is 1",
                "replay --simulate --trace T --format xml                    | --format",
                "replay --simulate --trace T --format mooncake               | line 1: the line is not JSON",
                "replay --simulate --trace none                              | cannot read the trace none",
                "replay --simulate                                           | --trace",
                "replay --simulate --trace T --plot /no/such/folder/p.svg    | cannot write the plot to",
                "plan --trace T                                              | --block-bytes",
                "plan --trace T --block-bytes 1                              | --block-bytes is 1 bytes",
                "plan --trace T --block-bytes 64mb --pool-price 0            | --pool-price is 0.0",
                "plan --trace T --block-bytes 64mb --drive-price x           | --drive-price",
                "plan --trace T --block-bytes 64mb --points-per-doubling 101 | --points-per-doubling is 101.0",
                "plan --trace T --block-bytes 64mb --pool-sizes 1mb          | --pool-sizes: 1mb holds 0 blocks",
                "plan --trace T --block-bytes 64mb --drive-sizes 1mb         | --drive-sizes: 1mb holds 0 blocks",
                "plan --trace T --block-bytes 64mb --drive-sizes 5x          | '5x' is not a capacity"
            })
    void refuses(String line, String reason) {
        String csv = line.contains("--format") ? line : line + " --format csv";
        String[] args = csv.split(" +");
        for (int i = 0; i < args.length; i++) {
            args[i] = args[i].equals("T") ? trace.toString() : args[i];
        }
        CommandRun run = CommandRun.of(args);
        assertEquals(ErrorCode.Category.USAGE.exitCode(), run.exitCode(), run.err());
        assertTrue(run.err().startsWith("orbitkv: OKV-80"), run.err());
        assertTrue(run.err().contains(reason), run.err());
    }
}
