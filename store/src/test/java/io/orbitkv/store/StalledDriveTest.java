package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Payload;
import io.orbitkv.kit.StallingFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.tiers.TierState;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: nobody waits for a drive that hangs: saves, queries, restores from host memory, stats and close go on; what it reads in
 * the end lands in memory that nobody was given; it comes back by itself. Method: a store with its real threads on a folder
 * whose rings hang until the test releases them, so that whatever waits for the drive never returns.
 */
@Tag("long")
@Timeout(180)
class StalledDriveTest {
    private static final int BLOCK_BYTES = 16 << 10;
    private static final int BLOCKS = 4;
    private static final int PROMPTS = 60;
    private static final byte CANARY = 0x5A;
    private static final long WAIT_NANOS = 60_000_000_000L;

    private final TestFolders folders = new TestFolders();
    private final Gen gen = new Gen(11);
    private final SaveResult result = new SaveResult();
    private final List<StallingFolder> drives = new ArrayList<>();
    private final List<Prompt> prompts = new ArrayList<>();
    private StoreOptions options;
    private KvStore store;
    private FamilyHandle family;
    private long payloadSeed;
    private MemoryRegion memory;

    @BeforeEach
    void allocate() {
        memory = MemoryRegion.anonymous((long) BLOCKS * BLOCK_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
    }

    private void open(int count) {
        List<HostFolder> real = new ArrayList<>();
        drives.clear();
        if (options == null) {
            options = count == 1
                    ? StoreOptions.in(folders.make("a"))
                    : StoreOptions.in(folders.make("a"), folders.make("b"));
            options.poolBytes(2 << 20)
                    .capBytes((long) count * (24 << 20))
                    .segmentBytes(128 << 10)
                    .blockBytesLargest(BLOCK_BYTES)
                    .driveTimeoutMillis(3_000)
                    .driveProbeMillisMax(500)
                    .restoreTimeoutMillis(600_000);
        }
        options.folders().forEach(path -> real.add(HostFolder.open(path)));
        real.forEach(folder -> drives.add(new StallingFolder(folder)));
        store = KvStore.open(options, new DataFolders(drives));
        assertTrue(store.awaitWhole(60_000), "the index is never whole");
        family = store.openFamily(Modelled.family(BLOCK_BYTES).build());
        payloadSeed = Gen.mix(family.shard(0).namespace().id64());
    }

    @AfterEach
    void close() {
        drives.forEach(StallingFolder::release);
        store.close();
        await(() -> KvStore.closedUndrained() == 0, "memory is never freed");
        memory.close();
        folders.close();
    }

    private static void await(BooleanSupplier condition, String otherwise) {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - start < WAIT_NANOS, otherwise);
            LockSupport.parkNanos(1_000_000);
        }
    }

    private void awaitState(int drive, TierState state) {
        await(() -> store.drives().get(drive).state() == state, "never " + state);
    }

    private void save(Prompt prompt) {
        for (int i = 0; i < BLOCKS; i++) {
            Payload.fill(memory, (long) i * BLOCK_BYTES, BLOCK_BYTES, prompt.key0(i), payloadSeed);
        }
        store.save(family.shard(0), null, 0, prompt.keys, 0, BLOCKS, Blocks.of(memory), result);
    }

    private Prompt saved() {
        Prompt prompt = Prompt.random(gen, BLOCKS);
        save(prompt);
        return prompt;
    }

    /** Three times the pool, so that the first ones lie on drives only. */
    private void fill() {
        while (prompts.size() < PROMPTS + 40) {
            Prompt prompt = saved();
            assertEquals(BLOCKS, result.accepted(), result::toString);
            SyncOutcome outcome = store.sync(result.position(), Level.DURABLE, 60_000);
            if (outcome == SyncOutcome.REACHED) {
                prompts.add(prompt);
            } else { // the real drive below, which others use, has stalled for longer than these tests give it
                assertEquals(SyncOutcome.FAILED, outcome);
                await(() -> store.stats().drivesOut() == 0, "a drive never comes back");
            }
        }
    }

    private int restore(Prompt prompt) {
        memory.fill(0, memory.bytes(), CANARY);
        try (Lease lease = store.query(family, prompt.keys, 0, BLOCKS)) {
            int restored = store.restore(lease, family.shard(0), 0, lease.blocks(), Blocks.of(memory));
            for (int i = 0; i < restored; i++) {
                long at = (long) i * BLOCK_BYTES;
                assertEquals(
                        Payload.NO_DIFFERENCE,
                        Payload.firstDifference(memory, at, BLOCK_BYTES, prompt.key0(i), payloadSeed),
                        "wrong bytes in block " + i);
            }
            return restored;
        }
    }

    private void assertCanary() {
        for (long i = 0; i < memory.bytes(); i++) {
            assertEquals(CANARY, memory.getByte(i), "a late read has landed in memory that was given away");
        }
    }

    @Test
    void reported_vllm_54363_nobodyWaitsForAHungDrive() {
        open(1);
        fill();
        assertTrue(store.stats().ownBytes() > 0);
        drives.get(0).stall();
        assertEquals(0, restore(prompts.get(0)), "restored from a drive that hangs");
        awaitState(0, TierState.OUT);
        try (Lease lease = store.query(family, prompts.get(1).keys, 0, BLOCKS)) {
            assertEquals(0, lease.blocks(), "a block was offered that lies on a drive that hangs only");
        }
        Prompt during = null;
        for (int i = 0; i < 200; i++) { // more than the pool holds
            during = saved();
            assertEquals(BLOCKS, result.accepted(), result::toString);
            assertEquals(0, result.admitted());
            assertEquals(BLOCKS, restore(during));
            assertTrue(store.stats().ownBytes() > 0);
        }
        assertEquals(1, store.stats().drivesOut());
        assertEquals(200L * BLOCKS, store.stats().savedWithoutDriveBlocks());
        assertTrue(store.sync(store.acceptedPosition(), Level.DURABLE, 60_000) != SyncOutcome.TIMED_OUT);
        memory.fill(0, memory.bytes(), CANARY);
        drives.get(0).release();
        awaitState(0, TierState.SERVING);
        assertCanary();
        assertEquals(0, store.stats().drivesOut());
        assertEquals(BLOCKS, restore(prompts.get(0)), "what the drive holds is there again");
        saved();
        assertEquals(BLOCKS, result.admitted());
        store.sync(result.position(), Level.DURABLE, 60_000); // may have to tell of the outage
        assertEquals(SyncOutcome.REACHED, store.sync(result.position(), Level.DURABLE, 60_000));
    }

    @Test
    void reported_vllm_pr_49850_blocksThatAHungDriveNeverWroteAreToldBySync() {
        open(1);
        fill();
        drives.get(0).stall();
        long last = 0;
        for (int i = 0; i < 5; i++) {
            saved();
            last = Math.max(last, result.position());
        }
        assertEquals(SyncOutcome.FAILED, store.sync(last, Level.WRITTEN, 60_000), "a lost write is waited for");
        drives.get(0).release();
        awaitState(0, TierState.SERVING);
        await(() -> store.writtenPosition() >= last(), "the position never passes what was given up");
        saved();
        long position = result.position();
        await(() -> store.sync(position, Level.WRITTEN, 1_000) == SyncOutcome.REACHED, "no sync succeeds any more");
    }

    @Test
    void whoListensBeginsAnewWhenADriveGoesOutAndWhenItIsBack() {
        open(1);
        HeldBlocks listener = new HeldBlocks(store);
        fill();
        awaitAsFound(listener);
        assertEquals(prompts.size() * BLOCKS, listener.count(), "nothing was evicted from the drive");
        int begun = listener.begun();
        drives.get(0).stall();
        restore(prompts.get(0));
        awaitState(0, TierState.OUT);
        awaitAsFound(listener);
        assertTrue(listener.begun() > begun, "millions of blocks may be out of reach at once");
        begun = listener.begun();
        assertTrue(listener.count() < prompts.size() * BLOCKS / 2, listener.count() + " blocks in a pool for a third");
        for (int i = 0; i < 200; i++) { // more than the pool holds
            prompts.add(saved());
        }
        awaitAsFound(listener);
        assertTrue(listener.removed() > 0, "blocks whose only copy is out of reach have gone");
        drives.get(0).release();
        awaitState(0, TierState.SERVING);
        awaitAsFound(listener);
        assertTrue(listener.begun() > begun, "and back at once");
        assertTrue(listener.holds(family.shard(0), prompts.get(0), 0), "what the drive holds is there again");
    }

    /** Until what is believed is what a query finds of each block. */
    private void awaitAsFound(HeldBlocks listener) {
        await(
                () -> {
                    listener.update();
                    for (Prompt prompt : prompts) {
                        for (int block = 0; block < BLOCKS; block++) {
                            try (Lease lease = store.query(family, prompt.keys, Prompt.keyOffset(block), 1)) {
                                if (lease.blocks() == 1 != listener.holds(family.shard(0), prompt, block)) {
                                    return false;
                                }
                            }
                        }
                    }
                    return true;
                },
                "what is believed is not what is there");
    }

    private long last() {
        return store.acceptedPosition();
    }

    @Test
    void theOtherDriveServesOn() {
        open(2);
        fill();
        drives.get(1).stall();
        for (int i = 0; i < 30; i++) { // some go to either
            saved();
        }
        awaitState(1, TierState.OUT);
        assertEquals(TierState.SERVING, store.drives().get(0).state());
        await(() -> store.sync(store.acceptedPosition(), Level.WRITTEN, 1_000) != SyncOutcome.TIMED_OUT, "sync hangs");
        int fromDrive = 0;
        for (Prompt prompt : prompts.subList(0, PROMPTS)) {
            fromDrive += restore(prompt) > 0 ? 1 : 0;
        }
        assertTrue(fromDrive > PROMPTS / 4, "nothing comes from the drive that is well: " + fromDrive);
        for (int i = 0; i < 50; i++) {
            await(
                    () -> {
                        saved(); // its queue may be full for a moment
                        return result.admitted() == BLOCKS;
                    },
                    "the other drive does not take over");
        }
        long position = result.position();
        drives.get(1).release();
        awaitState(1, TierState.SERVING);
        await(() -> store.sync(position, Level.DURABLE, 1_000) == SyncOutcome.REACHED, "never durable");
        int all = 0;
        for (Prompt prompt : prompts.subList(0, PROMPTS)) {
            all += restore(prompt) == BLOCKS ? 1 : 0;
        }
        assertTrue(all >= PROMPTS - 10, "lost with the outage: " + all + " of " + PROMPTS);
    }

    /** The cap is shared by the drives, whatever they do: each follows as soon as it serves. */
    @Test
    void aSmallerCapIsFollowedByTheDriveThatServesAndLaterByTheOther() {
        open(2);
        fill();
        fill(); // more than the cap holds
        long smaller = 2L * (12 << 20);
        drives.get(1).stallTransfers();
        for (int i = 0; i < 30; i++) {
            saved();
        }
        awaitState(1, TierState.OUT);
        long start = System.nanoTime();
        CapState state = store.capBytes(smaller, 120_000);
        assertTrue(System.nanoTime() - start < 60_000_000_000L, "the drive that is out is waited for");
        assertEquals(smaller, state.capBytes());
        assertEquals(CapCondition.SHRINKING, state.condition(), "the other drive still has what it had");
        assertTrue(allocated(0) <= smaller / 2, "the drive that serves is over its share: " + allocated(0));
        assertTrue(allocated(1) > smaller / 2, "a drive that is out was changed");
        saved();
        assertEquals(BLOCKS, result.accepted());
        drives.get(1).release();
        awaitState(1, TierState.SERVING);
        await(() -> store.capBytes(smaller, 1_000).isWithin(), "never within the cap");
        assertTrue(allocated(1) <= smaller / 2, "over its share: " + allocated(1));
        store.capBytes(2L * (24 << 20), 60_000);
        await(() -> store.stats().capCondition() == CapCondition.WITHIN, "the segments never come back");
        Prompt last = saved();
        assertEquals(BLOCKS, restore(last));
    }

    private long allocated(int drive) {
        return drives.get(drive).allocatedBytes("");
    }

    /** Room for no segment on one drive: the other takes all that is saved. */
    @Test
    void aStarvedDriveLeavesTheWritingToTheOther() throws IOException {
        open(2);
        Path foreign = options.folders().get(0).resolve("foreign");
        Files.write(foreign, new byte[24 << 20]);
        await(() -> store.stats().foreignBytes() >= 24 << 20, "the foreign file is not seen");
        await(() -> allocated(0) <= 26 << 20, "the drive gives nothing up: " + allocated(0));
        for (int i = 0; i < 100; i++) {
            await(
                    () -> {
                        saved();
                        return result.admitted() == BLOCKS;
                    },
                    "not admitted");
            assertEquals(SyncOutcome.REACHED, store.sync(result.position(), Level.DURABLE, 60_000));
        }
        assertEquals(0, store.stats().savedWithoutDriveBlocks());
        Files.delete(foreign);
    }

    @Test
    void aStoreOnAHungDriveClosesAndItsMemoryStaysUntilTheDriveHasLetGo() {
        open(1);
        fill();
        drives.get(0).stall();
        assertEquals(0, restore(prompts.get(0)));
        LockSupport.parkNanos(1_100_000_000); // so that a look at the folder hangs too
        assertTrue(store.stats().ownBytes() > 0);
        memory.fill(0, memory.bytes(), CANARY);
        store.close();
        assertEquals(1, KvStore.closedUndrained());
        drives.get(0).release();
        await(() -> KvStore.closedUndrained() == 0, "memory is never freed");
        assertCanary();
        open(1);
        assertEquals(BLOCKS, restore(prompts.get(PROMPTS)), "what was durable is there after the restart");
    }
}
