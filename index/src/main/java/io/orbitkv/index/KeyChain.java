package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.security.DigestException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * Computes keys for callers that have tokens and no keys of their own.
 *
 * <pre>
 * key = SHA-256( parent key, 32 bytes (zeros before the first block) | tokens of the block, 4 bytes each, little-endian | extra )
 * </pre>
 *
 * <p>So a key names its block and everything before it. {@code extra} is whatever else the block's bytes depend on (an
 * adapter, the hash of an image); the same for all blocks of one call, empty for most.
 *
 * <p>Allocates nothing per key. Not thread-safe: each thread keeps its own.
 */
public final class KeyChain {
    /** Length of a key in bytes. */
    public static final int KEY_BYTES = PrefixIndex.KEY_BYTES;

    /** Most tokens of a block. */
    public static final int BLOCK_TOKENS_MAX = 1 << 20;

    private final int blockTokens;
    private final MessageDigest sha256 = sha256();

    /** Parent, then tokens, as they are hashed; the digest comes back into the first 32 bytes: the next parent. */
    private final byte[] input;

    private byte[] extraBytes = new byte[0];

    /**
     * Creates a chain.
     *
     * @param blockTokens tokens of a block, 1 to {@link #BLOCK_TOKENS_MAX}
     */
    public KeyChain(int blockTokens) {
        if (blockTokens < 1 || blockTokens > BLOCK_TOKENS_MAX) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "a block holds 1 to " + BLOCK_TOKENS_MAX + " tokens, asked for " + blockTokens);
        }
        this.blockTokens = blockTokens;
        this.input = new byte[KEY_BYTES + blockTokens * Integer.BYTES];
    }

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new OrbitKvException(
                    ErrorCode.NOT_AVAILABLE, "this Java runtime lacks SHA-256, which every one must have", e);
        }
    }

    /** Tokens of a block. */
    public int blockTokens() {
        return blockTokens;
    }

    /** As {@link #keys(DirectBuffer, int, int[], int, int, DirectBuffer, MutableDirectBuffer, int)} without extra. */
    public void keys(
            DirectBuffer parent,
            int parentOffset,
            int[] tokens,
            int tokensOffset,
            int blocks,
            MutableDirectBuffer into,
            int intoOffset) {
        keys(parent, parentOffset, tokens, tokensOffset, blocks, null, into, intoOffset);
    }

    /**
     * Computes the keys of consecutive blocks.
     *
     * @param parent holds the key of the block before; null before the first block
     * @param parentOffset where it begins
     * @param tokens token ids, each taken as an unsigned 32-bit number; shape {@code [blocks * blockTokens]} from
     *     {@code tokensOffset} on
     * @param tokensOffset index of the first token
     * @param blocks how many keys, at least 0
     * @param extra hashed into each of these keys, all its bytes; null for none
     * @param into takes the keys back to back, 32 bytes each
     * @param intoOffset where the first goes
     * @throws OrbitKvException {@link ErrorCode#BAD_BUFFER} when an array or buffer is too small, before any key is
     *     written
     */
    public void keys(
            DirectBuffer parent,
            int parentOffset,
            int[] tokens,
            int tokensOffset,
            int blocks,
            DirectBuffer extra,
            MutableDirectBuffer into,
            int intoOffset) {
        if (blocks < 0) {
            throw new OrbitKvException(ErrorCode.BAD_ARGUMENT, "cannot compute " + blocks + " keys");
        }
        requireRange("tokens", tokensOffset, (long) blocks * blockTokens, tokens.length);
        requireRange("bytes of the buffer for keys", intoOffset, (long) blocks * KEY_BYTES, into.capacity());
        begin(parent, parentOffset);
        int extraLength = takeExtra(extra);
        int token = tokensOffset;
        for (int block = 0; block < blocks; block++) {
            int at = KEY_BYTES;
            for (int i = 0; i < blockTokens; i++, token++) {
                int id = tokens[token];
                input[at++] = (byte) id;
                input[at++] = (byte) (id >> 8);
                input[at++] = (byte) (id >> 16);
                input[at++] = (byte) (id >> 24);
            }
            sha256.update(input, 0, input.length);
            sha256.update(extraBytes, 0, extraLength);
            digest();
            into.putBytes(intoOffset + block * KEY_BYTES, input, 0, KEY_BYTES);
        }
    }

    private void begin(DirectBuffer parent, int parentOffset) {
        if (parent == null) {
            Arrays.fill(input, 0, KEY_BYTES, (byte) 0);
        } else {
            requireRange("bytes of the parent's key", parentOffset, KEY_BYTES, parent.capacity());
            parent.getBytes(parentOffset, input, 0, KEY_BYTES);
        }
    }

    private int takeExtra(DirectBuffer extra) {
        if (extra == null) {
            return 0;
        }
        int length = extra.capacity();
        if (length > extraBytes.length) {
            extraBytes = new byte[length];
        }
        extra.getBytes(0, extraBytes, 0, length);
        return length;
    }

    private void digest() {
        try {
            sha256.digest(input, 0, KEY_BYTES);
        } catch (DigestException e) {
            throw new OrbitKvException(ErrorCode.BUG, "SHA-256 did not fit into 32 bytes", e);
        }
    }

    private static void requireRange(String what, int offset, long length, int capacity) {
        if (offset < 0 || length > (long) capacity - offset) {
            throw new OrbitKvException(
                    ErrorCode.BAD_BUFFER,
                    length + " " + what + " from " + offset + " on do not lie within the " + capacity + " given");
        }
    }
}
