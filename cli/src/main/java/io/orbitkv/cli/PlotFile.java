package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Where a command writes its plot. */
final class PlotFile {
    private PlotFile() {}

    /** What is wrong with the file, found out before a run that ends with a plot; null when it can be written. */
    static String problem(Path file) {
        Path parent = file.toAbsolutePath().getParent();
        boolean good = !Files.isDirectory(file) && Files.isDirectory(parent) && Files.isWritable(parent);
        return good
                ? null
                : "cannot write the plot to " + file + " given with --plot; name a file in a folder that exists and can"
                        + " be written";
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
