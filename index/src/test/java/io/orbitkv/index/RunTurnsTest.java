package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.orbitkv.kit.Seed;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.Tier;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/**
 * Goal: a run's turns always say where its extents go over to another segment or generation, since a match reads extents
 * at turns only; and its pages and last tag are those of its blocks.
 *
 * <p>Method: random appends, changes of extents, raised generations, scrubs, moves to other classes; after each, every
 * turn and page is compared with what the extents themselves say.
 */
class RunTurnsTest {
    private static final int SEGMENTS = 6;
    private static final int STEPS = 20_000;

    @Test
    void turnsAreWhatTheExtentsSay() {
        long seed = Seed.of(RunTurnsTest.class);
        SplittableRandom random = new SplittableRandom(seed);
        try (Generations host = new Generations(SEGMENTS);
                Generations nvme = new Generations(SEGMENTS);
                Runs runs = new Runs(10_000, host, nvme)) {
            long run = runs.start(0, 1, 0, 0);
            for (int step = 0; step < STEPS; step++) {
                int count = runs.count(run);
                Tier tier = random.nextBoolean() ? Tier.HOST : Tier.NVME;
                Generations generations = tier == Tier.HOST ? host : nvme;
                int segment = random.nextInt(SEGMENTS);
                long extent = Extent.pack(segment, random.nextInt(Extent.PAGES_MAX), generations.current(segment));
                switch (count == 0 ? random.nextInt(2) * 8 : random.nextInt(9)) {
                    case 0, 1 -> {
                        if (runs.hasRoom(run)) {
                            runs.append(run, random.nextLong(), random.nextLong(), tier, extent, 1);
                        }
                    }
                    case 2 -> runs.setExtent(run | random.nextInt(count), tier, extent);
                    case 3 -> runs.setExtent(run | random.nextInt(count), tier, Extent.NONE);
                    case 4 -> runs.overwrite(run | random.nextInt(count), tier, extent, 1);
                    case 5 -> generations.raise(segment);
                    case 6 -> runs.scrub(run | random.nextInt(count));
                    case 8 -> appendSome(runs, run, nvme, random);
                    default -> run = step % 97 == 0 ? restart(runs, run) : grown(runs, run);
                }
                check(runs, run, step);
            }
        }
    }

    /** Blocks that lie in one segment, or here and there. */
    private static void appendSome(Runs runs, long run, Generations nvme, SplittableRandom random) {
        int room = RunMemory.capacity(Place.sizeClass(run)) - runs.count(run);
        if (room == 0) {
            return;
        }
        int from = random.nextInt(3);
        int blocks = 1 + random.nextInt(room);
        long[] words = random.longs(from + blocks).toArray();
        long[] extents = new long[from + blocks];
        int stay = random.nextInt(20);
        int segment = random.nextInt(SEGMENTS);
        for (int i = from; i < extents.length; i++) {
            segment = random.nextInt(20) < stay ? segment : random.nextInt(SEGMENTS);
            extents[i] = Extent.pack(segment, random.nextInt(Extent.PAGES_MAX), nvme.current(segment));
        }
        int count = runs.count(run);
        long place = runs.append(run, words, words, extents, words, from, blocks);
        assertEquals(run | count, place);
        for (int i = 0; i < blocks; i++) {
            assertEquals(words[from + i], runs.key0(place + i));
            assertEquals(words[from + i], runs.tag(place + i));
            assertEquals(words[from + i], Runs.size(runs.bytes(place + i), runs.checksum(place + i)));
            assertEquals(extents[from + i], runs.extent(place + i, Tier.NVME));
            assertEquals(Extent.NONE, runs.extent(place + i, Tier.HOST));
        }
        if (random.nextInt(8) == 0 && count > 0) {
            runs.cut(run, count);
        }
    }

    /** Moves a full run to the next class. */
    private static long grown(Runs runs, long run) {
        if (runs.hasRoom(run) || Place.sizeClass(run) == Runs.CLASS_MAX) {
            return run;
        }
        long copy = runs.copy(run, Place.sizeClass(run) + 1);
        runs.free(run);
        return copy;
    }

    /** Cuts a run, and goes on with what is left of it, so that bits behind its end are used again. */
    private static long restart(Runs runs, long run) {
        runs.truncate(run, (runs.count(run) + 1) / 2);
        return run;
    }

    private static void check(Runs runs, long run, int step) {
        int count = runs.count(run);
        long turns = runs.memory().getLong(Runs.base(run) + Runs.TURNS);
        for (int i = 0; i < count; i++) {
            String where = "step " + step + ", block " + i;
            int hostPage = Extent.page(runs.extent(run | i, Tier.HOST));
            int nvmePage = Extent.page(runs.extent(run | i, Tier.NVME));
            assertEquals(hostPage | nvmePage << 16, runs.memory().getInt(Runs.pages(run | i)), where);
            if (i > 0) {
                boolean isTurn = isTurn(runs, run, i, Tier.HOST) || isTurn(runs, run, i, Tier.NVME);
                assertEquals(isTurn, (turns >>> i & 1) == 1, where);
            }
        }
        if (count > 0) {
            long lastTag = runs.memory().getLong(Runs.base(run) + Runs.LAST_TAG);
            assertEquals(runs.tag(run | count - 1), lastTag, "step " + step);
        }
    }

    private static boolean isTurn(Runs runs, long run, int i, Tier tier) {
        long before = runs.extent(run | i - 1, tier);
        long extent = runs.extent(run | i, tier);
        return Extent.segment(before) != Extent.segment(extent)
                || Extent.generation(before) != Extent.generation(extent);
    }
}
