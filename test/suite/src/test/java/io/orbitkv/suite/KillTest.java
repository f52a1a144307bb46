package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.CrashWindow;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: after {@code kill -9} at any moment, every block that was acknowledged as written is found with the right bytes,
 * or its segment's header proves that it was put to use again; nothing wrong and nothing cleared is ever returned; the
 * folder verifies.
 *
 * <p>Method: a real process saves into a real folder, as fast as it can, and is killed at random moments, or when a
 * wanted crash window is open (a shared page tells, and says after the death which ones it really died in). Then this
 * process opens the folder (or the two folders, of which at last each is lost once after a kill), compares and restores everything, and the next round goes on with the same folder. The moments
 * are the machine's, so a seed repeats the workload and not the kill. {@code -Dorbitkv.kills=N} sets how many.
 */
@Tag("long")
class KillTest {
    private static final int KILLS = Integer.getInteger("orbitkv.kills", 20);

    /** So many kills inside of each window are asked for in so many rounds. */
    private static final int HITS_MIN = 10;

    private static final int HITS_MIN_ROUNDS = 200;

    private static final List<CrashWindow> WANTED =
            List.of(CrashWindow.BATCH_WRITE, CrashWindow.SEAL, CrashWindow.SEGMENT_REUSE, CrashWindow.CATALOG_COMMIT);

    @ParameterizedTest(name = "{0} data folders")
    @ValueSource(ints = {1, 2})
    void killedStoreKeepsWhatItAcknowledged(int folderCount) throws IOException, InterruptedException {
        long seed = Seed.of(KillTest.class);
        Gen gen = new Gen(Gen.mix(seed + 1));
        try (TestFolders folders = new TestFolders();
                KillHarness harness = new KillHarness(folders.make("kill"), folderCount, seed)) {
            int kills = folderCount == 1 ? KILLS : (KILLS + 1) / 2;
            for (int kill = 0; kill < kills; kill++) {
                harness.kill(gen.below(4) == 0 ? null : rarest(harness));
                boolean again = kill < kills - 1 && gen.below(4) == 0;
                if (!again || harness.mustLook()) {
                    harness.checkFolder();
                }
            }
            for (int number = 0; folderCount > 1 && number < folderCount; number++) {
                harness.kill(null);
                harness.lose(number);
                harness.checkFolder();
            }
            System.out.println("KillTest: " + harness.report());
            for (CrashWindow window : WANTED) {
                int needed = kills >= HITS_MIN_ROUNDS ? HITS_MIN : kills >= HITS_MIN ? 1 : 0;
                assertTrue(
                        harness.hits(window) >= needed,
                        () -> "too few kills inside of " + window + ": " + harness.report());
            }
        }
    }

    private static CrashWindow rarest(KillHarness harness) {
        return WANTED.stream().min(Comparator.comparingInt(harness::hits)).orElseThrow();
    }
}
