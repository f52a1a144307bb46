package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.HeapUse;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: whoever maps the arena reads the right bytes or finds out that he was overtaken, and can write nothing. Method: the
 * arena is mapped through its descriptor, as another process would.
 */
class ArenaTest {
    private static final int BLOCK_BYTES = 4 << 10;
    private static final int BLOCKS = 8;
    private static final long LEASE_MILLIS = 1_000;

    private final TestFolders folders = new TestFolders();
    private final Gen gen = new Gen(Seed.of(ArenaTest.class));
    private long aheadNanos;

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private KvStore open(boolean shared) {
        StoreOptions options = WholeStore.optionsIn(folders.make("arena"))
                .poolBytes(1 << 20)
                .capBytes(16 << 20)
                .segmentBytes(64 << 10)
                .blockBytesLargest(BLOCK_BYTES)
                .leaseMillis(LEASE_MILLIS)
                .sharedPool(shared);
        return KvStore.openStepped(options, HostFolder.open(options.folder()), () -> System.nanoTime() + aheadNanos, 7);
    }

    private static Modelled shard(KvStore store) {
        return new Modelled(
                store, store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0), new Modelled.Model(), BLOCKS);
    }

    private static Lease query(Modelled shard, Prompt prompt) {
        return shard.store.query(shard.shard.family(), prompt.keys, 0, prompt.blocks());
    }

    @Test
    void placesHoldTheBlocksUntilTheirGenerationPasses() {
        try (KvStore store = open(true);
                Modelled shard = shard(store);
                MemoryRegion pool = MemoryRegion.ofDescriptor(
                        store.arena().pool().fd(), store.arena().pool().bytes(), false);
                MemoryRegion generations = MemoryRegion.ofDescriptor(
                        store.arena().generations().fd(),
                        store.arena().generations().bytes(),
                        false);
                MemoryRegion key = MemoryRegion.anonymous(Prompt.KEY_BYTES, PageKind.SMALL, MemoryPurpose.TOOL)) {
            Prompt prompt = Prompt.random(gen, BLOCKS);
            shard.saveAll(prompt, 0, BLOCKS);
            BlockPlaces places = new BlockPlaces(BLOCKS);
            Lease lease = query(shard, prompt);
            store.placesInHost(lease, shard.shard, 0, BLOCKS, places);
            for (int i = 0; i < BLOCKS; i++) {
                assertTrue(places.isInHost(i));
                byte[] bytes = new byte[Prompt.KEY_BYTES];
                prompt.keys.getBytes(Prompt.keyOffset(i), bytes);
                key.copyFrom(0, bytes, 0, bytes.length);
                long at = (long) places.segment(i) * store.arena().segmentBytes() + places.offsetInSegment(i);
                int checksum = new BlockChecksum()
                        .update(key, 0, Prompt.KEY_BYTES)
                        .update(pool, at, BLOCK_BYTES)
                        .value();
                assertEquals(places.checksum(i), checksum);
                assertEquals(places.generation(i), generations.getInt((long) places.segment(i) * Integer.BYTES));
            }
            for (int i = 0; i < 100; i++) { // several times the pool
                shard.saveAll(Prompt.random(gen, BLOCKS), 0, BLOCKS);
                shard.written();
            }
            for (int i = 0; i < BLOCKS; i++) {
                assertTrue(
                        places.generation(i) != generations.getInt((long) places.segment(i) * Integer.BYTES),
                        "a reader of block " + i + " would not find out");
            }
            lease.close();
        }
    }

    @Test
    void nobodyElseMayWriteTheArena() {
        try (KvStore store = open(true)) {
            for (MemoryRegion memory :
                    new MemoryRegion[] {store.arena().pool(), store.arena().generations()}) {
                assertThrows(
                        OrbitKvException.class, () -> MemoryRegion.ofDescriptor(memory.fd(), memory.bytes(), true));
                assertEquals(1 + 2 + 4 + 16, memory.seals());
            }
        }
        try (KvStore store = open(false)) {
            assertThrows(OrbitKvException.class, store::arena);
        }
    }

    @Test
    void aLeaseThatIsRenewedLasts() {
        try (KvStore store = open(true);
                Modelled shard = shard(store)) {
            Prompt prompt = Prompt.random(gen, BLOCKS);
            shard.saveAll(prompt, 0, BLOCKS);
            Lease lease = query(shard, prompt);
            BlockPlaces places = new BlockPlaces(BLOCKS);
            for (int i = 0; i < 3; i++) {
                aheadNanos += LEASE_MILLIS * 600_000;
                assertTrue(lease.renew());
            }
            store.placesInHost(lease, shard.shard, 2, 3, places);
            assertTrue(places.isInHost(0));
            aheadNanos += LEASE_MILLIS * 1_000_000 + 1;
            assertFalse(lease.renew(), "its time is over");
            lease.close();
            assertFalse(lease.renew());
            assertFalse(query(shard, Prompt.random(gen, 1)).renew(), "a miss");
        }
    }

    @Test
    void findingPlacesAllocatesNothing() {
        try (KvStore store = open(true);
                Modelled shard = shard(store)) {
            Prompt prompt = Prompt.random(gen, BLOCKS);
            shard.saveAll(prompt, 0, BLOCKS);
            BlockPlaces places = new BlockPlaces(BLOCKS);
            try (Lease lease = query(shard, prompt)) {
                long bytes = HeapUse.fewestBytes(20, () -> {
                    for (int i = 0; i < 1_000; i++) {
                        store.placesInHost(lease, shard.shard, 0, BLOCKS, places);
                        lease.renew();
                        store.isStored(shard.shard, prompt.keys, 0);
                    }
                });
                assertEquals(0, bytes);
            }
        }
    }
}
