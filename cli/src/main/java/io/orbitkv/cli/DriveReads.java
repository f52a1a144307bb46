package io.orbitkv.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** What this process has read from drives, as the kernel counts it. */
final class DriveReads {
    private static final Path IO = Path.of("/proc/self/io");
    private static final String NAME = "read_bytes: ";

    private DriveReads() {}

    /** Bytes since the process began. */
    static long bytes() {
        try {
            for (String line : Files.readAllLines(IO)) {
                if (line.startsWith(NAME)) {
                    return Long.parseLong(line.substring(NAME.length()).trim());
                }
            }
            return 0;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
