package io.orbitkv.store;

import static io.orbitkv.nativeio.ErrorCode.BAD_ARGUMENT;
import static io.orbitkv.nativeio.ErrorCode.BAD_BUFFER;
import static io.orbitkv.nativeio.ErrorCode.BAD_FAMILY;
import static io.orbitkv.nativeio.ErrorCode.BLOCK_TOO_LARGE;
import static io.orbitkv.nativeio.ErrorCode.CLOSED;
import static io.orbitkv.nativeio.ErrorCode.OUT_OF_BOUNDS;
import static io.orbitkv.store.Refusals.nullRefused;
import static io.orbitkv.store.Refusals.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Family;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.util.Arrays;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: a wrong argument or a closed handle at any method of the API is refused with a code and a message that helps,
 * and the store works on as if nothing had happened. Method: call each method wrongly; after every test the store has
 * to save and restore, with every segment of its small pool unpinned.
 */
class ApiMisuseTest {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;
    private static final int BLOCK_BYTES = 8 * KIB;

    private final Gen gen = new Gen(42);
    private final TestFolders folders = new TestFolders();
    private final Prompt prompt = Prompt.random(gen, 4);
    private final SaveResult result = new SaveResult();
    private final MemoryRegion memory = MemoryRegion.anonymous(4L * BLOCK_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
    private final Blocks blocks = Blocks.of(memory);
    private KvStore store;
    private KvStore other;
    private FamilyHandle family;
    private ShardHandle shard;
    private ShardHandle foreign;

    @BeforeEach
    void open() {
        store = KvStore.open(options("store"));
        other = KvStore.open(options("other"));
        family = store.openFamily(Modelled.family(BLOCK_BYTES).build());
        shard = family.shard(0);
        foreign = other.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0);
        saveAll();
    }

    @AfterEach
    void theStoreWorksOn() {
        try {
            worksOn(store, shard);
            assertEquals(0, store.stats().leasesHeld());
        } finally {
            store.close();
            other.close();
            folders.close();
            memory.close();
        }
    }

    private StoreOptions options(String name) {
        return StoreOptions.in(folders.make(name))
                .poolBytes(MIB)
                .capBytes(8 * MIB)
                .segmentBytes(64 * KIB)
                .blockBytesLargest(BLOCK_BYTES);
    }

    /** More than the pool holds is saved and restored: no pin was left behind on any of its segments. */
    private void worksOn(KvStore used, ShardHandle of) {
        try (Modelled modelled = new Modelled(used, of, new Modelled.Model(), 8)) {
            for (int i = 0; i < 40; i++) {
                Prompt next = Prompt.random(gen, 8);
                modelled.saveAll(next, 0, 8);
                assertEquals(8, modelled.restore(next, 0, 8, gen));
            }
            modelled.written();
        }
    }

    private void saveAll() {
        store.save(shard, null, 0, prompt.keys, 0, 4, blocks, result);
        assertEquals(4, result.accepted());
    }

    @Test
    void missingArgumentsAreNamed() {
        nullRefused("options", () -> KvStore.open(null));
        nullRefused("folder", () -> StoreOptions.in(null));
        nullRefused("family", () -> store.openFamily(null));
        nullRefused("shard", () -> store.save(null, null, 0, prompt.keys, 0, 4, blocks, result));
        nullRefused("keys", () -> store.save(shard, null, 0, null, 0, 4, blocks, result));
        nullRefused("source", () -> store.save(shard, null, 0, prompt.keys, 0, 4, null, result));
        nullRefused("into", () -> store.save(shard, null, 0, prompt.keys, 0, 4, blocks, null));
        nullRefused("family", () -> store.query(null, prompt.keys, 0, 4));
        nullRefused("keys", () -> store.query(family, null, 0, 4));
        nullRefused("family", () -> store.clear(null));
        nullRefused("shard", () -> store.locate(null, prompt.keys, 0));
        nullRefused("key", () -> store.locate(shard, null, 0));
        nullRefused("level", () -> store.sync(1, null, 0));
        nullRefused("bytes", () -> Blocks.of((byte[]) null));
        nullRefused("memory", () -> Blocks.of((MemoryRegion) null));
        nullRefused("starts", () -> Blocks.unset().setScattered(memory, null));
        try (Lease lease = store.query(family, prompt.keys, 0, 4)) {
            nullRefused("lease", () -> store.restore(null, shard, 0, 4, blocks));
            nullRefused("shard", () -> store.restore(lease, null, 0, 4, blocks));
            nullRefused("destination", () -> store.restore(lease, shard, 0, 4, null));
        }
    }

