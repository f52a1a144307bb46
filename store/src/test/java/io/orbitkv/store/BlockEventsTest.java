package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.PageKind;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: what a listener believes is, at rest, what queries find, block by block. Method: a real store that is far too small
 * for what it is given: random saves, restores, clears, wrong bytes, changes of the cap, restarts. Replay one failure with
 * {@code -Dorbitkv.seed=N}.
 */
@Timeout(300)
class BlockEventsTest {
    private static final int BLOCK_BYTES = 4096;
    private static final long CAP_BYTES = 16 << 20;
    private static final long WAIT_NANOS = 60_000_000_000L;

    /** A shard of a family, and all that it was ever given. */
    private record Given(Modelled modelled, List<Prompt> prompts) {}

    private final TestFolders folders = new TestFolders();
    private final Gen gen = new Gen(Seed.of(BlockEventsTest.class));
    private final List<Given> all = new ArrayList<>();
    private final List<Modelled> opened = new ArrayList<>();

    @AfterEach
    void removeFolders() {
        opened.forEach(Modelled::close);
        folders.close();
    }

    private static StoreOptions options(Path folder) {
        return WholeStore.optionsIn(folder)
                .poolBytes(1 << 20)
                .capBytes(CAP_BYTES)
                .segmentBytes(64 << 10)
                .pageKind(PageKind.SMALL)
                .verifyHost(true)
                .blockBytesLargest(BLOCK_BYTES);
    }

    /** Two families, one of them with two shards, with what they were given in earlier lives. */
    private void open(KvStore store) {
        List<ShardHandle> shards = new ArrayList<>();
        shards.add(store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0));
        FamilyHandle split =
                store.openFamily(Modelled.family(BLOCK_BYTES).tpSize(2).build());
        shards.add(split.shard(0));
        shards.add(split.shard(1));
        List<Given> before = List.copyOf(all);
        all.clear();
        for (ShardHandle shard : shards) {
            Modelled modelled = new Modelled(store, shard, new Modelled.Model(), 64);
            opened.add(modelled);
            all.add(new Given(
                    modelled,
                    before.isEmpty()
                            ? new ArrayList<>()
                            : before.get(all.size()).prompts()));
        }
    }

    private void work(KvStore store, int steps) {
        for (int step = 0; step < steps; step++) {
            Given given = gen.pick(all);
            int dice = gen.below(100);
            if (dice < 60 || given.prompts.isEmpty()) {
                Prompt prompt = given.prompts.isEmpty() || gen.coin()
                        ? Prompt.random(gen, gen.size(1, 64))
                        : gen.pick(given.prompts).fork(gen, gen.below(20), 20 + gen.below(40));
                given.prompts.add(prompt);
                given.modelled.saveAll(prompt, 0, prompt.blocks());
            } else if (dice < 75) {
                Prompt prompt = gen.pick(given.prompts); // one that has left is stored again
                given.modelled.saveAll(prompt, 0, prompt.blocks());
            } else if (dice < 94) {
                Prompt prompt = gen.pick(given.prompts);
                given.modelled.restore(prompt, 0, prompt.blocks(), gen);
            } else if (dice < 98) {
                Prompt prompt = given.prompts.get(given.prompts.size() - 1);
                if (store.flipInHost(given.modelled.shard, prompt.keys, 0)) {
                    given.modelled.restore(prompt, 0, 1, gen);
                }
            } else if (dice < 99) {
                store.clear(given.modelled.shard.family());
            } else {
                store.capBytes(gen.coin() ? CAP_BYTES : CAP_BYTES / 2, 10_000);
            }
        }
    }

    /** How many of all blocks that were ever saved a query finds; the listener believes in these and no others. */
    private int differing(HeldBlocks listener) {
        listener.update();
        int differing = 0;
        for (Given given : all) {
            for (Prompt prompt : given.prompts) {
                for (int block = 0; block < prompt.blocks(); block++) {
                    boolean found =
                            given.modelled.store.isStored(given.modelled.shard, prompt.keys, Prompt.keyOffset(block));
                    differing += found == listener.holds(given.modelled.shard, prompt, block) ? 0 : 1;
                }
            }
        }
        return differing;
    }

    private void awaitEqual(HeldBlocks listener) {
        long start = System.nanoTime();
        int differing = differing(listener);
        while (differing > 0) {
            assertTrue(System.nanoTime() - start < WAIT_NANOS, differing + " blocks differ from what is believed");
            LockSupport.parkNanos(20_000_000);
            differing = differing(listener);
        }
    }

    @Test
    void whatAListenerBelievesIsWhatQueriesFind() {
        Path folder = folders.make("exact");
        try (KvStore store = WholeStore.open(options(folder))) {
            HeldBlocks listener = new HeldBlocks(store);
            open(store);
            for (int round = 0; round < 4; round++) {
                work(store, 120);
                awaitEqual(listener);
            }
            assertTrue(listener.removed() > 500, "little was evicted: " + listener.removed());
            assertTrue(listener.begun() <= 2, "begun " + listener.begun() + " times");
            HeldBlocks late = new HeldBlocks(store); // in place of the other
            awaitEqual(late);
            assertEquals(listener.count(), late.count());
            assertEquals(1, late.begun());
        }
        try (KvStore store = KvStore.open(options(folder))) {
            HeldBlocks listener = new HeldBlocks(store);
            open(store);
            listener.update(); // perhaps before the index is whole
            work(store, 40);
            assertTrue(store.awaitWhole(60_000));
            awaitEqual(listener);
            assertNotEquals(0, listener.count());
            store.listen(null);
            long before = listener.removed();
            work(store, 60);
            assertEquals(before, listener.removed(), "nobody listens");
        }
    }

    @Test
    void aBlockThatComesBackIsToldBehindItsRemoval() {
        try (KvStore store = WholeStore.open(options(folders.make("back")))) {
            List<String> told = new ArrayList<>();
            open(store);
            Given given = all.get(0);
            Prompt first = Prompt.random(gen, 1);
            store.listen(new BlockEvents() {
                @Override
                public void stored(byte[] familyId, int shard, long key0, long key1, long key2, long key3) {
                    add(key0, "stored");
                }

                @Override
                public void removed(byte[] familyId, int shard, long key0, long key1) {
                    add(key0, "removed");
                }

                @Override
                public void cleared(byte[] familyId) {
                    told.add("cleared");
                }

                @Override
                public void begunAnew() {}

                private void add(long key0, String what) {
                    // A block that is told of again while it is stored says nothing new.
                    if (key0 == first.key0(0)
                            && (told.isEmpty() || !told.get(told.size() - 1).equals(what))) {
                        told.add(what);
                    }
                }
            });
            List<String> expected = new ArrayList<>();
            for (int turn = 0; turn < 5; turn++) {
                given.modelled.saveAll(first, 0, 1);
                expected.add("stored");
                for (int i = 0; given.modelled.store.isStored(given.modelled.shard, first.keys, 0); i++) {
                    assertTrue(i < 100_000, "it is never evicted");
                    given.modelled.saveAll(Prompt.random(gen, 64), 0, 64);
                }
                expected.add("removed");
            }
            given.modelled.saveAll(first, 0, 1);
            expected.add("stored");
            store.clear(given.modelled.shard.family());
            expected.add("cleared");
            assertEquals(expected, told);
        }
    }
}
