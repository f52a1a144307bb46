package io.orbitkv.nativeio;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Goal: a read that its caller walks away from ends all the same, and until then nothing else is read. Real files. */
class TimedReaderTest {
    private static final int BYTES = 64 << 10;

    @TempDir
    Path temp;

    @Test
    void aReadThatIsGivenUpGoesOnAndItsMemoryIsNotFreeBeforeItsEnd() {
        try (HostFolder folder = HostFolder.open(temp.resolve("timed"));
                TimedReader reader = folder.newReader();
                MemoryRegion source = MemoryRegion.anonymous(BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
                MemoryRegion target = MemoryRegion.anonymous(BYTES, PageKind.SMALL, MemoryPurpose.TOOL)) {
            assumeTrue(reader != null, "no io_uring here");
            source.fill(0, BYTES, (byte) 7);
            StorageFile file = folder.create("file", 2L * BYTES);
            file.write(BYTES, source, 0, BYTES);
            assertEquals(BYTES, reader.read(file, BYTES, target, 0, BYTES, 10_000_000_000L));
            assertEquals(7, target.getByte(BYTES - 1));
            target.fill(0, BYTES, (byte) 0);

            assertEquals(TimedReader.PENDING, reader.read(file, BYTES, target, 0, BYTES, 0));
            assertThrows(OrbitKvException.class, () -> reader.read(file, 0, target, 0, BYTES, 0));
            assertThrows(OrbitKvException.class, reader::close, "closed under a read");
            file.close();
            long start = System.nanoTime();
            while (!reader.isDrained()) {
                assertTrue(System.nanoTime() - start < 60_000_000_000L, "the read never ends");
            }
            assertEquals(7, target.getByte(0));
            assertEquals(7, target.getByte(BYTES - 1));
            assertTrue(reader.read(file, 0, target, 0, BYTES, 1_000_000_000) < 0, "the file is closed");
            assertTrue(reader.isDrained());
        }
    }

    @Test
    void theEndOfAFileIsAnErrorAndAnotherThreadMayReadNext() throws InterruptedException {
        try (HostFolder folder = HostFolder.open(temp.resolve("end"));
                TimedReader reader = folder.newReader();
                MemoryRegion target = MemoryRegion.anonymous(BYTES, PageKind.SMALL, MemoryPurpose.TOOL)) {
            assumeTrue(reader != null, "no io_uring here");
            StorageFile file = folder.create("file", MemoryRegion.PAGE_BYTES);
            assertEquals(-LibC.ENODATA, reader.read(file, 0, target, 0, BYTES, 10_000_000_000L));
            int[] read = new int[1];
            Thread other = new Thread(
                    () -> read[0] = reader.read(file, 0, target, 0, MemoryRegion.PAGE_BYTES, 10_000_000_000L));
            other.start();
            other.join();
            assertEquals(MemoryRegion.PAGE_BYTES, read[0]);
            assertFalse(reader.read(file, 0, target, 0, MemoryRegion.PAGE_BYTES, 10_000_000_000L) < 0);
        }
    }
}
