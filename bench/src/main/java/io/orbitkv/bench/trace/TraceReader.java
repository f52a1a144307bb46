package io.orbitkv.bench.trace;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Path;

/**
 * Reads a trace request by request, in memory that does not grow with the file.
 *
 * <p>Strict: a line that is not understood, times that go back and lengths that contradict each other end the run with
 * the line's number, since a trace that is silently read in part would answer another question than the one asked. Empty
 * lines are skipped. Not thread-safe.
 */
public final class TraceReader implements AutoCloseable {
    /** Tokens of a block in the published traces; the last block of a prompt may be a part of one. */
    public static final int BLOCK_TOKENS_DEFAULT = 512;

    /** Longest prompt that we take, in blocks: 32 million tokens in blocks of 512. */
    public static final int REQUEST_BLOCKS_MAX = 1 << 16;

    /** Latest time of a request in milliseconds: 30,000 years, so that Unix times fit; more is another unit. */
    static final long TIME_MILLIS_MAX = 1_000_000_000_000_000L;

    private final Path file;
    private final int blockTokens;
    private final long requestsMax;
    private final LineParser parser;
    private final Lines lines;
    private long requests;
    private double lastMillis;

    private TraceReader(Path file, TraceFormat format, int blockTokens, long requestsMax) throws IOException {
        this.file = file;
        this.blockTokens = blockTokens;
        this.requestsMax = requestsMax;
        parser = format == TraceFormat.CSV ? new CsvParser() : new MooncakeParser();
        lines = new Lines(file);
    }

    /**
     * Opens a trace.
     *
     * @param file the trace
     * @param format how it is written
     * @param blockTokens tokens of a block, at least 1
     * @param requestsMax stop after that many requests, at least 1
     * @return a reader before the first request; the caller closes it
     * @throws OrbitKvException {@link ErrorCode#BAD_FLAG} if the file cannot be read, {@link ErrorCode#BAD_ARGUMENT} if a
     *     number is out of range
     */
    public static TraceReader open(Path file, TraceFormat format, int blockTokens, long requestsMax) {
        if (blockTokens < 1 || requestsMax < 1) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    blockTokens + " tokens a block and at most " + requestsMax + " requests; give at least 1 of each");
        }
        try {
            return new TraceReader(file, format, blockTokens, requestsMax);
        } catch (IOException e) {
            throw unreadable(file, e);
        }
    }

    /**
     * Reads the next request.
     *
     * @param request is filled
     * @return false at the end of the trace or at the limit; the request is then empty
     * @throws OrbitKvException {@link ErrorCode#BAD_INPUT_LINE} if a line is not understood or the file has no request,
     *     {@link ErrorCode#BAD_FLAG} if the file cannot be read
     */
    public boolean next(TraceRequest request) {
        request.clear();
        if (requests == requestsMax) {
            return false;
        }
        try {
            String text = lines.next();
            while (text != null && (text.isBlank() || !parser.parse(text, request))) {
                text = lines.next();
            }
            if (text == null) {
                return end();
            }
            requireLength(request);
            requireOrder(request);
        } catch (LineParser.BadLineException e) {
            throw bad(e.getMessage(), e);
        } catch (Lines.TooLongException e) {
            throw bad("is longer than " + Lines.LINE_BYTES_MAX + " bytes", e);
        } catch (CharacterCodingException e) {
            throw bad("is not UTF-8 text", e);
        } catch (IOException e) {
            throw unreadable(file, e);
        }
        requests++;
        return true;
    }

    /** How many requests were read so far. */
    public long requests() {
        return requests;
    }

    @Override
    public void close() {
        try {
            lines.close();
        } catch (IOException e) {
            throw unreadable(file, e);
        }
    }

    private boolean end() {
        if (requests == 0) {
            throw bad("ends the file, and there was no request before it", null);
        }
        return false;
    }

    /** As many ids as the prompt has blocks, the partial last one counted or not: otherwise the fields contradict. */
    private void requireLength(TraceRequest request) throws LineParser.BadLineException {
        int blocks = request.blocks();
        if (blocks == 0 || blocks > REQUEST_BLOCKS_MAX) {
            throw new LineParser.BadLineException(
                    "has " + blocks + " hash_ids; a request has 1 to " + REQUEST_BLOCKS_MAX);
        }
        long tokens = request.promptTokens();
        long expected = (tokens + blockTokens - 1) / blockTokens;
        if (blocks != expected && blocks != tokens / blockTokens) {
            throw new LineParser.BadLineException("has " + blocks + " hash_ids, but an input_length of " + tokens
                    + " tokens is " + expected + " blocks of " + blockTokens
                    + " (--block-tokens says how many tokens a block has)");
        }
    }

    private void requireOrder(TraceRequest request) throws LineParser.BadLineException {
        if (request.timeMillis() < lastMillis) {
            throw new LineParser.BadLineException("has a time of " + request.timeMillis() + " ms after one of "
                    + lastMillis + " ms; requests have to stand in the order of their times");
        }
        lastMillis = request.timeMillis();
    }

    private OrbitKvException bad(String what, Exception cause) {
        return new OrbitKvException(
                ErrorCode.BAD_INPUT_LINE,
                file + ", line " + Math.max(1, lines.number()) + ": the line " + what + "; " + parser.form()
                        + "; mend or remove the line",
                cause);
    }

    private static OrbitKvException unreadable(Path file, IOException e) {
        return new OrbitKvException(
                ErrorCode.BAD_FLAG,
                "cannot read the trace " + file + " given with --trace: "
                        + e.getClass().getSimpleName() + "; give a file that exists and is readable",
                e);
    }
}
