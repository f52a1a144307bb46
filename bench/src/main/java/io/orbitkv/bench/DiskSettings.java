package io.orbitkv.bench;

import java.nio.file.Path;
import java.util.function.Consumer;

/**
 * What {@link DiskBench} runs on.
 *
 * @param folder where it makes its own folders; on the drive to measure
 * @param roundBytes bytes that each side transfers in a round
 * @param blockBytes the large blocks: written, restored in order, and one alone
 * @param randomBlockBytes the small blocks that are restored from random places
 * @param rounds measured rounds, at least 5; warm-up comes before
 * @param seed of keys and orders
 * @param progress is told what is being measured
 */
public record DiskSettings(
        Path folder,
        long roundBytes,
        int blockBytes,
        int randomBlockBytes,
        int rounds,
        long seed,
        Consumer<String> progress) {}
