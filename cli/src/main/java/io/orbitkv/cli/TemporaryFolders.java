package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Locale;
import java.util.Set;

/** Folders for a while, on a drive where the machine has one. */
final class TemporaryFolders {
    /** File systems in memory: hits on them would prove nothing about a drive. */
    private static final Set<String> MEMORY_FILE_SYSTEMS = Set.of("tmpfs", "ramfs");

    private static final Path ON_DRIVE = Path.of("/var/tmp");

    private TemporaryFolders() {}

    /** The folder for temporary files, or /var/tmp where that lies in memory. */
    static Path root() {
        Path usual = Path.of(System.getProperty("java.io.tmpdir"));
        try {
            String type = Files.getFileStore(usual).type().toLowerCase(Locale.ROOT);
            return MEMORY_FILE_SYSTEMS.contains(type) && Files.isWritable(ON_DRIVE) ? ON_DRIVE : usual;
        } catch (IOException e) {
            return usual;
        }
    }

    /** Makes a folder that nobody else has. */
    static Path create(String prefix) {
        try {
            return Files.createTempDirectory(root(), prefix);
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE,
                    "cannot make a folder in " + root() + ": " + e + "; name one with --data",
                    e);
        }
    }

    /** Removes a folder with all that is in it; says so if it can't. */
    static void delete(Path folder) {
        if (!Files.exists(folder)) {
            return;
        }
        try {
            Files.walkFileTree(folder, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                    Files.delete(file);
                    return FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult postVisitDirectory(Path visited, IOException e) throws IOException {
                    Files.delete(visited);
                    return FileVisitResult.CONTINUE;
                }
            });
        } catch (IOException e) {
            System.err.println("could not remove the temporary folder " + folder + ": " + e);
        }
    }
}
