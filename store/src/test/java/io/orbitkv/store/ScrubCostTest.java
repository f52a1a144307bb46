package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.store.Modelled.Model;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/**
 * Goal: scrub at its default rates delays neither saves nor restores.
 * Method: two stores in one run, one of them without scrub, take turns; p99 of save and restore of 4 blocks of 64 KiB each.
 * The machine's noise is in both: the bound is wide, the printed figures are what counts.
 */
class ScrubCostTest {
    private static final int MIB = 1 << 20;
    private static final int BLOCK_BYTES = 64 << 10;
    private static final int PROMPT_BLOCKS = 4;
    private static final int TURNS = 1500;
    private static final int WARM_UP = 300;
    private static final double NOISE = 5;

    /** Far more than by default, so that some of it happens within the test. */
    private static final long RATE = 64 * MIB;

    private static StoreOptions options(Path folder) {
        return WholeStore.optionsIn(folder)
                .poolBytes(16 * MIB)
                .capBytes(64 * MIB)
                .pageKind(PageKind.SMALL);
    }

    @Test
    void savesAndRestoresTakeAsLongWithScrubAsWithout() {
        try (TestFolders folders = new TestFolders();
                KvStore with = KvStore.open(options(folders.make("with"))
                        .scrubHostBytesPerSecond(RATE)
                        .scrubDriveBytesPerSecond(RATE));
                KvStore without = KvStore.open(options(folders.make("without"))
                        .scrubHostBytesPerSecond(0)
                        .scrubDriveBytesPerSecond(0));
                Modelled modelledWith = modelled(with);
                Modelled modelledWithout = modelled(without)) {
            Gen gen = new Gen(7);
            long[][] nanos = new long[4][TURNS];
            Prompt[] prompts = new Prompt[TURNS];
            for (int turn = 0; turn < TURNS; turn++) {
                prompts[turn] = Prompt.random(gen, PROMPT_BLOCKS);
                Prompt old = prompts[gen.between(Math.max(0, turn - 150), turn)];
                boolean first = gen.coin();
                for (int i = 0; i < 2; i++) {
                    boolean scrubs = first == (i == 0);
                    Modelled modelled = scrubs ? modelledWith : modelledWithout;
                    int row = scrubs ? 0 : 2;
                    long start = System.nanoTime();
                    modelled.saveAll(prompts[turn], 0, PROMPT_BLOCKS);
                    long saved = System.nanoTime();
                    modelled.restore(old, 0, PROMPT_BLOCKS, gen);
                    nanos[row][turn] = saved - start;
                    nanos[row + 1][turn] = System.nanoTime() - saved;
                }
            }
            ScrubStats scrub = with.stats().scrub();
            System.out.printf(
                    "p99 with and without scrub: save %.0f and %.0f us, restore %.0f and %.0f us (%s)%n",
                    p99(nanos[0]), p99(nanos[2]), p99(nanos[1]), p99(nanos[3]), scrub);
            assertTrue(scrub.hostBytes() > 0 || scrub.driveBytes() > 0, "nothing was scrubbed");
            assertTrue(p99(nanos[0]) < NOISE * p99(nanos[2]), "saves wait for scrub");
            assertTrue(p99(nanos[1]) < NOISE * p99(nanos[3]), "restores wait for scrub");
        }
    }

    private static Modelled modelled(KvStore store) {
        ShardHandle shard =
                store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0);
        return new Modelled(store, shard, new Model(), PROMPT_BLOCKS);
    }

    private static double p99(long[] nanos) {
        long[] warm = Arrays.copyOfRange(nanos, WARM_UP, nanos.length);
        Arrays.sort(warm);
        return warm[warm.length * 99 / 100] / 1e3;
    }
}
