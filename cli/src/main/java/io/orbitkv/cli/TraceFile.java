package io.orbitkv.cli;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Reads a trace: one JSON object a line with {@code timestamp} (ms), {@code input_length} and {@code output_length}
 * (tokens) and {@code hash_ids} (a number for each 512-token block of the prompt, in order).
 *
 * <p>Strict: a line that is anything else ends the run with its number, since a trace that is silently read in part
 * would answer another question than the one asked. Empty lines are skipped.
 */
final class TraceFile {
    /** Tokens of a block in the published traces; the last block of a prompt may be a part of one. */
    static final int BLOCK_TOKENS = 512;

    /** Longest prompt that we take, in blocks: 32 million tokens. */
    static final int REQUEST_BLOCKS_MAX = 1 << 16;

    private static final String FORM =
            "each line has to be like {\"timestamp\": 0, \"input_length\": 1000, \"output_length\": 50,"
                    + " \"hash_ids\": [0, 1]}";

    private final Path file;
    private final JsonFactory json = JsonFactory.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .build();
    private final Workload.Builder workload = new Workload.Builder();
    private int line;

    private TraceFile(Path file) {
        this.file = file;
    }

    /**
     * Reads requests.
     *
     * @param file the trace
     * @param requestsMax stop after that many requests
     * @return at least one request
     */
    static Workload read(Path file, int requestsMax) {
        return new TraceFile(file).read(requestsMax);
    }

    private Workload read(int requestsMax) {
        try (BufferedReader reader = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
            while (workload.requests() < requestsMax) {
                String text = reader.readLine();
                if (text == null) {
                    break;
                }
                line++;
                if (!text.isBlank()) {
                    request(text);
                }
            }
        } catch (CharacterCodingException e) {
            throw bad("is not UTF-8 text", e);
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.BAD_FLAG,
                    "cannot read the trace " + file + " given with --trace: "
                            + e.getClass().getSimpleName() + "; give a file that exists and is readable",
                    e);
        }
        if (workload.requests() == 0) {
            line = Math.max(line, 1);
            throw bad("ends the file, and there was no request before it", null);
        }
        return workload.build();
    }

    private void request(String text) throws IOException {
        long inputTokens = -1;
        boolean timestamp = false;
        boolean output = false;
        boolean ids = false;
        try (JsonParser parser = json.createParser(text)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw bad("is not a JSON object", null);
            }
            while (parser.nextToken() != JsonToken.END_OBJECT) {
                String name = parser.currentName();
                parser.nextToken();
                switch (name) {
                    case "timestamp" -> timestamp = time(parser);
                    case "input_length" -> inputTokens = whole(parser, name, 0, Integer.MAX_VALUE);
                    case "output_length" -> output = whole(parser, name, 0, Integer.MAX_VALUE) >= 0;
                    case "hash_ids" -> ids = ids(parser);
                    default -> parser.skipChildren(); // later traces may say more
                }
            }
            if (parser.nextToken() != null) {
                throw bad("goes on after its JSON object", null);
            }
        } catch (JsonProcessingException e) {
            throw bad("is not JSON: " + e.getOriginalMessage() + " (column " + column(e) + ")", e);
        }
        require(timestamp, "timestamp");
        require(inputTokens >= 0, "input_length");
        require(output, "output_length");
        require(ids, "hash_ids");
        requireLength(inputTokens);
        workload.endRequest();
    }

    private boolean time(JsonParser parser) throws IOException {
        if (!parser.currentToken().isNumeric() || parser.getDoubleValue() < 0) {
            throw bad("has a timestamp of " + parser.getText() + "; it has to be a number of ms, at least 0", null);
        }
        return true;
    }

    private long whole(JsonParser parser, String name, long smallest, long largest) throws IOException {
        if (parser.currentToken() == JsonToken.VALUE_NUMBER_INT) {
            long value = parser.getLongValue();
            if (value >= smallest && value <= largest) {
                return value;
            }
        }
        throw bad(
                "has " + name + " " + parser.getText() + "; it has to be a whole number from " + smallest + " to "
                        + largest,
                null);
    }

    private boolean ids(JsonParser parser) throws IOException {
        if (parser.currentToken() != JsonToken.START_ARRAY) {
            throw bad("has hash_ids that are not an array", null);
        }
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            workload.block(whole(parser, "a hash id of", 0, Long.MAX_VALUE));
        }
        int blocks = workload.open();
        if (blocks == 0 || blocks > REQUEST_BLOCKS_MAX) {
            throw bad("has " + blocks + " hash_ids; a request has 1 to " + REQUEST_BLOCKS_MAX, null);
        }
        return true;
    }

    /** As many ids as the prompt has blocks, the partial last one counted or not: otherwise the fields contradict. */
    private void requireLength(long inputTokens) {
        long expected = (inputTokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
        if (workload.open() != expected && workload.open() != inputTokens / BLOCK_TOKENS) {
            throw bad(
                    "has " + workload.open() + " hash_ids, but an input_length of " + inputTokens + " tokens is "
                            + expected + " blocks of " + BLOCK_TOKENS,
                    null);
        }
    }

    private void require(boolean present, String name) {
        if (!present) {
            throw bad("has no " + name, null);
        }
    }

    private static int column(JsonProcessingException e) {
        return e.getLocation() == null ? 0 : e.getLocation().getColumnNr();
    }

    private OrbitKvException bad(String what, Exception cause) {
        return new OrbitKvException(
                ErrorCode.BAD_INPUT_LINE,
                file + ", line " + line + ": the line " + what + "; " + FORM + "; mend or remove the line",
                cause);
    }
}
