package io.orbitkv.recovery;

import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.nativeio.DataFolder;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/** The scenarios of {@link OpeningScenarios} on the simulated drive. */
final class SimulatedOpeningTest extends OpeningScenarios {
    @TempDir
    Path real;

    @Override
    DataFolder start() {
        return new SimulatedFolder(1, real);
    }

    @Override
    DataFolder kill(TestLife life) {
        SimulatedFolder folder = (SimulatedFolder) life.folder;
        folder.kill();
        life.close();
        return folder.reopen();
    }

    @Override
    DataFolder losePower(TestLife life) {
        SimulatedFolder folder = (SimulatedFolder) life.folder;
        folder.powerLoss();
        life.close();
        return folder.reopen();
    }

    @Override
    OpeningOptions options() {
        return OpeningOptions.of(CAP_BYTES).withSegmentBytes(SEGMENT_BYTES).simulated(5);
    }
}
