package io.orbitkv.bench.trace;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** The lines of a file with their numbers, each decoded on its own, so that a bad byte is found in its own line. */
final class Lines implements AutoCloseable {
    /** The longest prompt that we take, with hashes of 64 digits, needs half of it. */
    static final int LINE_BYTES_MAX = 8 << 20;

    private static final int BUFFER_BYTES = 1 << 16;

    /** What some editors put before the first line. */
    private static final byte[] BYTE_ORDER_MARK = {(byte) 0xef, (byte) 0xbb, (byte) 0xbf};

    private final InputStream in;
    private final CharsetDecoder decoder = StandardCharsets.UTF_8
            .newDecoder()
            .onMalformedInput(CodingErrorAction.REPORT)
            .onUnmappableCharacter(CodingErrorAction.REPORT);
    private byte[] bytes = new byte[1 << 12];
    private long number;

    Lines(Path file) throws IOException {
        in = new BufferedInputStream(Files.newInputStream(file), BUFFER_BYTES);
    }

    /** The number of the line that was read last, from 1; 0 before the first. */
    long number() {
        return number;
    }

    /**
     * Reads the next line.
     *
     * @return its text without the line end, or null at the end of the file
     * @throws CharacterCodingException if it is not UTF-8
     * @throws TooLongException if it is longer than {@link #LINE_BYTES_MAX}
     */
    String next() throws IOException {
        int length = 0;
        int b = in.read();
        if (b < 0) {
            return null;
        }
        number++;
        for (; b >= 0 && b != '\n'; b = in.read()) {
            if (length == bytes.length) {
                if (length == LINE_BYTES_MAX) {
                    throw new TooLongException();
                }
                bytes = Arrays.copyOf(bytes, 2 * length);
            }
            bytes[length++] = (byte) b;
        }
        if (length > 0 && bytes[length - 1] == '\r') {
            length--;
        }
        int start = number == 1 && hasByteOrderMark(length) ? BYTE_ORDER_MARK.length : 0;
        CharBuffer text = decoder.decode(ByteBuffer.wrap(bytes, start, length - start));
        return text.toString();
    }

    private boolean hasByteOrderMark(int length) {
        return length >= BYTE_ORDER_MARK.length
                && Arrays.equals(bytes, 0, BYTE_ORDER_MARK.length, BYTE_ORDER_MARK, 0, BYTE_ORDER_MARK.length);
    }

    @Override
    public void close() throws IOException {
        in.close();
    }

    /** A line that no request can need. */
    static final class TooLongException extends IOException {
        private static final long serialVersionUID = 1L;
    }
}
