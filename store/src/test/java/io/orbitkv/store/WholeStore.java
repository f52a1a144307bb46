package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;

/** Opens stores for tests that count what is found: the index is whole when they begin. */
final class WholeStore {
    private static final long WAIT_MILLIS = 60_000;

    /** A machine that builds keeps its drive busy for seconds: only tests of late drives judge one by the clock. */
    private static final long DRIVE_MILLIS = 60_000;

    private WholeStore() {}

    static StoreOptions optionsIn(Path folder, Path... more) {
        return StoreOptions.in(folder, more).driveTimeoutMillis(DRIVE_MILLIS);
    }

    static KvStore open(StoreOptions options) {
        return whole(KvStore.open(options));
    }

    static KvStore whole(KvStore store) {
        boolean good = false;
        try {
            assertTrue(store.awaitWhole(WAIT_MILLIS), () -> "the index is not whole: " + store.openReport());
            good = true;
            return store;
        } finally {
            if (!good) {
                store.close();
            }
        }
    }
}
