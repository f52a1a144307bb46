package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.SimulatedClock;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.store.Modelled.Model;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: rot in host memory and on the drive is found by scrub, without any restore; what it finds is right, dropped or
 * quarantined for good; and while segments are given up all the time it finds nothing that isn't there.
 * Method: real stores; a door of the store flips a byte of host memory, another process flips one on the drive.
 */
class ScrubTest {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;
    private static final int BLOCK_BYTES = 7_000;
    private static final int PROMPT_BLOCKS = 4;

    /** Blocks of the first prompt: more than two segments of its lane, so that the segment of its first ones is sealed. */
    private static final int FIRST_BLOCKS = 20;

    private static final long FAST = 1L << 30;
    private static final long WAIT_NANOS = 180_000_000_000L;

    private final Gen gen = new Gen(Seed.of(ScrubTest.class));
    private final TestFolders folders = new TestFolders();
    private final List<Prompt> prompts = new ArrayList<>();

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private static StoreOptions options(Path folder) {
        return WholeStore.optionsIn(folder)
                .poolBytes(MIB)
                .capBytes(4 * MIB)
                .segmentBytes(64 * KIB)
                .blockBytesLargest(8 * KIB)
                .pageKind(PageKind.SMALL)
                .scrubHostBytesPerSecond(0)
                .scrubDriveBytesPerSecond(0);
    }

