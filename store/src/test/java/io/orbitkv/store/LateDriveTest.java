package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Payload;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryRegion;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: reads that a restore gave up on harm nobody. Method: a stepped store whose clock leaps while a restore waits, so
 * that its reads stay where they are until the test lets them run.
 */
class LateDriveTest {
    private static final int BLOCK_BYTES = 8 << 10;
    private static final int BLOCKS = 4;
    private static final int STEPS = 2_000;
    private static final long TIMEOUT_MILLIS = 3_000;

    private final TestFolders folders = new TestFolders();
    private final Gen gen = new Gen(11);
    private final SaveResult result = new SaveResult();
    private long leapNanos;
    private long leaptNanos;
    private KvStore store;
    private FamilyHandle family;
    private long payloadSeed;
    private MemoryRegion memory;
    private Prompt onDrive;
    private Prompt inHost;

    @BeforeEach
    void openWithBlocksInEitherTier() {
        StoreOptions options = StoreOptions.in(folders.make("late"))
                .poolBytes(1 << 20)
                .capBytes(16 << 20)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES)
                .restoreTimeoutMillis(TIMEOUT_MILLIS);
        store = KvStore.openStepped(
                options, HostFolder.open(options.folder()), () -> System.nanoTime() + (leaptNanos += leapNanos), 7);
        family = store.openFamily(Modelled.family(BLOCK_BYTES).build());
        payloadSeed = Gen.mix(family.shard(0).namespace().id64());
        memory = store.allocate(2L * BLOCKS * BLOCK_BYTES);
        onDrive = Prompt.random(gen, BLOCKS);
        save(onDrive);
        for (int i = 0; i < 64; i++) { // twice the pool
            save(Prompt.random(gen, BLOCKS));
        }
        inHost = Prompt.random(gen, BLOCKS);
        save(inHost);
    }

    @AfterEach
    void close() {
        leapNanos = 0;
        store.close();
        folders.close();
    }

    private void save(Prompt prompt) {
        for (int i = 0; i < BLOCKS; i++) {
            Payload.fill(memory, (long) i * BLOCK_BYTES, BLOCK_BYTES, prompt.key0(i), payloadSeed);
        }
        store.save(family.shard(0), null, 0, prompt.keys, 0, BLOCKS, Blocks.of(memory), result);
        assertEquals(BLOCKS, result.accepted(), result::toString);
        assertEquals(SyncOutcome.REACHED, store.sync(result.position(), Level.WRITTEN, 10_000));
    }

    private int restore(Prompt prompt, Blocks destination) {
        try (Lease lease = store.query(family, prompt.keys, 0, BLOCKS)) {
            assertEquals(BLOCKS, lease.blocks());
            assertEquals(prompt == inHost ? BLOCKS : 0, lease.hostBlocks());
            return store.restore(lease, family.shard(0), 0, BLOCKS, destination);
        }
    }

    private int restoreLate(Blocks destination) {
        leapNanos = TimeUnit.MILLISECONDS.toNanos(TIMEOUT_MILLIS + 1);
        try {
            return restore(onDrive, destination);
        } finally {
            leapNanos = 0;
        }
    }

    private void assertHolds(Prompt prompt, long offset) {
        for (int i = 0; i < BLOCKS; i++) {
            long at = offset + (long) i * BLOCK_BYTES;
            assertEquals(
                    Payload.NO_DIFFERENCE,
                    Payload.firstDifference(memory, at, BLOCK_BYTES, prompt.key0(i), payloadSeed),
                    "wrong bytes in block " + i);
        }
    }

    @Test
    void aReadThatComesLateNeverOverwritesWhatALaterRestoreHasProved() {
        assertEquals(0, restoreLate(Blocks.of(memory)));
        assertEquals(1, store.stats().readTimeouts());
        long beside = (long) BLOCKS * BLOCK_BYTES;
        int early = restore(inHost, Blocks.of(memory));
        int elsewhere = restore(inHost, Blocks.unset().set(memory, beside));
        for (int i = 0; i < STEPS; i++) {
            store.step();
        }
        if (early > 0) {
            assertHolds(inHost, 0);
        }
        assertEquals(BLOCKS, elsewhere, "memory that no late read can reach was refused");
        assertHolds(inHost, beside);
        assertEquals(BLOCKS, restore(inHost, Blocks.of(memory)), "the late reads have ended");
        assertHolds(inHost, 0);
    }

    @Test
    @Timeout(60)
    void restoresFromMemoryGoOnThoughTheDriveHasKeptAnyNumberOfRestoresWaiting() {
        Blocks array = Blocks.of(new byte[BLOCKS * BLOCK_BYTES]);
        for (int i = 0; i < 2 * Workspaces.WORKSPACES_MAX; i++) {
            assertEquals(0, restoreLate(array));
            assertEquals(BLOCKS, restore(inHost, array));
        }
        assertEquals(Workspaces.RETIRED_MAX, store.stats().readTimeouts(), "the drive was asked again and again");
        for (int i = 0; i < STEPS; i++) {
            store.step();
        }
        assertEquals(BLOCKS, restore(onDrive, array), "the drive has caught up");
        assertTrue(store.stats().restoredNvmeBlocks() >= BLOCKS);
    }

    @Test
    void memoryThatItsUserClosesBeforeALateReadStartsFailsThatReadOnly() {
        MemoryRegion closed = store.allocate((long) BLOCKS * BLOCK_BYTES);
        assertEquals(0, restoreLate(Blocks.of(closed)));
        closed.close();
        for (int i = 0; i < STEPS; i++) {
            store.step();
        }
        save(Prompt.random(gen, BLOCKS));
        assertEquals(BLOCKS, restore(onDrive, Blocks.of(memory)));
        assertHolds(onDrive, 0);
    }
}
