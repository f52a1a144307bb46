package io.orbitkv.suite;

import io.orbitkv.index.Family;
import io.orbitkv.kit.Gen;
import java.nio.charset.StandardCharsets;

/**
 * A family of the crash tests. A block's payload follows from its key, its shard, and how often the family was cleared
 * before it was saved: bytes of a cleared block are wrong bytes.
 */
final class CrashFamily {
    /** Tokens of a block. */
    static final int BLOCK_TOKENS = 4;

    private static final long SHARD_STEP = 0x5851f42d4c957f2dL;

    final int number;
    final Family family;

    /** Clears so far, as far as is known. */
    int clears;

    CrashFamily(int number, int shards, int blockBytes) {
        this.number = number;
        this.family = Family.builder()
                .modelId("crash-" + number)
                .weightsDigest(new byte[32])
                .tokenizerDigest(new byte[32])
                .kvDtype("bf16")
                .layout("BLNHC".getBytes(StandardCharsets.US_ASCII))
                .blockBytes(blockBytes)
                .blockTokens(BLOCK_TOKENS)
                .tpSize(shards)
                .engine("crash")
                .hash("sha256", "0")
                .scope("crash")
                .build();
    }

    int shards() {
        return family.shards();
    }

    int blockBytes() {
        return family.blockBytes();
    }

    /** The seed of the payloads of one shard in the present life of the family. */
    long payloadSeed(int shard) {
        return payloadSeed(shard, clears);
    }

    long payloadSeed(int shard, int clearsBefore) {
        return Gen.mix(number * SHARD_STEP + shard) + clearsBefore * SHARD_STEP;
    }
}
