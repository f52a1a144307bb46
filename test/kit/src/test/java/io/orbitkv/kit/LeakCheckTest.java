package io.orbitkv.kit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.io.FileInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/**
 * Goal: a leaked descriptor or native byte is named, and nothing else is.
 * Method: leak one of each, look at the message, give it back.
 */
class LeakCheckTest {
    @Test
    void namesALeakedDescriptor() throws Exception {
        try (TestFolders folders = new TestFolders()) {
            Path file = Files.write(folders.make("leak").resolve("leaked-file"), new byte[1]);
            LeakCheck before = LeakCheck.take();
            try (FileInputStream leaked = new FileInputStream(file.toFile())) {
                assertEquals(0, leaked.read());
                AssertionError error = assertThrows(AssertionError.class, before::assertNothingLeaked);
                assertTrue(error.getMessage().contains("leaked-file"), error.getMessage());
                assertTrue(LeakCheck.take().descriptors() > before.descriptors());
            }
            before.assertNothingLeaked();
        }
    }

    @Test
    void namesLeakedNativeBytes() {
        LeakCheck before = LeakCheck.take();
        MemoryRegion leaked = MemoryRegion.anonymous(4096, PageKind.SMALL, MemoryPurpose.STAGING);
        AssertionError error = assertThrows(AssertionError.class, before::assertNothingLeaked);
        assertTrue(error.getMessage().contains("4096 native bytes of STAGING"), error.getMessage());
        leaked.close();
        before.assertNothingLeaked();
    }

    @Test
    void testFoldersVanish() throws Exception {
        Path made;
        try (TestFolders folders = new TestFolders()) {
            made = folders.make("vanish");
            Files.write(Files.createDirectories(made.resolve("a/b")).resolve("c"), new byte[10]);
            Files.createSymbolicLink(made.resolve("link"), Path.of("/proc"));
            assertTrue(Files.isDirectory(made));
        }
        assertFalse(Files.exists(made));
    }
}