    private Modelled fill(KvStore store, int count) {
        ShardHandle shard =
                store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0);
        Modelled modelled = new Modelled(store, shard, new Model(), FIRST_BLOCKS);
        for (int i = 0; i < count; i++) {
            int blocks = i == 0 ? FIRST_BLOCKS : PROMPT_BLOCKS;
            Prompt prompt = Prompt.random(gen, blocks);
            prompts.add(prompt);
            modelled.saveAll(prompt, 0, blocks);
        }
        assertEquals(SyncOutcome.REACHED, store.sync(store.acceptedPosition(), Level.DURABLE, 20_000));
        return modelled;
    }

    private static void await(KvStore store, String what, Predicate<ScrubStats> reached) {
        long start = System.nanoTime();
        while (!reached.test(store.stats().scrub())) {
            assertTrue(System.nanoTime() - start < WAIT_NANOS, () -> what + ": " + store.stats());
            LockSupport.parkNanos(5_000_000);
        }
    }

    @Test
    void aByteOfHostMemoryThatFlipsIsFoundAndTheDriveServesTheBlock() {
        StoreOptions options = options(folders.make("host")).scrubHostBytesPerSecond(FAST);
        try (KvStore store = WholeStore.open(options);
                Modelled modelled = fill(store, 20)) {
            long before = store.stats().scrub().hostPasses();
            await(store, "a pass over good memory", scrub -> scrub.hostPasses() >= before + 2);
            assertEquals(0, store.stats().scrub().hostFound());
            assertTrue(store.stats().scrub().hostBytes() > 0, "nothing rests");
            Prompt prompt = prompts.get(0);
            assertTrue(store.flipInHost(modelled.shard, prompt.keys, Prompt.keyOffset(1)), "it has left host memory");
            await(store, "a flipped byte", scrub -> scrub.hostFound() == 1);
            Location at = store.locate(modelled.shard, prompt.keys, Prompt.keyOffset(1));
            assertFalse(at.inHost(), "it is served still");
            assertTrue(at.onDrive());
            assertEquals(PROMPT_BLOCKS, modelled.restore(prompt, 0, PROMPT_BLOCKS, gen));
            assertTrue(store.stats().restoredNvmeBlocks() > 0, "the drive served it");
            long passes = store.stats().scrub().hostPasses();
            await(store, "more passes", scrub -> scrub.hostPasses() >= passes + 2);
            assertEquals(1, store.stats().scrub().hostFound(), "counted once");
            assertEquals(0, store.stats().corruptBlocks(), "no restore met it");
        }
    }

    /** The other process. */
    static final class Flip {
        private Flip() {}

        public static void main(String[] args) {
            Damage.flip(Path.of(args[0]), Long.parseLong(args[1]), 4);
        }
    }

    @Test
    void aBitOfASealedSegmentThatAnotherProcessFlipsIsQuarantinedForGood() throws Exception {
        Path folder = folders.make("drive");
        StoreOptions options = options(folder).scrubDriveBytesPerSecond(FAST);
        Prompt prompt;
        try (KvStore store = WholeStore.open(options);
                Modelled modelled = fill(store, 20)) {
            await(store, "a pass over a good drive", scrub -> scrub.drivePasses() >= 2);
            assertEquals(0, store.stats().scrub().driveFound());
            prompt = prompts.get(0);
            Location at = store.locate(modelled.shard, prompt.keys, Prompt.keyOffset(2));
            long offset = (long) at.segment() * 64 * KIB + at.page() * 4096L + 100;
            Path file = folder.resolve("segments/000000000000.seg");
            Process flip = ChildJvm.start(Flip.class, file.toString(), "" + offset);
            assertTrue(flip.waitFor(60, TimeUnit.SECONDS));
            assertEquals(0, flip.exitValue());
            await(store, "a flipped bit", scrub -> scrub.driveFound() == 1);
            assertFalse(store.locate(modelled.shard, prompt.keys, Prompt.keyOffset(2))
                    .onDrive());
            long passes = store.stats().scrub().drivePasses();
            await(store, "more passes", scrub -> scrub.drivePasses() >= passes + 2);
            assertEquals(1, store.stats().scrub().driveFound(), "counted once");
            assertEquals(0, store.stats().corruptBlocks(), "no restore met it");
        }
        for (int life = 0; life < 2; life++) {
            try (KvStore store = WholeStore.open(options)) {
                ShardHandle shard =
                        store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0);
                assertFalse(
                        store.locate(shard, prompt.keys, Prompt.keyOffset(2)).isStored(), "it is back");
                assertTrue(store.locate(shard, prompt.keys, Prompt.keyOffset(1)).onDrive(), "its neighbour is gone");
                await(store, "a pass", scrub -> scrub.drivePasses() >= 2);
                assertEquals(0, store.stats().scrub().driveFound(), "known already");
            }
        }
    }

    @Test
    void aFooterThatRotsIsCountedAndCostsNothing() {
        Path folder = folders.make("footer");
        try (KvStore store = WholeStore.open(options(folder).scrubDriveBytesPerSecond(FAST));
                Modelled modelled = fill(store, 20)) {
            Location at = store.locate(modelled.shard, prompts.get(0).keys, 0);
            Damage.flip(folder.resolve("segments/000000000000.seg"), (at.segment() + 1L) * 64 * KIB - 1000, 1);
            await(store, "a rotten footer", scrub -> scrub.footersFound() >= 1);
            long passes = store.stats().scrub().drivePasses();
            await(store, "more passes", scrub -> scrub.drivePasses() >= passes + 2);
            assertEquals(1, store.stats().scrub().footersFound(), "counted once");
            assertEquals(0, store.stats().scrub().driveFound());
        }
    }

    @Test
    void theRateIsKept() {
        SimulatedClock clock = new SimulatedClock();
        SimulatedFolder folder = new SimulatedFolder(1, folders.make("rate"), clock);
        long hostRate = ScrubPace.PASS_BYTES_MIN / 4; // a small store: four seconds a pass, and one
        long driveRate = ScrubPace.PASS_BYTES_MIN;
        StoreOptions options =
                options(Path.of("simulated")).scrubHostBytesPerSecond(hostRate).scrubDriveBytesPerSecond(driveRate);
        try (KvStore store = KvStore.openStepped(options, folder, clock, 1);
                Modelled modelled = fill(store, 20)) {
            for (int i = 0; i < 200; i++) { // whatever was saved up is used
                clock.advance(10_000_000);
                store.step();
            }
            ScrubStats before = store.stats().scrub();
            long start = clock.nanoTime();
            while (clock.nanoTime() - start < 40_000_000_000L) {
                clock.advance(10_000_000);
                store.step();
            }
            ScrubStats after = store.stats().scrub();
            double seconds = (clock.nanoTime() - start) / 1e9;
            double host = (after.hostPasses() - before.hostPasses()) / seconds;
            double drive = (after.drivePasses() - before.drivePasses()) / seconds;
            assertTrue(host <= 0.28 && host >= 0.2, host + " passes a second over host memory");
            assertTrue(drive <= 1.03 && drive >= 0.8, drive + " passes a second over the drive");
            assertTrue(after.hostBytes() > before.hostBytes() && after.driveBytes() > before.driveBytes());
            assertEquals(0, after.hostFound() + after.driveFound());
        }
    }

    @Test
    void whatIsReadIsPaidFor() {
        ScrubPace pace = new ScrubPace(MIB, 0);
        long read = 0;
        for (long now = 0; now <= 100_000_000_000L; now += 10_000_000) {
            while (pace.mayRead(now)) {
                pace.read(100_000);
                read += 100_000;
            }
        }
        assertTrue(Math.abs(read - 100 * MIB) <= 200_000, read + " bytes in 100 s at " + MIB + " a second");
        pace.passEnded();
        assertTrue(pace.mayRead(100_500_000_000L), "more than the least cost of a pass was read: nothing is owed");
        pace.passEnded();
        assertFalse(pace.mayRead(112_000_000_000L), "a pass over nothing costs " + ScrubPace.PASS_BYTES_MIN);
        assertTrue(pace.mayRead(120_000_000_000L));
    }

    /** Segments of both tiers are given up all the time, under its hands: nothing of that is damage. */
    @Test
    void evictionIsNoDamage() {
        StoreOptions options =
                options(folders.make("eviction")).scrubHostBytesPerSecond(FAST).scrubDriveBytesPerSecond(FAST);
        long nanos = Long.getLong("orbitkv.scrubSeconds", 5) * 1_000_000_000L;
        try (KvStore store = WholeStore.open(options);
                Modelled modelled = fill(store, 20)) {
            long start = System.nanoTime();
            int clears = 0;
            while (System.nanoTime() - start < nanos) {
                Prompt prompt = Prompt.random(gen, PROMPT_BLOCKS);
                prompts.add(prompt);
                modelled.saveAll(prompt, 0, PROMPT_BLOCKS);
                if (gen.below(3) == 0) {
                    Prompt old = prompts.get(prompts.size() - 1 - gen.below(Math.min(prompts.size(), 200)));
                    modelled.restore(old, 0, PROMPT_BLOCKS, gen);
                }
                if (gen.below(2000) == 0) {
                    store.clear(modelled.shard.family());
                    clears++;
                }
            }
            StoreStats stats = store.stats();
            System.out.println("scrub beside eviction: " + stats.scrub() + ", segments reused "
                    + stats.nvmeSegmentsReused() + " and " + stats.hostSegmentsReused() + ", clears " + clears);
            assertTrue(stats.nvmeSegmentsReused() > 50 && stats.hostSegmentsReused() > 50, "hardly any eviction");
            assertTrue(stats.scrub().hostPasses() > 2 && stats.scrub().drivePasses() > 0, "hardly any scrub");
            assertEquals(0, stats.scrub().hostFound(), "false alarms in host memory");
            assertEquals(0, stats.scrub().driveFound(), "false alarms on the drive");
            assertEquals(0, stats.scrub().footersFound(), "false alarms of footers");
            assertEquals(0, stats.scrub().readErrors());
            assertEquals(0, stats.corruptBlocks());
        }
    }
}
