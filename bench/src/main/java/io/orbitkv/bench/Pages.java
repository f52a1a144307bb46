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
        return new Pages(region.bytes(), region.hugeBytes(), hugeBytesOfProcess("self"));
    }

    /** Bytes of a process, by its number, on transparent huge pages; negative where that can't be told. */
    static long hugeBytesOfProcess(String process) {
        try {
            for (String line : Files.readAllLines(Path.of("/proc", process, "smaps_rollup"))) {
                if (line.startsWith("AnonHugePages:")) {
                    return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
                }
            }
        } catch (IOException e) {
            // An old kernel, or a process that has ended: not known.
        }
        return -1;
    }
}
