package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Family;
import io.orbitkv.index.KeyChain;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Payload;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.MemoryRegion;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Promise 7: equal keys in different families, tenants, dtypes, layouts, shards never meet. Method: one prompt of the same
 * tokens, saved under half of all combinations of everything that tells blocks apart, asked for under all of them; each
 * combination has payloads of its own, so that a foreign block would show even where a hit was expected.
 *
 * <p>Covers LMCache 2136, 2979 and 1139, 1095 (seeds of hashes), sglang 37160 and LMCache 4825 (salts), vllm 44250, 30931 and
 * LMCache 2961 (adapters, new weights under an old name), sglang 36376 and lmdeploy 4930 (dtypes, block tokens), LMCache 2881,
 * 2947, 4358 (layouts) of the faults that were reported of others.
 */
class Promise07IdentityTest {
    private static final int BLOCKS = 2;
    private static final int KEY_BYTES = 32;
    private static final int[] CHOICES = {2, 2, 2, 2, 2, 3, 4, 3, 2};
    private static final int SHARDS = 2;
    private static final int SAMPLES = 2_000;

    private final long seed = Seed.of(Promise07IdentityTest.class);
    private final Gen gen = new Gen(seed);
    private final TestFolders folders = new TestFolders();

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    /** One way to differ, by its choices: see {@link #family} and {@link #keys}. */
    private record Combination(int[] choices, int shard) {
        Family family() {
            return Family.builder()
                    .modelId("model-" + choices[0])
                    .weightsDigest(digest(choices[1])) // new weights under the same name
                    .tokenizerDigest(digest(9))
                    .kvDtype(choices[2] == 0 ? "bf16" : "fp8_e4m3")
                    .layout((choices[3] == 0 ? "576+132" : "256/512").getBytes(StandardCharsets.US_ASCII))
                    .blockBytes(4096)
                    .blockTokens(choices[4] == 0 ? 16 : 32)
                    .tpSize(SHARDS)
                    .engine("test")
                    .hash(choices[8] == 0 ? "sha256" : "sha256_cbor", "seed-" + choices[5])
                    .scope("scope")
                    .tenantSalt(choices[6] == 0 ? new byte[0] : digest(20 + choices[6]))
                    .build();
        }

        /** Keys of the same tokens; what an adapter adds goes into each key, as engines do it. */
        UnsafeBuffer keys() {
            int tokens = choices[4] == 0 ? 16 : 32;
            UnsafeBuffer keys = new UnsafeBuffer(new byte[BLOCKS * KEY_BYTES]);
            int[] prompt = new int[BLOCKS * tokens];
            Arrays.setAll(prompt, i -> i * 31 + (choices[7] == 0 ? 0 : choices[7] << 20));
            new KeyChain(tokens).keys(null, 0, prompt, 0, BLOCKS, keys, 0);
            return keys;
        }

        long payloadSeed() {
            return Arrays.hashCode(choices) * 31L + shard;
        }

        private static byte[] digest(int of) {
            byte[] digest = new byte[32];
            digest[31] = (byte) of;
            return digest;
        }
    }

    private static List<Combination> all() {
        List<Combination> all = new ArrayList<>();
        int count = Arrays.stream(CHOICES).reduce(1, (a, b) -> a * b);
        for (int number = 0; number < count; number++) {
            int[] choices = new int[CHOICES.length];
            for (int i = 0, left = number; i < choices.length; left /= CHOICES[i], i++) {
                choices[i] = left % CHOICES[i];
            }
            for (int shard = 0; shard < SHARDS; shard++) {
                all.add(new Combination(choices, shard));
            }
        }
        return all;
    }

    private KvStore open() {
        return KvStore.open(WholeStore.optionsIn(folders.make("identity"))
                .poolBytes(128 << 20)
                .capBytes(2L << 30)
                .segmentBytes(1 << 20)
                .blockBytesLargest(4096));
    }

    @Test
    void noCombinationEverHitsAnother() {
        List<Combination> all = all();
        assertTrue(all.size() >= 4096, all.size() + " combinations");
        boolean[] saved = new boolean[all.size()];
        try (KvStore store = open()) {
            MemoryRegion memory = store.allocate(BLOCKS * 4096L);
            SaveResult result = new SaveResult();
            for (int i = 0; i < saved.length; i++) {
                saved[i] = gen.coin();
                if (saved[i]) {
                    Combination of = all.get(i);
                    UnsafeBuffer keys = of.keys();
                    fill(memory, keys, of);
                    ShardHandle shard = store.openFamily(of.family()).shard(of.shard);
                    store.save(shard, null, 0, keys, 0, BLOCKS, Blocks.of(memory), result);
                    assertEquals(BLOCKS, result.accepted(), result::toString);
                }
            }
            int found = 0;
            for (int i = 0; i < saved.length; i++) {
                Combination of = all.get(i);
                UnsafeBuffer keys = of.keys();
                ShardHandle shard = store.openFamily(of.family()).shard(of.shard);
                boolean isStored = store.locate(shard, keys, 0).isStored();
                assertEquals(saved[i], isStored, Arrays.toString(of.choices) + " shard " + of.shard);
                found += restored(store, all, saved, i, memory);
            }
            assertTrue(found > 0, "combinations with both shards");
        }
    }

