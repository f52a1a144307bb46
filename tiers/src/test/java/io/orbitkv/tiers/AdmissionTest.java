package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.HeapUse;
import io.orbitkv.kit.Seed;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * Goal: each admission decides what its words say, and the duel follows the arm that is worth more.
 * Method: the parts against naive models on seeded uses; the duel as a whole against a model written with maps and
 * lists, use by use; and on two generated workloads whose better arm is known. Replay with {@code -Dorbitkv.seed=N}.
 */
class AdmissionTest {
    private static final double PRICE = 0.1;

    private final long seed = Seed.of(AdmissionTest.class);
    private final Gen gen = new Gen(seed);

    // ---- the parts ----

    @Test
    void aShadowEvictsByASecondChance() {
        ShadowCache shadow = new ShadowCache(50);
        Clock model = new Clock(50);
        int evictions = 0;
        for (int step = 0; step < 20_000; step++) {
            long tag = gen.geometric(0.02, 400) - 100L; // -1 and 0 are tags like others
            boolean held = model.use(tag);
            assertEquals(held, shadow.contains(tag), () -> "seed " + seed);
            assertEquals(held, shadow.use(tag), () -> "seed " + seed);
            if (!held) {
                evictions += model.add(tag) ? 1 : 0;
                shadow.add(tag);
            }
            assertEquals(model.isFull(), shadow.isFull());
        }
        assertTrue(evictions > 1_000, evictions + " evictions");
    }

    @Test
    void recentTagsAreThoseOfTheLastTwoTurns() {
        RecentTags recent = new RecentTags(40);
        Recent model = new Recent(40);
        for (int step = 0; step < 20_000; step++) {
            long tag = gen.geometric(0.01, 400) - 100L;
            assertEquals(model.seen(tag), recent.seen(tag), () -> "seed " + seed);
            assertEquals(model.see(tag), recent.see(tag), () -> "seed " + seed);
        }
    }

    @Test
    void allLetsInEverythingAndReuseWhatWasSeen() {
        Set<Long> seen = new HashSet<>(Set.of(1L, 2L));
        NvmeAdmission all = NvmeAdmission.of(AdmissionPolicy.ALL, seen::contains, 100, PRICE);
        NvmeAdmission reuse = NvmeAdmission.of(AdmissionPolicy.REUSE, seen::contains, 100, PRICE);
        assertTrue(all.admits(3) && all.admits(1));
        assertTrue(reuse.admits(1) && reuse.admits(2));
        assertFalse(reuse.admits(3));
        seen.add(3L);
        assertTrue(reuse.admits(3));
        assertEquals(AdmissionPolicy.ALL, all.now());
        assertEquals(AdmissionPolicy.REUSE, reuse.now());
    }

    // ---- the duel ----

    @Test
    void theDuelDecidesAsItsModel() {
        int switches = 0;
        for (int round = 0; round < 4; round++) {
            int tierBlocks = gen.pick(300, 1000, 5000);
            int shift = gen.pick(0, 1, Duel.SAMPLE_SHIFT);
            Duel duel = new Duel(tag -> false, tierBlocks, PRICE, shift);
            Model model = new Model(tierBlocks, PRICE, shift);
            Prompts soon = new Prompts(gen.fork(), tierBlocks / 3, 1);
            Prompts late = new Prompts(gen.fork(), tierBlocks * 3 / 2, 8);
            for (int request = 0; request < 2500; request++) {
                boolean before = model.onSecondUse;
                // The workload changes now and then, so that the verdict has to.
                if (request / 600 % 2 == 0) {
                    late.request(0.8, duel, model);
                } else {
                    soon.request(0.1, duel, model);
                }
                assertEquals(
                        model.onSecondUse ? AdmissionPolicy.REUSE : AdmissionPolicy.ALL,
                        duel.now(),
                        "seed " + seed + " round " + round + " request " + request);
                switches += before != model.onSecondUse ? 1 : 0;
            }
        }
        assertTrue(switches > 0, "the verdict never changed, seed " + seed);
    }

    @Test
    void theDuelWritesOnlySecondUsesWhereMostAreUsedOnceAndTheRestComeBackLate() {
        assertEquals(AdmissionPolicy.REUSE, verdict(new Prompts(gen, 12_000, 8), 0.8));
    }

