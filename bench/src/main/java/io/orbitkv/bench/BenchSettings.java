package io.orbitkv.bench;

import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;

/**
 * What a benchmark of the store runs on.
 *
 * @param folder where it makes its own data folders; on a drive
 * @param blockBytes block sizes to run, in bytes
 * @param rounds measured rounds, at least 5; warm-up comes before
 * @param seed of keys and orders
 * @param progress is told what is being measured
 */
public record BenchSettings(Path folder, List<Integer> blockBytes, int rounds, long seed, Consumer<String> progress) {
    /** Copies the list. */
    public BenchSettings {
        blockBytes = List.copyOf(blockBytes);
    }
}