    /** A hit needs both shards; what it restores is the combination's own. */
    private static int restored(KvStore store, List<Combination> all, boolean[] saved, int i, MemoryRegion memory) {
        Combination of = all.get(i);
        boolean whole = saved[i] && saved[i ^ 1]; // shards of a combination stand side by side
        FamilyHandle family = store.openFamily(of.family());
        UnsafeBuffer keys = of.keys();
        try (Lease lease = store.query(family, keys, 0, BLOCKS)) {
            assertEquals(whole ? BLOCKS : 0, lease.blocks(), Arrays.toString(of.choices));
            if (!whole) {
                return 0;
            }
            assertEquals(BLOCKS, store.restore(lease, family.shard(of.shard), 0, BLOCKS, Blocks.of(memory)));
        }
        for (int block = 0; block < BLOCKS; block++) {
            long head = keys.getLong(block * KEY_BYTES);
            assertEquals(
                    Payload.NO_DIFFERENCE,
                    Payload.firstDifference(memory, block * 4096L, 4096, head, of.payloadSeed()),
                    "another's bytes under " + Arrays.toString(of.choices));
        }
        return 1;
    }

    private static void fill(MemoryRegion memory, UnsafeBuffer keys, Combination of) {
        for (int block = 0; block < BLOCKS; block++) {
            Payload.fill(memory, block * 4096L, 4096, keys.getLong(block * KEY_BYTES), of.payloadSeed());
        }
    }

    /**
     * sglang 37160: another tenant's prompts were answered in a third of the time. A query for what another tenant has stored and
     * one for what nobody has take the same time within 5 %: the median over many windows of the ratio of two medians, asked in turns.
     */
    @Test
    void reported_sglang_37160_foreignAndUnknownKeysTakeTheSameTime() {
        int prompts = 512;
        try (KvStore store = open()) {
            FamilyHandle mine = store.openFamily(tenant(1));
            FamilyHandle theirs = store.openFamily(tenant(2));
            Prompt[] foreign = new Prompt[prompts];
            Prompt[] unknown = new Prompt[prompts];
            MemoryRegion memory = store.allocate(8 * 4096L);
            SaveResult result = new SaveResult();
            for (int i = 0; i < prompts; i++) {
                foreign[i] = Prompt.random(gen, 8);
                unknown[i] = Prompt.random(gen, 8);
                store.save(theirs.shard(0), null, 0, foreign[i].keys, 0, 8, Blocks.of(memory), result);
                assertEquals(8, result.accepted());
                Prompt own = Prompt.random(gen, 8);
                store.save(mine.shard(0), null, 0, own.keys, 0, 8, Blocks.of(memory), result);
            }
            double[] ratios = new double[41];
            for (int window = 0; window < ratios.length; window++) {
                long[] ofForeign = new long[SAMPLES];
                long[] ofUnknown = new long[SAMPLES];
                for (int i = 0; i < SAMPLES; i++) {
                    int first = (i + window) % 2;
                    for (int step = 0; step < 2; step++) {
                        boolean isForeign = (first + step) % 2 == 0;
                        Prompt prompt = (isForeign ? foreign : unknown)[gen.below(prompts)];
                        (isForeign ? ofForeign : ofUnknown)[i] = nanosOf(store, mine, prompt);
                    }
                }
                Arrays.sort(ofForeign);
                Arrays.sort(ofUnknown);
                ratios[window] = (double) ofForeign[SAMPLES / 2] / ofUnknown[SAMPLES / 2];
            }
            Arrays.sort(ratios);
            double ratio = ratios[ratios.length / 2];
            System.out.printf(
                    "foreign / unknown keys: %.3f [%.3f..%.3f] of %d windows%n",
                    ratio, ratios[0], ratios[ratios.length - 1], ratios.length);
            assertTrue(Math.abs(ratio - 1) <= 0.05, "foreign keys take " + ratio + " of the time of unknown ones");
        }
    }

    private static long nanosOf(KvStore store, FamilyHandle family, Prompt prompt) {
        long began = System.nanoTime();
        try (Lease lease = store.query(family, prompt.keys, 0, 8)) {
            assertEquals(0, lease.blocks());
        }
        return System.nanoTime() - began;
    }

    private static Family tenant(int number) {
        return Modelled.family(4096).tenantSalt(new byte[] {(byte) number}).build();
    }
}
