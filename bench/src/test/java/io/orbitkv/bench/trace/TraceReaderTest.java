package io.orbitkv.bench.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
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
class TraceReaderTest {
    private static final String GOOD =
            "{\"timestamp\": 27, \"input_length\": 1000, \"output_length\": 52, \"hash_ids\": [0, 1]}\n";

    @TempDir
    private Path folder;

    @Test
    void readsRequests() throws IOException {
        String second = "{\"hash_ids\":[0,9223372036854775807,5],\"more\":{\"x\":[1]},\"output_length\":0,"
                + "\"input_length\":1536,\"timestamp\":27.5}\r\n";
        TraceRequest request = new TraceRequest();
        try (TraceReader reader = open(file(GOOD + "\n" + second), TraceFormat.MOONCAKE, Long.MAX_VALUE)) {
            assertTrue(reader.next(request));
            assertEquals(2, request.blocks());
            assertEquals(1000, request.promptTokens());
            assertTrue(reader.next(request));
            assertEquals(3, request.blocks());
            assertEquals(27.5, request.timeMillis());
            assertEquals(Long.MAX_VALUE, request.id(1));
            assertFalse(reader.next(request));
            assertEquals(0, request.blocks());
            assertEquals(2, reader.requests());
        }
    }

    @Test
    void readsCsv() throws IOException {
        String text = "time,tokens,hashes\n0,1000,17 0x2a\n\n0.5, 512,18446744073709551615\n"
                + "1e3,512,0x0123456789abcdef0123456789abcdef\n";
        TraceRequest request = new TraceRequest();
        try (TraceReader reader = open(file(text), TraceFormat.CSV, Long.MAX_VALUE)) {
            assertTrue(reader.next(request));
            assertEquals(17, request.id(0));
            assertEquals(42, request.id(1));
            assertTrue(reader.next(request));
            assertEquals(-1, request.id(0));
            assertEquals(512, request.promptTokens());
            assertTrue(reader.next(request));
            assertEquals(1000, request.timeMillis());
            assertNotEquals(0x0123456789abcdefL, request.id(0));
            assertFalse(reader.next(request));
        }
    }

    @Test
    void takesAByteOrderMark() throws IOException {
        TraceRequest request = new TraceRequest();
        try (TraceReader reader = open(file("\ufeff" + GOOD), TraceFormat.MOONCAKE, 2)) {
            assertTrue(reader.next(request));
            assertFalse(reader.next(request));
        }
    }

    @Test
    void stopsAtTheLimit() throws IOException {
        TraceRequest request = new TraceRequest();
        try (TraceReader reader = open(file(GOOD + GOOD + "nonsense"), TraceFormat.MOONCAKE, 2)) {
            assertTrue(reader.next(request));
            assertTrue(reader.next(request));
            assertFalse(reader.next(request));
        }
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
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,9223372036854775808]} | a hash id of 9223372036854775808; it has to be a whole number from 0 to 9223372036854775807",
                "{\"timestamp\":1,\"input_length\":-1,\"output_length\":5,\"hash_ids\":[1,2]} | input_length -1",
                "{\"timestamp\":\"x\",\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} | timestamp of x",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":null,\"hash_ids\":[1,2]} | output_length null",
                "{\"timestamp\":1,\"input_length\":9000,\"output_length\":5,\"hash_ids\":[1,2]} | 18 blocks of 512",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} x | is not JSON",
                "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} {} | goes on after",
                "{\"timestamp\":26,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} | 26.0 ms after one of 27.0",
                "{\"timestamp\":1e16,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} | timestamp of 1e16",
                "{\"timestamp\":1e999,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} | timestamp of 1e999",
                "{\"timestamp\":1,\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[1,2]} | Duplicate",
                "{\"timestamp\":1,\"input_length\":99999999999999999999,\"output_length\":5,\"hash_ids\":[1]} | input_length"
            })
    void namesTheBadLine(String line, String reason) throws IOException {
        requireBadThirdLine(file(GOOD + GOOD + line + "\n" + GOOD), TraceFormat.MOONCAKE, reason);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "nonsense         | has 0 commas",
                "5,1000,1,2       | has 3 commas",
                "time,tokens,hashes | has a time of 'time'",
                "NaN,1000,1 2     | has a time of 'NaN'",
                "-1,1000,1 2      | has a time of '-1'",
                "3,1000,1 2       | 3.0 ms after one of 4.0 ms",
                "5,x,1 2          | has 'x' tokens",
                "5,-3,1 2         | has '-3' tokens",
                "5,99999999999,1 2 | has '99999999999' tokens",
                "5,1000,1 y       | has a hash of 'y'",
                "5,1000,1 0x      | has a hash of '0x'",
                "5,1000,1 -2      | has a hash of '-2'",
                "5,1000,1 99999999999999999999 | has a hash of '9999",
                "5,1000,          | has 0 hash_ids",
                "5,9000,1 2       | 18 blocks of 512"
            })
    void namesTheBadLineOfCsv(String line, String reason) throws IOException {
        requireBadThirdLine(file("0,1000,1 2\n4,1000,1 2\n" + line + "\n"), TraceFormat.CSV, reason);
    }

    private static void requireBadThirdLine(Path file, TraceFormat format, String reason) {
        OrbitKvException e = assertThrows(OrbitKvException.class, () -> readAll(file, format));
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

    @Test
    void refusesALineThatNoRequestNeeds() throws IOException {
        Path file = folder.resolve("long");
        Files.write(file, new byte[Lines.LINE_BYTES_MAX + 1]);
        OrbitKvException e = assertThrows(OrbitKvException.class, () -> readAll(file, TraceFormat.CSV));
        assertEquals(ErrorCode.BAD_INPUT_LINE, e.code());
        assertTrue(e.getMessage().contains("line 1: the line is longer than"), e.getMessage());
    }

    private static ErrorCode codeOf(Path file) {
        return assertThrows(OrbitKvException.class, () -> readAll(file, TraceFormat.MOONCAKE))
                .code();
    }

    private static void readAll(Path file, TraceFormat format) {
        TraceRequest request = new TraceRequest();
        try (TraceReader reader = open(file, format, Long.MAX_VALUE)) {
            while (reader.next(request)) {
                assertTrue(request.blocks() > 0);
            }
        }
    }

    private static TraceReader open(Path file, TraceFormat format, long requestsMax) {
        return TraceReader.open(file, format, TraceReader.BLOCK_TOKENS_DEFAULT, requestsMax);
    }

    private Path file(String text) throws IOException {
        Path file = folder.resolve("trace.jsonl");
        Files.write(file, text.getBytes(StandardCharsets.UTF_8));
        return file;
    }
}
