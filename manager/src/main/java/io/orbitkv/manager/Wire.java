package io.orbitkv.manager;

import io.orbitkv.manager.wire.MessageHeaderDecoder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;

/**
 * How messages are framed.
 *
 * <pre>
 * 0 4 length   of what follows, little-endian
 * 4 8 header   of SBE: block length, template, schema, version
 * 12  message
 * </pre>
 */
final class Wire {
    /** The only version there is so far. */
    static final int PROTOCOL = 1;

    static final int LENGTH_BYTES = Integer.BYTES;
    static final int HEADER_BYTES = MessageHeaderDecoder.ENCODED_LENGTH;

    /** Where a message starts in its frame. */
    static final int MESSAGE = LENGTH_BYTES + HEADER_BYTES;

    /** Most bytes of a frame behind its length. */
    static final int FRAME_BYTES_MAX = 1 << 20;

    /** Most blocks of one message. */
    static final int BLOCKS_MAX = 16_384;

    static final int KEY_BYTES = 32;

    /** Of a key, what names a block in events. */
    static final int HEAD_BYTES = 16;

    private Wire() {}

    /** Byte {@code b} of a key that was taken apart into little-endian longs, from one of them on. */
    static short keyByte(long[] longs, int from, int b) {
        return (short) ((longs[from + b / Long.BYTES] >>> (b % Long.BYTES * Byte.SIZE)) & 0xFF);
    }

    /** How many keys so many bytes are. */
    static int keys(int bytes) {
        if (bytes % KEY_BYTES != 0 || bytes > BLOCKS_MAX * KEY_BYTES) {
            throw badFrame(
                    "keys take " + KEY_BYTES + " bytes each, " + BLOCKS_MAX + " at most; got " + bytes + " bytes");
        }
        return bytes / KEY_BYTES;
    }

    static OrbitKvException badFrame(String why) {
        return new OrbitKvException(ErrorCode.BAD_FRAME, why);
    }
}
