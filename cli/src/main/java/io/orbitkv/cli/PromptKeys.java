package io.orbitkv.cli;

import io.orbitkv.index.Family;
import io.orbitkv.index.KeyChain;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The chained keys of one prompt at a time. What stands for the tokens of a block is its number, as two of 32 bits.
 *
 * <p>Reused from prompt to prompt, allocates nothing then. Not thread-safe.
 */
final class PromptKeys {
    static final int KEY_BYTES = KeyChain.KEY_BYTES;

    private static final int BLOCK_TOKENS = 2;

    private final byte[] keys;
    private final UnsafeBuffer buffer;
    private final int[] tokens;
    private final KeyChain chain = new KeyChain(BLOCK_TOKENS);

    /**
     * Makes room.
     *
     * @param blocksMax blocks of the longest prompt
     */
    PromptKeys(int blocksMax) {
        int blocks = Math.max(1, blocksMax);
        keys = new byte[Math.multiplyExact(blocks, KEY_BYTES)];
        buffer = new UnsafeBuffer(keys);
        tokens = new int[blocks * BLOCK_TOKENS];
    }

    /** The family that a tool keeps its blocks in. */
    static Family family(String tool, String model, int blockBytes) {
        return Family.builder()
                .modelId(model)
                .fingerprint(tool + ":" + model)
                .tokenizerDigest(new byte[] {0})
                .kvDtype("bytes")
                .layout("bytes".getBytes(StandardCharsets.US_ASCII))
                .engine("orbitkv-" + tool)
                .hash("orbitkv-sha256", "")
                .blockBytes(blockBytes)
                .blockTokens(BLOCK_TOKENS)
                .build();
    }

    /** Computes the keys of a request. */
    void set(Workload workload, int request) {
        int blocks = workload.blocks(request);
        for (int block = 0; block < blocks; block++) {
            long id = workload.id(request, block);
            tokens[block * BLOCK_TOKENS] = (int) id;
            tokens[block * BLOCK_TOKENS + 1] = (int) (id >>> Integer.SIZE);
        }
        chain.keys(null, 0, tokens, 0, blocks, buffer, 0);
    }

    /** Computes the first keys of a text; the blocks are numbered. */
    void set(String prompt, int blocks) {
        for (int block = 0; block < blocks; block++) {
            tokens[block * BLOCK_TOKENS] = block;
            tokens[block * BLOCK_TOKENS + 1] = 0;
        }
        UnsafeBuffer text = new UnsafeBuffer(prompt.getBytes(StandardCharsets.UTF_8));
        chain.keys(null, 0, tokens, 0, blocks, text, buffer, 0);
    }

    /** Takes one key as it is, as if it were a prompt's first. */
    void setOne(byte[] key) {
        buffer.putBytes(0, key, 0, KEY_BYTES);
    }

    /** All keys, back to back. */
    UnsafeBuffer buffer() {
        return buffer;
    }

    /** The first eight bytes of a key: what the payload of the demo depends on. */
    long head(int block) {
        return buffer.getLong(block * KEY_BYTES);
    }

    /** A key for people. */
    String hex(int block) {
        return HexFormat.of().formatHex(keys, block * KEY_BYTES, (block + 1) * KEY_BYTES);
    }
}
