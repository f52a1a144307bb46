package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;

/** The data folders that a command was given. */
final class DataPaths {
    private DataPaths() {}

    /**
     * Refuses folders that are not there, for commands that must not make any: a slip in one path would make that folder
     * anew, and so forget the blocks of the one that was meant.
     */
    static void requireFolders(List<Path> paths, String remedy) {
        for (Path path : paths) {
            if (!Files.isDirectory(path)) {
                throw new OrbitKvException(
                        ErrorCode.FOLDER_UNUSABLE,
                        "there is no folder " + path + " given with --data; " + remedy
                                + (paths.size() == 1
                                        ? ""
                                        : "; where it is lost, make an empty one (mkdir) and open the store: its blocks only"
                                                + " are gone"));
            }
        }
    }

    /** Whether any of them holds a store already. */
    static boolean holdStore(List<Path> paths) {
        return paths.stream().anyMatch(path -> Files.exists(path.resolve("catalog/data.mdb")));
    }

    /** The paths, for messages. */
    static String text(List<Path> paths) {
        return paths.stream().map(Path::toString).collect(Collectors.joining(", "));
    }

    /** The paths as arguments of another command. */
    static String arguments(List<Path> paths) {
        return paths.stream().map(path -> "--data " + path).collect(Collectors.joining(" "));
    }
}
