package io.orbitkv.store;

import io.orbitkv.index.KeyChain;
import io.orbitkv.kit.Gen;
import java.util.Arrays;
import org.agrona.concurrent.UnsafeBuffer;

/** Tokens of whole blocks and the chained keys of these blocks. Immutable. */
final class Prompt {
    static final int BLOCK_TOKENS = 2;
    static final int KEY_BYTES = 32;

    private final int[] tokens;
    final UnsafeBuffer keys;

    private Prompt(int[] tokens) {
        this.tokens = tokens;
        this.keys = new UnsafeBuffer(new byte[blocks() * KEY_BYTES]);
        new KeyChain(BLOCK_TOKENS).keys(null, 0, tokens, 0, blocks(), keys, 0);
    }

    static Prompt random(Gen gen, int blocks) {
        int[] tokens = new int[blocks * BLOCK_TOKENS];
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] = gen.nextInt();
        }
        return new Prompt(tokens);
    }

    /** The same first blocks, then others. */
    Prompt fork(Gen gen, int shared, int blocks) {
        int[] forked = Arrays.copyOf(tokens, blocks * BLOCK_TOKENS);
        for (int i = shared * BLOCK_TOKENS; i < forked.length; i++) {
            forked[i] = gen.nextInt();
        }
        return new Prompt(forked);
    }

    int blocks() {
        return tokens.length / BLOCK_TOKENS;
    }

    static int keyOffset(int block) {
        return block * KEY_BYTES;
    }

    /** What payloads depend on. */
    long key0(int block) {
        return keys.getLong(keyOffset(block));
    }

    /** The key of a block as something that can stand in a map. */
    String key(int block) {
        byte[] key = new byte[KEY_BYTES];
        keys.getBytes(keyOffset(block), key);
        return new String(key, java.nio.charset.StandardCharsets.ISO_8859_1);
    }
}
