package io.orbitkv.kit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * Temporary folders on a real file system: below the module's {@code target}, which lies on a drive with direct I/O
 * where {@code /tmp} often does not. Closing removes them with all that is in them.
 */
public final class TestFolders implements AutoCloseable {
    private static final Path BASE = Path.of("target", "test-folders").toAbsolutePath();

    private final List<Path> made = new ArrayList<>();

    /** Creates an owner of folders, with none yet. */
    public TestFolders() {}

    /**
     * Makes an empty folder of mode 0700.
     *
     * @param name what its name starts with
     * @return its absolute path
     */
    public Path make(String name) {
        try {
            Files.createDirectories(BASE);
            Path folder = Files.createTempDirectory(BASE, name + "-");
            made.add(folder);
            return folder;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Removes a folder or file with all below it; links are removed, not followed. */
    public static void remove(Path folder) {
        try (Stream<Path> paths = Files.walk(folder)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        } catch (NoSuchFileException e) {
            return; // somebody removed it before: as it should be
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Removes what was made. Safe to call twice. */
    @Override
    public void close() {
        made.forEach(TestFolders::remove);
        made.clear();
    }
}
