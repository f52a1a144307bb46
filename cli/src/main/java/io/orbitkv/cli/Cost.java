package io.orbitkv.cli;

/**
 * What computing the blocks of a prompt costs, for the share of it that hits save: floating-point operations of a model
 * of 8 billion parameters with 32 layers of width 4096. Each token costs the same in the matrices, and in the attention
 * the more the further back it stands.
 */
final class Cost {
    private static final double TOKEN_OPERATIONS = 16e9;
    private static final double PLACE_OPERATIONS = 4.0 * 32 * 4096;

    private final double blockTokens;

    Cost(int blockTokens) {
        this.blockTokens = blockTokens;
    }

    /** Operations for the first blocks of a prompt. */
    double operations(int blocks) {
        double tokens = blocks * blockTokens;
        return tokens * TOKEN_OPERATIONS + PLACE_OPERATIONS * tokens * (tokens - 1) / 2;
    }
}
