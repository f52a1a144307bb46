package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Goal: a trace is read as it stands, and a line that is not understood ends with file, line number, reason and remedy.
 * Method: a good trace, and a bad third line of each kind behind two good ones.
 */
class TraceFileTest {
    private static final String GOOD =
            "{\"timestamp\": 27, \"input_length\": 1000, \"output_length\": 52, \"hash_ids\": [0, 1]}\n";

    @TempDir
    private Path folder;

    @Test
    void readsRequests() throws IOException {
        String second = "{\"hash_ids\":[0,9223372036854775807,5],\"more\":{\"x\":[1]},\"output_length\":0,"
                + "\"input_length\":1536,\"timestamp\":1.5}\n";
        Workload workload = TraceFile.read(file(GOOD + "\n" + second), Integer.MAX_VALUE);
        assertEquals(2, workload.requests());
        assertEquals(5, workload.blocks());
        assertEquals(3, workload.longest());
        assertEquals(2, workload.blocks(0));
        assertEquals(Long.MAX_VALUE, workload.id(1, 1));
    }

    @Test
    void stopsAtTheLimit() throws IOException {
        assertEquals(2, TraceFile.read(file(GOOD.repeat(5)), 2).requests());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "nonsense | is not JSON",
                "{\"timestamp\": 1 | is not JSON",
                "[1, 2] | is not a JSON object",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5} | has no hash_ids",
                "{\"timestamp\":1,\"input_length\":1000,\"hash_ids\":[1,2]} | has no output_length",
                "{\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} | has no timestamp",
                "{\"timestamp\":1,\"output_length\":5,\"hash_ids\":[1,2]} | has no input_length",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":7} | not an array",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[]} | has 0 hash_ids",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,-2]} | -2",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,\"x\"]} | whole number",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2.5]} | 2.5",
                "{\"timestamp\":1,\"input_length\":-1,\"output_length\":5,\"hash_ids\":[1,2]} | input_length -1",
                "{\"timestamp\":\"x\",\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} | timestamp of x",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":null,\"hash_ids\":[1,2]} | output_length null",
                "{\"timestamp\":1,\"input_length\":9000,\"output_length\":5,\"hash_ids\":[1,2]} | 18 blocks of 512",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} x | is not JSON",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} {} | goes on after",
                "{\"timestamp\":1,\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} | Duplicate",
                "{\"timestamp\":1,\"input_length\":99999999999999999999,\"output_length\":5,\"hash_ids\":[1]} | input_length"
            })
    void namesTheBadLine(String line, String reason) throws IOException {
        Path file = file(GOOD + GOOD + line + "\n" + GOOD);
        OrbitKvException e = assertThrows(OrbitKvException.class, () -> TraceFile.read(file, Integer.MAX_VALUE));
        assertEquals(ErrorCode.BAD_INPUT_LINE, e.code());
        assertTrue(e.getMessage().contains(file + ", line 3: "), e.getMessage());
        assertTrue(e.getMessage().contains(reason), e.getMessage());
        assertTrue(e.getMessage().contains("mend or remove the line"), e.getMessage());
    }

    @Test
    void refusesAnEmptyFileABinaryOneAndNone() throws IOException {
        assertEquals(ErrorCode.BAD_INPUT_LINE, codeOf(file("\n\n")));
        Path binary = folder.resolve("binary");
        Files.write(binary, new byte[] {'{', (byte) 0xff, (byte) 0xfe, '\n'});
        assertEquals(ErrorCode.BAD_INPUT_LINE, codeOf(binary));
        assertEquals(ErrorCode.BAD_FLAG, codeOf(folder.resolve("missing")));
        assertEquals(ErrorCode.BAD_FLAG, codeOf(folder));
    }

    private static ErrorCode codeOf(Path file) {
        return assertThrows(OrbitKvException.class, () -> TraceFile.read(file, Integer.MAX_VALUE))
                .code();
    }

    private Path file(String text) throws IOException {
        Path file = folder.resolve("trace.jsonl");
        Files.write(file, text.getBytes(StandardCharsets.UTF_8));
        return file;
    }
}
