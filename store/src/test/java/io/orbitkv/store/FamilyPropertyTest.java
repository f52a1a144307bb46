package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Family;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: blocks of any size come back byte by byte from both tiers; a hit exists only where every shard of a family has
 * the block; families never see each other's blocks, and a clear forgets those of one family only. Method: a real store
 * beside a set of keys for each shard, random operations from one seed.
 */
class FamilyPropertyTest {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;
    private static final int BLOCKS_MAX = 24;

    private final Gen gen = new Gen(Seed.of(FamilyPropertyTest.class));
    private final TestFolders folders = new TestFolders();

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private static StoreOptions options(Path folder) {
        return WholeStore.optionsIn(folder)
                .poolBytes(2 * MIB)
                .capBytes(64 * MIB)
                .segmentBytes(256 * KIB);
    }

    /** 249,856 bytes are the pages of a segment but its header, a batch header and a footer. */
    @ParameterizedTest(name = "{0} bytes")
    @ValueSource(ints = {1, 7, 4095, 4096, 4097, 5000, 65_536, 100_001, 249_856})
    void blocksOfAnySizeComeBackFromMemoryFromTheDriveAndAfterARestart(int blockBytes) {
        Path folder = folders.make("sizes");
        List<Prompt> prompts = new ArrayList<>();
        Modelled.Model model = new Modelled.Model();
        // Three times the pool and a third of the cap: eviction from memory, none from the drive.
        int padded = (blockBytes + 4095) / 4096 * 4096;
        int wanted = Math.max(8, Math.min(400, 6 * MIB / padded));
        try (KvStore store = WholeStore.open(options(folder).blockBytesLargest(blockBytes))) {
            ShardHandle shard =
                    store.openFamily(Modelled.family(blockBytes).build()).shard(0);
            try (Modelled modelled = new Modelled(store, shard, model, BLOCKS_MAX)) {
                for (int saved = 0; saved < wanted; ) {
                    Prompt prompt = Prompt.random(gen, gen.size(1, BLOCKS_MAX));
                    prompts.add(prompt);
                    modelled.saveAll(prompt, 0, prompt.blocks());
                    saved += prompt.blocks();
                    assertEquals(prompt.blocks(), modelled.restore(prompt, 0, prompt.blocks(), gen));
                }
                modelled.written();
                restoreAll(modelled, prompts);
                StoreStats stats = store.stats();
                assertTrue(stats.restoredHostBlocks() > 0, stats::toString);
                assertTrue(padded < 65_536 || stats.restoredNvmeBlocks() > 0, stats::toString);
            }
        }
        StoreOptions withoutPromotion =
                options(folder).blockBytesLargest(blockBytes).promotionBytesMax(0);
        try (KvStore store = WholeStore.open(withoutPromotion)) {
            ShardHandle shard =
                    store.openFamily(Modelled.family(blockBytes).build()).shard(0);
            try (Modelled modelled = new Modelled(store, shard, model, BLOCKS_MAX)) {
                restoreAll(modelled, prompts);
                assertEquals(0, store.stats().restoredHostBlocks(), "all came from the drive");
            }
        }
    }

    @Test
    void blocksLargerThanTheOptionsForesawComeBackToo() {
        int blockBytes = 9 * MIB;
        StoreOptions options = WholeStore.optionsIn(folders.make("large"))
                .poolBytes(32 * MIB)
                .capBytes(136 * MIB)
                .segmentBytes(16 * MIB)
                .openSegments(1);
        try (KvStore store = WholeStore.open(options)) {
            ShardHandle shard =
                    store.openFamily(Modelled.family(blockBytes).build()).shard(0);
            try (Modelled modelled = new Modelled(store, shard, new Modelled.Model(), 3)) {
                Prompt prompt = Prompt.random(gen, 3);
                for (int i = 0; i < 3; i++) {
                    modelled.saveAll(prompt, i, 1); // the pool holds two
                    modelled.written();
                }
                assertTimeoutPreemptively(
                        Duration.ofSeconds(30), () -> assertEquals(3, modelled.restore(prompt, 0, 3, gen)));
                assertTrue(store.stats().restoredNvmeBlocks() > 0, store.stats()::toString);
            }
        }
    }

    private void restoreAll(Modelled modelled, List<Prompt> prompts) {
        for (Prompt prompt : prompts) {
            int from = gen.below(prompt.blocks());
            assertEquals(prompt.blocks(), modelled.restore(prompt, 0, prompt.blocks(), gen));
            assertEquals(prompt.blocks() - from, modelled.restore(prompt, from, prompt.blocks() - from, gen));
        }
    }

