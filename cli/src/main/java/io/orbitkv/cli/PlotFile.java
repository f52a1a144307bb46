package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Where a plot goes. */
final class PlotFile {
    private PlotFile() {}

    /** Finds out before a run that the plot could not be written after it. */
    static void requireWritable(Path file) {
        Path parent = file.toAbsolutePath().getParent();
        if (Files.isDirectory(file) || parent == null || !Files.isDirectory(parent) || !Files.isWritable(parent)) {
            throw new OrbitKvException(
                    ErrorCode.BAD_FLAG,
                    "cannot write the plot to " + file + " given with --plot; name a file in a folder that exists and"
                            + " can be written");
        }
    }

    static void write(Path file, String svg) {
        try {
            Files.writeString(file, svg);
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE, "cannot write the plot to " + file + ": " + e + "; see --plot", e);
        }
    }
}