    @Test
    void theDuelWritesAllWhereMostComeBackOnceAndSoon() {
        assertEquals(AdmissionPolicy.ALL, verdict(new Prompts(gen, 2_500, 1), 0.02));
    }

    private static AdmissionPolicy verdict(Prompts prompts, double once) {
        Duel duel = new Duel(tag -> false, 8_000, PRICE);
        for (int i = 0; i < 3_000; i++) {
            prompts.request(once, duel);
        }
        return duel.now();
    }

    @Test
    void untilItsShadowsAreFullTheDuelWritesAll() {
        Duel duel = new Duel(tag -> false, 8_000, PRICE);
        for (long tag = 1; tag <= 900; tag++) {
            duel.use(tag, 8 * tag); // no branch is used twice: what is written was written for nothing
            assertEquals(AdmissionPolicy.ALL, duel.now());
            assertTrue(duel.admits(tag));
        }
        for (long tag = 1000; duel.now() == AdmissionPolicy.ALL; tag++) {
            assertTrue(tag < 100_000, "it never changed its mind");
            duel.use(tag, tag * 0x5851F42D4C957F2DL);
        }
        assertFalse(duel.admits(5), "nothing was seen");
    }

    @Test
    void aHugeDriveIsSampledLess() {
        // A shadow of an eighth of 2^40 blocks would not fit into any memory.
        Duel duel = new Duel(tag -> false, 1L << 40, PRICE);
        duel.use(1, 1);
        assertEquals(AdmissionPolicy.ALL, duel.now());
    }

    @Test
    void theDuelAllocatesNothing() {
        Duel duel = new Duel(tag -> false, 4_000, PRICE);
        long[] tag = {1};
        long fewest = HeapUse.fewestBytes(10, () -> {
            for (int i = 0; i < 50_000; i++, tag[0]++) {
                duel.begin();
                duel.use(tag[0], tag[0]);
                duel.use(tag[0] - 700, NvmeAdmission.NO_BRANCH);
            }
        });
        assertEquals(0, fewest);
    }

    // ---- models ----

    /** Requests for new prompts, and for prompts that were asked for a while ago. */
    private static final class Prompts {
        /** Some blocks that are asked for again a number of times, or a pause of as many. */
        private record Waiting(long[] tags, int blocks, int times) {}

        private final Gen gen;
        private final int reachBlocks;
        private final int times;
        private final ArrayDeque<Waiting> again = new ArrayDeque<>();
        private int waitingBlocks;

        /**
         * Makes a source.
         *
         * @param reachBlocks how many other blocks are asked for before a prompt is again
         * @param times how often it is again
         */
        Prompts(Gen gen, int reachBlocks, int times) {
            this.gen = gen;
            this.reachBlocks = reachBlocks;
            this.times = times;
        }

        void request(double once, NvmeAdmission... duels) {
            long[] tags = new long[gen.between(1, 40)];
            for (int i = 0; i < tags.length; i++) {
                tags[i] = gen.nextLong();
            }
            use(tags, tags[0], duels);
            await(gen.chance(once) ? new long[0] : tags, tags.length, times);
            int due = again.size();
            for (int i = 0; i < due && waitingBlocks > reachBlocks; i++) {
                Waiting first = again.remove();
                waitingBlocks -= first.blocks;
                use(first.tags, NvmeAdmission.NO_BRANCH, duels);
                if (first.tags.length > 0 && first.times > 1) {
                    await(first.tags, first.blocks, first.times - 1);
                }
            }
        }

        private void await(long[] tags, int blocks, int timesLeft) {
            again.add(new Waiting(tags, blocks, timesLeft));
            waitingBlocks += blocks;
        }

        private static void use(long[] tags, long branch, NvmeAdmission... duels) {
            for (NvmeAdmission duel : duels) {
                duel.begin();
                for (long tag : tags) {
                    duel.use(tag, branch);
                }
            }
        }
    }

    /** What the Javadoc of the duel says, with maps and lists. */
    private static final class Model implements NvmeAdmission {
        private final int shift;
        private final double price;
        private final Clock all;
        private final Clock reuse;
        private final Recent recent;
        private final int halfLife;
        private double lead; // of the one that writes second uses
        private double uses;
        private int count;
        private boolean judges;
        private boolean allReaches;
        private boolean reuseReaches;
        boolean onSecondUse;

