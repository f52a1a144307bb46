package io.orbitkv.bench;

import io.orbitkv.nativeio.MemoryRegion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The kind of pages that a benchmark's memory really lies on.
 *
 * @param regionBytes bytes of the caller's memory
 * @param regionHugeBytes how many of them lie on huge pages
 * @param processHugeBytes bytes on transparent huge pages in the whole process, the store's pool among them
 */
public record Pages(long regionBytes, long regionHugeBytes, long processHugeBytes) {
    static Pages of(MemoryRegion region) {
        return new Pages(region.bytes(), region.hugeBytes(), hugeBytesOfProcess());
    }

    private static long hugeBytesOfProcess() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/smaps_rollup"))) {
                if (line.startsWith("AnonHugePages:")) {
                    return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
                }
            }
        } catch (IOException e) {
            // An old kernel: not known.
        }
        return -1;
    }
}