    @Test
    void aHitExistsOnlyWhereEveryShardHasTheBlockAndOtherFamiliesAndClearsChangeNothing() {
        Path folder = folders.make("families");
        List<Family> families = List.of(
                Modelled.family(4 * KIB).scope("one").build(),
                Modelled.family(4 * KIB).scope("two").tpSize(2).build(),
                Modelled.family(4 * KIB).scope("four").tpSize(2).ppSize(2).build(),
                Modelled.family(4 * KIB)
                        .scope("one copy")
                        .tpSize(4)
                        .replicated(true)
                        .build(),
                Modelled.family(4 * KIB)
                        .scope("one copy a stage")
                        .tpSize(4)
                        .ppSize(2)
                        .replicated(true)
                        .build(),
                Modelled.family(4 * KIB).scope("one").tenantSalt(new byte[] {1}).build(),
                Modelled.family(5000).scope("one").build(),
                Modelled.family(4 * KIB).scope("one").kvDtype("fp8").build());
        int[] shards = {1, 2, 4, 1, 2, 1, 1, 1};
        List<Prompt> prompts = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            prompts.add(
                    i % 2 == 0
                            ? Prompt.random(gen, gen.between(1, BLOCKS_MAX))
                            : prompts.get(i - 1)
                                    .fork(gen, gen.between(0, prompts.get(i - 1).blocks()), BLOCKS_MAX));
        }
        List<List<Modelled.Model>> models = new ArrayList<>();
        for (int count : shards) {
            List<Modelled.Model> ofShards = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                ofShards.add(new Modelled.Model());
            }
            models.add(ofShards);
        }
        for (int life = 0; life < 3; life++) {
            try (KvStore store = WholeStore.open(options(folder).poolBytes(16 * MIB));
                    Shards all = new Shards(store, families, models)) {
                for (int i = 0; i < families.size(); i++) {
                    assertEquals(shards[i], all.handles.get(i).shards());
                }
                expectAll(all, prompts);
                for (int operation = 0; operation < 300; operation++) {
                    int family = gen.below(families.size());
                    List<Modelled> ofShards = all.modelled.get(family);
                    Modelled shard = ofShards.get(gen.below(ofShards.size()));
                    Prompt prompt = prompts.get(gen.below(prompts.size()));
                    if (gen.chance(0.03)) {
                        store.clear(all.handles.get(family));
                        ofShards.forEach(cleared -> cleared.model.keys().clear());
                    } else if (gen.chance(0.6)) {
                        int from = gen.coin() ? 0 : gen.below(prompt.blocks());
                        shard.saveAll(prompt, from, gen.between(1, prompt.blocks() - from));
                    } else {
                        expect(all, family, prompt, gen.below(prompt.blocks()));
                    }
                }
                expectAll(all, prompts);
            }
        }
    }

    private void expectAll(Shards all, List<Prompt> prompts) {
        for (int family = 0; family < all.modelled.size(); family++) {
            for (Prompt prompt : prompts) {
                expect(all, family, prompt, 0);
            }
        }
    }

    private void expect(Shards all, int family, Prompt prompt, int from) {
        int expected = prompt.blocks() - from;
        for (Modelled shard : all.modelled.get(family)) {
            expected = Math.min(expected, shard.model.length(prompt, from));
        }
        for (Modelled shard : all.modelled.get(family)) {
            assertEquals(
                    expected,
                    shard.restore(prompt, from, prompt.blocks() - from, gen),
                    "family " + family + " shard " + shard.shard.number());
        }
    }

    /** All shards of all families of one life of the store. */
    private static final class Shards implements AutoCloseable {
        final List<FamilyHandle> handles = new ArrayList<>();
        final List<List<Modelled>> modelled = new ArrayList<>();

        Shards(KvStore store, List<Family> families, List<List<Modelled.Model>> models) {
            for (int i = 0; i < families.size(); i++) {
                FamilyHandle handle = store.openFamily(families.get(i));
                handles.add(handle);
                List<Modelled> ofShards = new ArrayList<>();
                for (int shard = 0; shard < handle.shards(); shard++) {
                    ofShards.add(new Modelled(
                            store, handle.shard(shard), models.get(i).get(shard), BLOCKS_MAX));
                }
                modelled.add(ofShards);
            }
        }

        @Override
        public void close() {
            modelled.forEach(shards -> shards.forEach(Modelled::close));
        }
    }
}
