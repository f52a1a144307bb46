package io.orbitkv.nativeio;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** A folder under target/, which lies on a real file system, gone when it is closed. */
final class TestFolder implements AutoCloseable {
    private final Path path;

    TestFolder() {
        try {
            Path target = Path.of("target").toAbsolutePath();
            Files.createDirectories(target);
            path = Files.createTempDirectory(target, "folder-");
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    Path path() {
        return path;
    }

    Path data() {
        return path.resolve("data");
    }

    @Override
    public void close() {
        try (Stream<Path> all = Files.walk(path)) {
            for (Path one : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(one);
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
