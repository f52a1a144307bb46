package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: libraries are told of native parts that are there, and of no others. Method: folders with and without them; the
 * properties of this process are put back.
 */
class NativeLibrariesTest {
    private static final String JNA = "jna.boot.library.path";
    private static final String JFFI = "jffi.boot.library.path";
    private static final String LMDB = "lmdbjava.native.lib";

    private final Properties before = new Properties();

    @TempDir
    Path folder;

    @BeforeEach
    void clear() {
        before.putAll(System.getProperties());
        List.of(JNA, JFFI, LMDB).forEach(System::clearProperty);
    }

    @AfterEach
    void putBack() {
        System.setProperties(before);
    }

    @Test
    void whatWasUnpackedIsUsed() throws IOException {
        System.setProperty("os.arch", "amd64");
        Path jna = Files.createDirectories(folder.resolve("com/sun/jna/linux-x86-64"));
        Path lmdb = Files.createDirectories(folder.resolve("org/lmdbjava/native"));
        Files.createFile(lmdb.resolve("aarch64-linux-gnu.so"));
        NativeLibraries.use(folder.toString());
        assertEquals(jna.toString(), System.getProperty(JNA));
        assertNull(System.getProperty(JFFI));
        assertNull(System.getProperty(LMDB));
        System.setProperty("os.arch", "aarch64");
        NativeLibraries.use(folder.toString());
        assertEquals(lmdb.resolve("aarch64-linux-gnu.so").toString(), System.getProperty(LMDB));
    }

    @Test
    void whatIsSetAlreadyStays() throws IOException {
        Files.createDirectories(folder.resolve("com/sun/jna/linux-x86-64"));
        Files.createDirectories(folder.resolve("com/sun/jna/linux-aarch64"));
        System.setProperty(JNA, "/opt/jna");
        NativeLibraries.use(folder.toString());
        assertEquals("/opt/jna", System.getProperty(JNA));
    }

    @Test
    void withoutThemEachLibraryUnpacksItsOwn() {
        NativeLibraries.use(null);
        NativeLibraries.use(folder.resolve("none").toString());
        for (String property : List.of(JNA, JFFI, LMDB)) {
            assertNull(System.getProperty(property));
        }
    }
}
