package io.orbitkv.bench.simulate;

/**
 * What it costs to compute KV again: prefill of a model of 8 billion parameters with 32 layers of width 4096.
 *
 * <pre>
 * operations of the token at position p = 16e9 + 4 * 32 * 4096 * p      (weights, then attention to all before it)
 * </pre>
 */
public final class Compute {
    private static final double WEIGHTS = 16e9;
    private static final double ATTENTION = 4.0 * 32 * 4096;

    private Compute() {}

    /**
     * What the first tokens of a prompt cost.
     *
     * @param tokens how many; a partial last block counts with the tokens that it has
     * @return floating-point operations
     */
    public static double ofPrefix(long tokens) {
        return tokens * WEIGHTS + ATTENTION * tokens * (tokens - 1.0) / 2;
    }
}
