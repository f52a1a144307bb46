package io.orbitkv.suite;

import io.orbitkv.index.KeyChain;
import io.orbitkv.kit.Gen;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Prompts as a function of a seed: number n is fresh, or leaves an earlier one at any depth, or goes on behind it. Every
 * process that knows the seed knows all keys. Not thread-safe.
 */
final class CrashPrompts {
    /** Longest prompt, in blocks. */
    static final int BLOCKS_MAX = 24;

    private static final int FORKS_FROM_LAST = 48;
    private static final int NEW_BLOCKS_MAX = 12;
    private static final int KEY_BYTES = KeyChain.KEY_BYTES;

    /** One prompt: the keys of its blocks, and the first of them that an earlier prompt does not have. */
    record Prompt(UnsafeBuffer keys, int blocks, int firstOwn) {}

    private final long seed;
    private final KeyChain chain = new KeyChain(CrashFamily.BLOCK_TOKENS);
    private final List<Prompt> prompts = new ArrayList<>();

    CrashPrompts(long seed) {
        this.seed = seed;
    }

    Prompt get(int number) {
        while (prompts.size() <= number) {
            prompts.add(make(prompts.size()));
        }
        return prompts.get(number);
    }

    private Prompt make(int number) {
        Gen gen = new Gen(Gen.mix(seed + number));
        int shared = 0;
        Prompt from = null;
        if (number > 0 && gen.below(3) != 0) {
            from = prompts.get(number - 1 - gen.below(Math.min(number, FORKS_FROM_LAST)));
            shared = gen.below(3) == 0 ? from.blocks : gen.between(0, from.blocks);
            shared = Math.min(shared, BLOCKS_MAX - 1);
        }
        int own = gen.below(4) == 0 ? 1 : gen.between(1, Math.min(NEW_BLOCKS_MAX, BLOCKS_MAX - shared));
        int[] tokens = new int[own * CrashFamily.BLOCK_TOKENS];
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] = gen.nextInt();
        }
        UnsafeBuffer keys = new UnsafeBuffer(new byte[(shared + own) * KEY_BYTES]);
        if (shared > 0) {
            keys.putBytes(0, from.keys, 0, shared * KEY_BYTES);
        }
        chain.keys(
                shared == 0 ? null : keys,
                Math.max(0, shared - 1) * KEY_BYTES,
                tokens,
                0,
                own,
                keys,
                shared * KEY_BYTES);
        return new Prompt(keys, shared + own, shared);
    }
}
