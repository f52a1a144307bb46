package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: leases are bounded in number and bytes, end by themselves, and harm nobody who forgets or keeps one. Method: a
 * stepped store whose clock the test moves.
 */
class LeaseTest {
    private static final int BLOCK_BYTES = 4 << 10;
    private static final int BLOCKS = 8;
    private static final long LEASE_MILLIS = 50;
    private static final int LEASES = 4;

    private final TestFolders folders = new TestFolders();
    private final Gen gen = new Gen(23);
    private long aheadNanos;

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private KvStore open(long leaseBytesMax) {
        StoreOptions options = WholeStore.optionsIn(folders.make("leases"))
                .poolBytes(1 << 20)
                .capBytes(16 << 20)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES)
                .leaseMillis(LEASE_MILLIS)
                .leasesMax(LEASES)
                .leaseBytesMax(leaseBytesMax);
        return KvStore.openStepped(options, HostFolder.open(options.folder()), () -> System.nanoTime() + aheadNanos, 7);
    }

    private Modelled shard(KvStore store) {
        return new Modelled(
                store, store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0), new Modelled.Model(), BLOCKS);
    }

    private static Lease query(Modelled shard, Prompt prompt) {
        return shard.store.query(shard.shard.family(), prompt.keys, 0, prompt.blocks());
    }

    private void expire() {
        aheadNanos += LEASE_MILLIS * 1_000_000 + 1;
    }

    /** LMCache 1034: lookups whose answer nobody used were pinned for ever. */
    @Test
    void reported_LMCache_1034_leasesThatAreNeverClosedEndByThemselves() {
        try (KvStore store = open(0);
                Modelled shard = shard(store)) {
            Prompt prompt = Prompt.random(gen, BLOCKS);
            shard.saveAll(prompt, 0, BLOCKS);
            List<Lease> forgotten = new ArrayList<>();
            for (int round = 0; round < 50; round++) {
                for (int i = 0; i < LEASES; i++) {
                    Lease lease = query(shard, prompt);
                    assertEquals(BLOCKS, lease.blocks(), "round " + round);
                    forgotten.add(lease);
                }
                assertEquals(0, query(shard, prompt).blocks(), "all leases are held");
                assertEquals(LEASES, store.stats().leasesHeld());
                assertEquals((long) LEASES * BLOCKS * BLOCK_BYTES, store.stats().leasedBytes());
                expire();
                assertEquals(0, store.stats().leasesHeld());
            }
            assertEquals(BLOCKS, shard.restore(prompt, 0, BLOCKS, gen), "what was forgotten is given to others");
            assertEquals(0, store.stats().leasedBytes());
            forgotten.forEach(Lease::close); // late, and of no effect
            try (Lease lease = query(shard, prompt)) {
                assertTrue(lease.isLive());
                forgotten.forEach(Lease::close);
                assertTrue(lease.isLive(), "a lease that was taken back is nobody else's");
                assertEquals((long) BLOCKS * BLOCK_BYTES, store.stats().leasedBytes());
            }
            assertEquals(0, store.stats().leasedBytes());
        }
    }

    /** Mooncake 850, 4239, 4153: reads that outlive their lease, on every tier. */
    @Test
    void reported_Mooncake_850_aRestoreUnderALeaseThatHasExpiredDeliversNothing() {
        try (KvStore store = open(0);
                Modelled shard = shard(store)) {
            Prompt inHost = Prompt.random(gen, BLOCKS);
            Prompt onDrive = Prompt.random(gen, BLOCKS);
            shard.saveAll(onDrive, 0, BLOCKS);
            for (int i = 0; i < 64; i++) { // twice the pool
                shard.saveAll(Prompt.random(gen, BLOCKS), 0, BLOCKS);
            }
            shard.saveAll(inHost, 0, BLOCKS);
            Blocks destination = Blocks.of(store.allocate((long) BLOCKS * BLOCK_BYTES));
            for (Prompt prompt : List.of(inHost, onDrive)) {
                Lease lease = query(shard, prompt);
                assertEquals(BLOCKS, lease.blocks());
                assertEquals(prompt == inHost ? BLOCKS : 0, lease.hostBlocks());
                expire();
                assertFalse(lease.isLive());
                long missed = store.stats().missedBlocks();
                assertEquals(0, store.restore(lease, shard.shard, 0, BLOCKS, destination));
                assertEquals(missed + BLOCKS, store.stats().missedBlocks());
                for (int i = 0; i < LEASES; i++) { // the last of them takes it back
                    query(shard, prompt);
                }
                assertEquals(0, store.restore(lease, shard.shard, 0, BLOCKS, destination), "taken back");
                lease.close();
                expire();
            }
        }
    }

    @Test
    void whatLeasesClaimTogetherIsBoundedAndWhatIsBeyondIsAMiss() {
        long budget = 3L * BLOCKS * BLOCK_BYTES / 2;
        try (KvStore store = open(budget);
                Modelled shard = shard(store)) {
            Prompt prompt = Prompt.random(gen, BLOCKS);
            shard.saveAll(prompt, 0, BLOCKS);
            Lease whole = query(shard, prompt);
            Lease half = query(shard, prompt);
            assertEquals(BLOCKS, whole.blocks());
            assertEquals(BLOCKS / 2, half.blocks(), "as much as the budget has room for");
            assertEquals(0, query(shard, prompt).blocks());
            assertEquals(budget, store.stats().leasedBytes());
            assertEquals(2, store.stats().leasesRefused());
            Blocks destination = Blocks.of(store.allocate((long) BLOCKS * BLOCK_BYTES));
            assertEquals(BLOCKS / 2, store.restore(half, shard.shard, 0, BLOCKS / 2, destination));
            whole.close();
            try (Lease again = query(shard, prompt)) {
                assertEquals(BLOCKS, again.blocks());
            }
            half.close();
            assertEquals(0, store.stats().leasedBytes());
            OrbitKvException refused =
                    assertThrows(OrbitKvException.class, () -> store.restore(half, shard.shard, 0, 1, destination));
            assertEquals(ErrorCode.CLOSED, refused.code());
        }
    }
}
