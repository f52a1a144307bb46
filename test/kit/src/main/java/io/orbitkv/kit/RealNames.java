package io.orbitkv.kit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** The files that the catalog puts into the real folder beside a simulated drive. */
final class RealNames {
    private final Path folder;

    RealNames(Path folder) {
        this.folder = folder;
    }

    boolean exists(String name) {
        return Files.exists(folder.resolve(name));
    }

    void makeFolder(String name) {
        try {
            Files.createDirectories(folder.resolve(name));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Names of real files, and of folders that are not empty: an empty one stands for a simulated one, if at all. */
    List<String> list(String name) {
        Path listed = folder.resolve(name);
        if (!Files.isDirectory(listed)) {
            return List.of();
        }
        try (Stream<Path> paths = Files.list(listed)) {
            return paths.filter(path -> Files.isRegularFile(path) || bytesBelow(path) > 0)
                    .map(path -> path.getFileName().toString())
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    long bytes(String name) {
        Path path = folder.resolve(name);
        return Files.exists(path) ? bytesBelow(path) : 0;
    }

    boolean rename(String from, String to) {
        try {
            if (!exists(from)) {
                return false;
            }
            Files.move(folder.resolve(from), folder.resolve(to), StandardCopyOption.REPLACE_EXISTING);
            return true;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void unlink(String name) {
        try {
            Files.deleteIfExists(folder.resolve(name));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Removes everything in the folder. */
    void erase() {
        try (Stream<Path> paths = Files.walk(folder)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                if (!path.equals(folder)) {
                    Files.delete(path);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static long bytesBelow(Path path) {
        try (Stream<Path> paths = Files.walk(path)) {
            return paths.filter(Files::isRegularFile)
                    .mapToLong(file -> file.toFile().length())
                    .sum();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
