package io.orbitkv.recovery;

import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.HostFolder;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;

/** The scenarios of {@link OpeningScenarios} on the real file system, with several reading threads. */
final class HostOpeningTest extends OpeningScenarios {
    private final TestFolders folders = new TestFolders();
    private Path path;

    @AfterEach
    void remove() {
        folders.close();
    }

    @Override
    DataFolder start() {
        path = folders.make("opening");
        return HostFolder.open(path);
    }

    @Override
    DataFolder kill(TestLife life) {
        life.close();
        return HostFolder.open(path);
    }

    @Override
    DataFolder losePower(TestLife life) {
        LockPage page = LockPage.read(life.folder);
        new LockPage(page.pid(), page.epoch(), "another boot", page.storeId()).write(life.folder);
        return kill(life);
    }

    @Override
    OpeningOptions options() {
        return OpeningOptions.of(CAP_BYTES).withSegmentBytes(SEGMENT_BYTES).withReadThreads(3);
    }
}
