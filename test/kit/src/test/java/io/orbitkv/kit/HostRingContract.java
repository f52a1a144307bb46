package io.orbitkv.kit;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.OrbitKvException;
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
        String refusal = refusal(folder);
        if (refusal != null) {
            folder.close();
        }
        assumeTrue(refusal == null, refusal);
        return folder;
    }

    /** Why this machine does not serve the kind under test, or null. */
    private String refusal(HostFolder folder) {
        try (IoRing ring = folder.newRing(1)) {
            return ring.kind() == kind() ? null : "asked for " + kind() + " this machine serves " + ring.kind();
        } catch (OrbitKvException e) {
            if (e.code() != ErrorCode.NOT_AVAILABLE) {
                throw e;
            }
            return e.getMessage();
        }
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
