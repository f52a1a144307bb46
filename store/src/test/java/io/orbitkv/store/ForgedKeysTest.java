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
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: keys that are no chain, as a broken client sends them, get no wrong bytes, count as no damage, and cost nobody a block.
 * Method: a match takes a later key's word for the ones before it; so one in the middle is forged, beside true ones, in
 * host memory and on the drive.
 */
class ForgedKeysTest {
    private static final int MIB = 1 << 20;
    private static final int BLOCK_BYTES = 4096;
    private static final int BLOCKS = 8;
    private static final int FORGED = 3;

    private final long seed = Seed.of(ForgedKeysTest.class);
    private final Gen gen = new Gen(seed);

    private KvStore open(TestFolders folders, SimulatedClock clock) {
        StoreOptions options = StoreOptions.in(Path.of("simulated"))
                .poolBytes(2 * MIB)
                .capBytes(16 * MIB)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES)
                .openSegments(2)
                .pageKind(PageKind.SMALL);
        SimulatedFolder folder = new SimulatedFolder(seed, folders.make("forged"), clock);
        return WholeStore.whole(KvStore.openStepped(options, folder, clock, seed));
    }

    private static Modelled user(KvStore store) {
        ShardHandle shard =
                store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0);
        return new Modelled(store, shard, new Modelled.Model(), 64);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aForgedKeyIsAMissAndHarmsNothing(boolean onDrive) {
        SimulatedClock clock = new SimulatedClock();
        try (TestFolders folders = new TestFolders();
                KvStore store = open(folders, clock);
                Modelled user = user(store)) {
            Prompt prompt = Prompt.random(gen, BLOCKS);
            user.saveAll(prompt, 0, BLOCKS);
            user.written();
            if (onDrive) {
                for (int i = 0; i < 40; i++) { // it leaves host memory
                    user.saveAll(Prompt.random(gen, 32), 0, 32);
                    user.written();
                }
                assertFalse(store.locate(user.shard, prompt.keys, 0).inHost());
                assertTrue(store.locate(user.shard, prompt.keys, 0).onDrive());
            }
            byte[] forged = new byte[BLOCKS * Prompt.keyOffset(1)];
            prompt.keys.getBytes(0, forged);
            forged[Prompt.keyOffset(FORGED)] ^= 1;
            try (Lease lease = store.query(user.shard.family(), new UnsafeBuffer(forged), 0, BLOCKS)) {
                Blocks into = Blocks.of(store.allocate((long) BLOCKS * BLOCK_BYTES));
                int restored = store.restore(lease, user.shard, 0, lease.blocks(), into);
                assertEquals(FORGED, restored, "of " + lease.blocks() + " leased");
            }
            assertEquals(0, store.stats().corruptBlocks(), "no block is damaged");
            assertEquals(BLOCKS, user.restore(prompt, 0, BLOCKS, gen), "the true ones are all there");
            assertEquals(0, store.stats().corruptBlocks());
        }
    }

    /** Once it counted as a full index, and a few such saves gave up every block of the store, other tenants' included. */
    @Test
    void keysThatBeginWithTheSameEightBytesCostNobodyABlock() {
        SimulatedClock clock = new SimulatedClock();
        try (TestFolders folders = new TestFolders();
                KvStore store = open(folders, clock);
                Modelled user = user(store)) {
            Prompt prompt = Prompt.random(gen, BLOCKS);
            user.saveAll(prompt, 0, BLOCKS);
            user.written();
            byte[] forged = new byte[BLOCKS * Prompt.keyOffset(1)];
            prompt.keys.getBytes(0, forged);
            for (int block = 0; block < BLOCKS; block++) {
                forged[Prompt.keyOffset(block) + 8] ^= 1;
            }
            Blocks from = Blocks.of(store.allocate((long) BLOCKS * BLOCK_BYTES));
            SaveResult result = new SaveResult();
            for (int times = 0; times < 100; times++) {
                store.save(user.shard, null, 0, new UnsafeBuffer(forged), 0, BLOCKS, from, result);
                assertEquals(0, result.accepted() + result.present());
                assertEquals(SaveResult.DropReason.KEY_COLLISION, result.reason());
                store.step();
            }
            StoreStats stats = store.stats();
            assertEquals(0, stats.indexFull() + stats.hostSegmentsReused() + stats.nvmeSegmentsReused());
            assertEquals(BLOCKS, user.restore(prompt, 0, BLOCKS, gen));
        }
    }
}
