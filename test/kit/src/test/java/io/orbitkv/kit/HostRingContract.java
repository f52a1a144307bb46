package io.orbitkv.kit;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.IoRing;
import java.util.Locale;
import org.junit.jupiter.api.AfterEach;

/** The shared suite on folders of this machine, with one kind of ring asked for by the property that operators use. */
abstract class HostRingContract extends IoRingContract {
    private static final String PROPERTY = "orbitkv.ring";

    private final TestFolders folders = new TestFolders();
    private final String before = System.getProperty(PROPERTY);

    @Override
    protected DataFolder openFolder() {
        System.setProperty(PROPERTY, kind().name().toLowerCase(Locale.ROOT));
        HostFolder folder = HostFolder.open(folders.make("ring"));
        boolean served = false;
        try (IoRing ring = folder.newRing(1)) {
            served = ring.kind() == kind();
        } finally {
            if (!served) {
                folder.close();
            }
        }
        assumeTrue(served, () -> "this machine does not serve " + kind());
        return folder;
    }

    @AfterEach
    void removeFolders() {
        folders.close();
        if (before == null) {
            System.clearProperty(PROPERTY);
        } else {
            System.setProperty(PROPERTY, before);
        }
    }
}