    @Test
    void keysThatDoNotLieInTheirBufferAreRefused() {
        int[][] offsetsAndCounts = {{0, 5}, {1, 4}, {-1, 1}, {0, -1}, {128, 1}, {4096, 0}, {0, Integer.MAX_VALUE}};
        for (int[] wrong : offsetsAndCounts) {
            refused(BAD_BUFFER, () -> store.query(family, prompt.keys, wrong[0], wrong[1]), "keys", "128 bytes");
            refused(
                    BAD_BUFFER,
                    () -> store.save(shard, null, 0, prompt.keys, wrong[0], wrong[1], blocks, result),
                    "keys",
                    "128 bytes");
        }
        refused(BAD_BUFFER, () -> store.save(shard, prompt.keys, 97, prompt.keys, 0, 1, blocks, result), "parent");
        refused(BAD_BUFFER, () -> store.save(shard, prompt.keys, -1, prompt.keys, 0, 1, blocks, result), "parent");
        refused(BAD_BUFFER, () -> store.locate(shard, prompt.keys, 97), "key");
        try (Lease nothing = store.query(family, prompt.keys, 128, 0)) {
            assertEquals(0, nothing.blocks());
            assertFalse(nothing.isLive());
            assertEquals(0, store.restore(nothing, shard, 0, 0, blocks));
        }
        store.save(shard, null, 0, prompt.keys, 128, 0, blocks, result);
        assertEquals(0, result.accepted() + result.present() + result.dropped());
    }

