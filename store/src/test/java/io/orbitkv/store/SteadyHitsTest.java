package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.SimulatedClock;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.PageKind;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: under a load that stays the same the hit rate does, however often all memory and the whole drive were written over, and
 * whatever callers leave lying about.
 * Method: a stepped store over a simulated drive that is much smaller than what is asked for; one query in eight never
 * ends its lease, one restore in eight stops half way.
 */
class SteadyHitsTest {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;
    private static final int BLOCK_BYTES = 4 * KIB;
    private static final int CAP_BYTES = 4 * MIB;
    private static final int SESSIONS = 400;
    private static final int BLOCKS = 8;
    private static final int EPOCHS = 8;
    private static final int TURNS = Integer.getInteger("orbitkv.soakTurns", 700);

    /** Five times the spread that chance gives the difference of two means of three epochs. */
    private static final double POINTS = 8;

    private final long seed = Seed.of(SteadyHitsTest.class);
    private final Gen gen = new Gen(seed);
    private final TestFolders folders = new TestFolders();
    private final Prompt[] sessions = new Prompt[SESSIONS];
    private KvStore store;
    private Modelled user;

    @AfterEach
    void close() {
        if (store != null) {
            user.close();
            store.close();
        }
        folders.close();
    }

    @Test
    void reported_LMCache_987_hitsDoNotDecay() {
        SimulatedClock clock = new SimulatedClock();
        StoreOptions options = StoreOptions.in(Path.of("simulated"))
                .poolBytes(MIB)
                .capBytes(CAP_BYTES)
                .segmentBytes(64 * KIB)
                .blockBytesLargest(BLOCK_BYTES)
                .openSegments(2)
                .leaseMillis(50)
                .pageKind(PageKind.SMALL);
        SimulatedFolder folder = new SimulatedFolder(seed, folders.make("steady"), clock);
        store = WholeStore.whole(KvStore.openStepped(options, folder, clock, seed));
        user = new Modelled(
                store, store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0), new Modelled.Model(), BLOCKS);
        Arrays.setAll(sessions, i -> Prompt.random(gen, BLOCKS));
        double[] rates = new double[EPOCHS];
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            rates[epoch] = hitRate();
        }
        StoreStats stats = store.stats();
        System.out.println("hit rates: " + Arrays.toString(rates) + ", " + stats);
        long writtenOver = stats.nvmeAdmittedBytes() / CAP_BYTES;
        assertTrue(writtenOver >= 20, "the drive was written over " + writtenOver + " times only");
        double early = mean(rates, 1, 4); // the first epoch fills the drive
        double late = mean(rates, EPOCHS - 3, EPOCHS);
        assertTrue(late > early - POINTS, () -> "hits decay: " + Arrays.toString(rates));
        assertTrue(early > 2 * POINTS && early < 80, "a rate that could not fall shows nothing: " + early);
        requireAllIsFree(clock);
    }

    private static double mean(double[] rates, int from, int to) {
        return Arrays.stream(rates, from, to).average().orElseThrow();
    }

    /** Percent of the blocks asked for that came back. */
    private double hitRate() {
        long hits = 0;
        for (int turn = 0; turn < TURNS; turn++) {
            Prompt prompt = sessions[gen.below(gen.below(SESSIONS) + 1)]; // some far more often than others
            if (gen.below(8) == 0) {
                store.query(user.shard.family(), prompt.keys, 0, BLOCKS); // its owner has forgotten it
            }
            int wanted = gen.below(8) == 0 ? BLOCKS / 2 : BLOCKS;
            int found = user.restore(prompt, 0, wanted, gen);
            hits += found;
            user.saveAll(prompt, found, BLOCKS - found);
            store.step();
        }
        return 100.0 * hits / ((long) TURNS * BLOCKS);
    }

    private void requireAllIsFree(SimulatedClock clock) {
        user.written();
        for (int i = 0; i < 200; i++) {
            clock.advance(10_000_000);
            store.step();
        }
        StoreStats stats = store.stats();
        assertEquals(0, stats.leasesHeld(), "leases that nobody ended");
        assertEquals(0, stats.nvmeQueuedBlocks());
        int pool = MIB / BLOCK_BYTES;
        for (int saved = 0; saved < 2 * pool; saved += BLOCKS) { // no page of the pool is held
            user.saveAll(Prompt.random(gen, BLOCKS), 0, BLOCKS);
        }
    }
}