        Model(int tierBlocks, double price, int shift) {
            int blocks = Math.max(16, tierBlocks >> shift);
            this.shift = shift;
            this.price = price;
            this.all = new Clock(blocks);
            this.reuse = new Clock(blocks);
            this.recent = new Recent(4 * blocks * 2 / 3);
            this.halfLife = Math.max(4096, 8 * blocks);
        }

        @Override
        public void begin() {
            allReaches = true;
            reuseReaches = true;
        }

        @Override
        public void use(long tag, long branch) {
            boolean sampled = branch != 0
                    && Long.compareUnsigned(branch * 0x9E3779B97F4A7C15L, shift == 0 ? -1L : (1L << 64 - shift) - 1)
                            <= 0;
            if (shift > 0 && !sampled && !recent.seen(tag) && !all.has(tag) && !reuse.has(tag)) {
                return;
            }
            boolean second = recent.see(tag);
            double worth = 0;
            if (reuse.use(tag)) {
                worth += reuseReaches ? 1 : 0;
            } else {
                reuseReaches = false;
                if (second) {
                    reuse.add(tag);
                    worth -= price;
                }
            }
            if (all.use(tag)) {
                worth -= allReaches ? 1 : 0;
            } else {
                allReaches = false;
                all.add(tag);
                worth += price;
            }
            if (!judges) {
                judges = all.isFull();
                return;
            }
            lead += worth;
            uses++;
            if (++count % halfLife == 0) {
                lead /= 2;
                uses /= 2;
            }
            if (uses >= 256 && (onSecondUse ? -lead : lead) > 0.01 * uses) {
                onSecondUse = !onSecondUse;
            }
        }

        @Override
        public boolean admits(long tag) {
            return !onSecondUse;
        }

        @Override
        public AdmissionPolicy now() {
            return onSecondUse ? AdmissionPolicy.REUSE : AdmissionPolicy.ALL;
        }
    }

    /** Second chance with a queue: what was used goes to its end again. */
    private static final class Clock {
        private final int capacity;
        private final LinkedHashMap<Long, Boolean> queue = new LinkedHashMap<>();

        Clock(int capacity) {
            this.capacity = capacity;
        }

        boolean isFull() {
            return queue.size() == capacity;
        }

        boolean has(long tag) {
            return queue.containsKey(tag);
        }

        boolean use(long tag) {
            return queue.replace(tag, true) != null;
        }

        /** Whether another had to go. */
        boolean add(long tag) {
            boolean full = isFull();
            while (full && queue.size() == capacity) {
                Map.Entry<Long, Boolean> first = queue.entrySet().iterator().next();
                queue.remove(first.getKey());
                if (first.getValue()) {
                    queue.put(first.getKey(), false);
                }
            }
            queue.put(tag, false);
            return full;
        }
    }

    private static final class Recent {
        private final int turnTags;
        private final List<Set<Long>> turns = new ArrayList<>();

        Recent(int turnTags) {
            this.turnTags = turnTags;
            turns.add(new HashSet<>());
        }

        boolean seen(long tag) {
            int last = turns.size() - 1;
            return turns.get(last).contains(tag)
                    || last > 0 && turns.get(last - 1).contains(tag);
        }

        boolean see(long tag) {
            boolean seen = seen(tag);
            Set<Long> young = turns.get(turns.size() - 1);
            if (!young.contains(tag) && young.size() == turnTags) {
                young = new HashSet<>();
                turns.add(young);
            }
            young.add(tag);
            return seen;
        }
    }

    /** The models are models of something: a queue that gives second chances keeps what is used all the time. */
    @Test
    void theModelOfTheClockKeepsWhatIsUsed() {
        Clock clock = new Clock(3);
        Map<Long, Integer> evicted = new HashMap<>();
        clock.add(1);
        for (long tag = 2; tag < 100; tag++) {
            clock.use(1);
            clock.add(tag);
            evicted.put(tag, 1);
        }
        assertTrue(clock.has(1));
        assertFalse(clock.has(50));
    }
}