    @Test
    void sourcesAndDestinationsWithoutRoomAreRefused() {
        byte[] array = new byte[4 * BLOCK_BYTES];
        MemoryRegion closed = MemoryRegion.anonymous(4L * BLOCK_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
        closed.close();
        Blocks[] wrong = {
            Blocks.unset(),
            Blocks.of(new byte[4 * BLOCK_BYTES - 1]),
            Blocks.of(array).set(array, 1),
            Blocks.of(array).set(array, -1),
            Blocks.of(memory).set(memory, 1),
            Blocks.of(memory).set(memory, -4096),
            Blocks.of(memory).set(memory, Long.MAX_VALUE),
            Blocks.of(memory).setScattered(memory, new long[3]),
            Blocks.of(memory).setScattered(memory, new long[] {0, 1, 2, 3 * BLOCK_BYTES + 1}),
            Blocks.of(memory).setScattered(memory, new long[] {0, 1, -2, 3}),
            Blocks.of(closed),
        };
        Prompt fresh = Prompt.random(gen, 4);
        try (Lease lease = store.query(family, prompt.keys, 0, 4)) {
            assertEquals(4, lease.blocks());
            for (Blocks place : wrong) {
                refused(BAD_BUFFER, () -> store.save(shard, null, 0, fresh.keys, 0, 4, place, result));
                refused(BAD_BUFFER, () -> store.restore(lease, shard, 0, 4, place));
            }
        }
        try (Lease lease = store.query(family, fresh.keys, 0, 4)) {
            assertEquals(0, lease.blocks(), "nothing of it was saved");
        }
    }

    @Test
    void aSourceThatGoesAwayDuringASaveLeavesNothingPinned() {
        long[] starts = new long[8];
        for (int attempt = 0; attempt < 60; attempt++) {
            Arrays.fill(starts, 0);
            Prompt fresh = Prompt.random(gen, 8);
            UnsafeBuffer keys = new UnsafeBuffer(fresh.keys) {
                @Override
                public long getLong(int index) {
                    starts[5] = Long.MAX_VALUE / 2; // looked at after the sizes were checked, before blocks are copied
                    return super.getLong(index);
                }
            };
            Blocks source = Blocks.unset().setScattered(memory, starts);
            refused(OUT_OF_BOUNDS, () -> store.save(shard, null, 0, keys, 0, 8, source, result));
            try (Lease lease = store.query(family, fresh.keys, 0, 8)) {
                assertEquals(0, lease.blocks(), "a save that failed is all or nothing");
            }
        }
    }

    @Test
    void aDestinationThatGoesAwayDuringARestoreLeavesNothingPinned() {
        long[] starts = new long[4];
        int[] readsUntilBroken = {Integer.MAX_VALUE};
        StoreOptions options = options("stepped");
        try (KvStore stepped = KvStore.openStepped(
                options,
                HostFolder.open(options.folder()),
                () -> {
                    // A restore reads the clock as it begins, and for the lease after the sizes were checked.
                    if (--readsUntilBroken[0] == 0) {
                        starts[2] = Long.MAX_VALUE / 2;
                    }
                    return System.nanoTime();
                },
                7)) {
            FamilyHandle of = stepped.openFamily(Modelled.family(BLOCK_BYTES).build());
            stepped.save(of.shard(0), null, 0, prompt.keys, 0, 4, blocks, result);
            assertEquals(SyncOutcome.REACHED, stepped.sync(result.position(), Level.WRITTEN, 10_000));
            for (int attempt = 0; attempt < 40; attempt++) {
                if (attempt == 20) {
                    worksOn(stepped, of.shard(0)); // from here on the blocks come from the drive
                }
                Arrays.fill(starts, 0);
                Blocks destination = Blocks.unset().setScattered(memory, starts);
                try (Lease lease = stepped.query(of, prompt.keys, 0, 4)) {
                    assertEquals(4, lease.blocks());
                    assertEquals(attempt < 20 ? 4 : 0, lease.hostBlocks());
                    readsUntilBroken[0] = 2;
                    refused(OUT_OF_BOUNDS, () -> stepped.restore(lease, of.shard(0), 0, 4, destination));
                } finally {
                    readsUntilBroken[0] = Integer.MAX_VALUE;
                }
            }
            for (int round = 0; round < 4; round++) { // the log goes round too: no segment of it is pinned
                worksOn(stepped, of.shard(0));
            }
            assertTrue(stepped.stats().nvmeSegmentsReused() > 0, stepped.stats()::toString);
            try (Lease lease = stepped.query(of, prompt.keys, 0, 4)) {
                assertEquals(0, lease.blocks(), "its segment was given up");
            }
        }
    }

    @Test
    void handlesOfAnotherStoreAreRefused() {
        refused(BAD_FAMILY, () -> store.save(foreign, null, 0, prompt.keys, 0, 4, blocks, result), "another store");
        refused(BAD_FAMILY, () -> store.query(foreign.family(), prompt.keys, 0, 4), "another store");
        refused(BAD_FAMILY, () -> store.clear(foreign.family()), "another store");
        refused(BAD_FAMILY, () -> store.locate(foreign, prompt.keys, 0), "another store");
        other.save(foreign, null, 0, prompt.keys, 0, 4, blocks, result);
        try (Lease lease = other.query(foreign.family(), prompt.keys, 0, 4)) {
            refused(BAD_FAMILY, () -> store.restore(lease, shard, 0, 4, blocks), "another family");
            refused(BAD_FAMILY, () -> store.restore(lease, foreign, 0, 4, blocks), "another store");
        }
        FamilyHandle second = store.openFamily(Modelled.family(4096).build());
        try (Lease lease = store.query(family, prompt.keys, 0, 4)) {
            refused(BAD_FAMILY, () -> store.restore(lease, second.shard(0), 0, 4, blocks), "another family");
        }
    }

    @Test
    void blocksOutsideOfALeaseAndClosedLeasesAreRefused() {
        Lease lease = store.query(family, prompt.keys, 0, 3);
        int[][] wrong = {{0, 4}, {3, 1}, {-1, 1}, {0, -1}, {Integer.MAX_VALUE, 1}, {1, Integer.MAX_VALUE}};
        for (int[] range : wrong) {
            refused(BAD_ARGUMENT, () -> store.restore(lease, shard, range[0], range[1], blocks), "lease's 3");
        }
        assertEquals(0, store.restore(lease, shard, 3, 0, blocks));
        assertEquals(3, store.restore(lease, shard, 0, 3, blocks));
        lease.close();
        lease.close();
        refused(CLOSED, () -> store.restore(lease, shard, 0, 3, blocks), "query again");
    }

    @Test
    void positionsTimeoutsAndNumbersOutOfRangeAreRefused() {
        long last = store.acceptedPosition();
        refused(BAD_ARGUMENT, () -> store.sync(last + 1, Level.WRITTEN, 10), "position", "the last one is " + last);
        refused(BAD_ARGUMENT, () -> store.sync(-1, Level.WRITTEN, 10), "position -1");
        refused(BAD_ARGUMENT, () -> store.sync(last, Level.WRITTEN, -1), "-1 ms");
        assertEquals(SyncOutcome.REACHED, store.sync(last, Level.DURABLE, Long.MAX_VALUE), "forever is a wait, too");
        assertEquals(SyncOutcome.REACHED, store.sync(0, Level.DURABLE, 0));
        refused(BAD_ARGUMENT, () -> store.useSequence(-1), "asked for -1");
        refused(BAD_ARGUMENT, () -> store.useSequence(1 << 30), "segments 0 to ");
        refused(BAD_ARGUMENT, () -> family.shard(-1), "asked for -1");
        refused(BAD_ARGUMENT, () -> family.shard(1), "shards 0 to 0");
        refused(BAD_ARGUMENT, () -> store.allocate(0), "at least 1 byte");
        refused(BAD_ARGUMENT, () -> store.allocate(-1), "at least 1 byte");
    }

    @Test
    void familiesThatAreIncompleteOrTooLargeAreRefused() {
        refused(BAD_FAMILY, () -> Family.builder().build(), "lacks model id", "layout", "not guessed");
        refused(BAD_FAMILY, () -> Modelled.family(BLOCK_BYTES).tpSize(0).build(), "tp size");
        refused(BAD_FAMILY, () -> Modelled.family(-1).build(), "block bytes", "-1");
        refused(BAD_FAMILY, () -> Modelled.family(Integer.MAX_VALUE).build(), "block bytes");
        refused(
                BAD_FAMILY,
                () -> store.openFamily(Modelled.family(BLOCK_BYTES)
                        .layout(new byte[60_000])
                        .tenantSalt(new byte[60_000])
                        .build()));
        int fits = 13 * 4096; // a segment of 16 pages but header, batch header and footer
        assertEquals(1, store.openFamily(Modelled.family(fits).build()).shards());
        refused(
                BLOCK_TOO_LARGE,
                () -> store.openFamily(Modelled.family(fits + 1).build()),
                "block of " + (fits + 1) + " bytes",
                "65536",
                "larger segments");
    }

    @Test
    void optionsOutOfRangeAreRefused() {
        StoreOptions options = StoreOptions.in(folders.make("options"));
        refused(BAD_ARGUMENT, () -> options.poolBytes(0), "pool bytes", "got 0");
        refused(BAD_ARGUMENT, () -> options.capBytes(-1), "cap bytes");
        refused(BAD_ARGUMENT, () -> options.segmentBytes(65_537), "power of two");
        refused(BAD_ARGUMENT, () -> options.segmentBytes(32_768), "segment bytes");
        refused(BAD_ARGUMENT, () -> options.blockBytesLargest(0), "block bytes");
        refused(BAD_ARGUMENT, () -> options.openSegments(17), "open segments");
        refused(BAD_ARGUMENT, () -> options.flushIntervalMillis(0), "in ms");
        refused(BAD_ARGUMENT, () -> options.indexBlocksMax(63), "index blocks");
        refused(BAD_ARGUMENT, () -> options.leaseMillis(0), "in ms");
        refused(BAD_ARGUMENT, () -> options.leasesMax(0), "leases");
        refused(BAD_ARGUMENT, () -> options.queryBlocksMax(0), "query blocks");
        refused(BAD_ARGUMENT, () -> options.writeQueueBlocks(-1), "write queue");
        refused(BAD_ARGUMENT, () -> options.ringDepth(3), "ring depth");
        refused(BAD_ARGUMENT, () -> options.restoreTimeoutMillis(0), "in ms");
        refused(BAD_ARGUMENT, () -> options.lockWaitMillis(-1), "in ms");
        nullRefused("durability", () -> options.durability(null));
        nullRefused("page kind", () -> options.pageKind(null));
        nullRefused("probe", () -> options.probe(null));
    }

    @Test
    void everyMethodOfAClosedStoreSaysSo() {
        Lease lease = other.query(foreign.family(), prompt.keys, 0, 4);
        other.save(foreign, null, 0, prompt.keys, 0, 4, blocks, result);
        Lease held = other.query(foreign.family(), prompt.keys, 0, 4);
        assertEquals(4, held.blocks());
        MemoryRegion allocated = other.allocate(4096);
        other.close();
        other.close();
        refused(CLOSED, () -> other.openFamily(Modelled.family(4096).build()), "open it again");
        refused(CLOSED, () -> other.save(foreign, null, 0, prompt.keys, 0, 4, blocks, result), "open it again");
        refused(CLOSED, () -> other.query(foreign.family(), prompt.keys, 0, 4), "open it again");
        refused(CLOSED, () -> other.restore(held, foreign, 0, 4, blocks), "open it again");
        refused(CLOSED, () -> other.sync(1, Level.WRITTEN, 0), "open it again");
        refused(CLOSED, () -> other.clear(foreign.family()), "open it again");
        refused(CLOSED, () -> other.allocate(4096), "open it again");
        refused(CLOSED, () -> other.locate(foreign, prompt.keys, 0), "open it again");
        refused(CLOSED, () -> other.useSequence(0), "open it again");
        refused(CLOSED, other::stats, "open it again");
        refused(CLOSED, other::step, "open it again");
        refused(OUT_OF_BOUNDS, () -> allocated.getByte(0), "closed");
        // What only reads numbers goes on answering, and a lease can still be given back.
        assertEquals(other.acceptedPosition(), other.durablePosition());
        assertEquals(other.acceptedPosition(), other.writtenPosition());
        assertEquals(1, other.openReport().epoch());
        held.close();
        lease.close();
    }
}
