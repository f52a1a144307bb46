package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.SimulatedClock;
import io.orbitkv.kit.SimulatedCrash;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.recovery.OpeningKind;
import io.orbitkv.recovery.OpeningOptions;
import io.orbitkv.recovery.Verify;
import io.orbitkv.recovery.VerifyReport;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Level;
import io.orbitkv.store.Location;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.ShardHandle;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.store.StoreStats;
import io.orbitkv.store.SyncOutcome;
import io.orbitkv.suite.CrashLedger.Block;
import io.orbitkv.suite.CrashLedger.Promise;
import io.orbitkv.suite.CrashLedger.Waiting;
import io.orbitkv.suite.CrashPrompts.Prompt;
import io.orbitkv.tiers.Durability;
import io.orbitkv.tiers.EvictionPolicy;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The lives of one store on a simulated drive, as a function of a seed: it works, dies, opens, is held against what it
 * has promised, and goes on, until a last life ends cleanly. Stores of even seeds have two folders, of which one is lost now
 * and then while the store is not open. One thread does everything.
 */
final class PowerLossRun implements AutoCloseable {
    private static final int SEGMENT_BYTES = 64 << 10;
    private static final int KEY_BYTES = 32;
    private static final int EVENTS_SHOWN = 4096;
    private static final int CLEAR_OPERATIONS = 5;
    private static final int SNAPSHOT_OPERATIONS = 14;
    private static final long NEVER = 1L << 60;
    private static final int LIVES_MAX = 6;
    private static final int STEPS_MAX = 40;
    private static final int PROMPTS_CHECKED = 160;
    private static final long SYNC_MILLIS = 120_000;
    private static final int LOSSES_ONE_IN = 4;

    /** One run in so many has any policy; the others have the one that moves blocks. */
    private static final int POLICY_ONE_IN = 4;

    private static final int CAP_CHANGES_ONE_IN = 4;
    private static final long SCRUB_BYTES_PER_SECOND = 256 << 20;

    private static final long PAUSE_NANOS = 60_000_000;

    private final PowerLossTotals totals;
    private final boolean isSabotaged;
    private final long seed;
    private final Gen gen;
    private final SimulatedClock clock = new SimulatedClock();
    private final StringBuilder events = new StringBuilder();
    private final CrashFamily[] families = {
        new CrashFamily(0, 1, 4096), new CrashFamily(1, 2, 5000), new CrashFamily(2, 1, 12_288)
    };
    private final CrashLedger ledger = new CrashLedger(families);
    private final CrashPrompts prompts;
    private final CrashCheck check;
    private final SaveResult saved = new SaveResult();
    private final long capBytes;
    private final Durability durability;
    private final EvictionPolicy policy;

    private SimulatedFolder folder;

    /** The store's second folder; null where it has one. */
    private SimulatedFolder second;

    private final Path secondReal;

    /** The number of the folder that was lost since the store was open last, or -1. */
    private int lost = -1;

    private KvStore store;
    private int promptsSaved;
    private long lastPosition;
    private Promise needed = Promise.WRITTEN;
    private boolean powerWasLost;
    private boolean stoppedCleanly;

    /** By segment: the use in which the store had given it up when it stopped cleanly, as its catalog says; none after a death. */
    private Map<Integer, Long> givenUp = Map.of();

    /** The cap changes now and then, at openings and between. */
    private long cap;

    private boolean capChanged;

    /** A third of the seeds, of one folder and of two; the others have histories that tests know by their numbers. */
    private final boolean changesCap;

    /** Segments and the uses in which they were given up for the cap, as the catalog says or the store said before it died. */
    private final Set<List<Long>> givenUpForCap = new HashSet<>();

    private int clearing = -1;
    private boolean isOpening;
    private boolean mayDie;
    private boolean isMade;

    /**
     * A run that has not begun.
     *
     * @param isSabotaged whether the drive was made to break its contract, for a control
     */
    PowerLossRun(long seed, Path realFolder, PowerLossTotals totals, boolean isSabotaged) {
        this.isSabotaged = isSabotaged;
        this.totals = totals;
        this.seed = seed;
        this.gen = new Gen(Gen.mix(seed));
        Path firstReal = realFolder.resolve("first");
        this.secondReal = realFolder.resolve("second");
        boolean isSpread = seed % 2 == 0;
        try {
            Files.createDirectories(firstReal);
            Files.createDirectories(secondReal);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        this.folder = new SimulatedFolder(seed, firstReal, clock);
        this.second = isSpread ? folder.beside(secondReal) : null;
        this.prompts = new CrashPrompts(gen.nextLong());
        this.check = new CrashCheck(families, prompts, ledger);
        // Each folder has a catalog of 1 MiB.
        this.capBytes = (gen.between(8L, 16L) + (isSpread ? 5 : 0)) << 18;
        this.cap = capBytes;
        this.changesCap = seed % 9 % 4 == 0;
        this.durability = gen.pick(Durability.values());
        this.policy = seed % POLICY_ONE_IN == 0 ? gen.pick(EvictionPolicy.values()) : EvictionPolicy.SECOND_CHANCE;
    }

    SimulatedFolder folder() {
        return folder;
    }

    /** What happened, for comparison with another run of the seed. */
    String events() {
        return events.toString();
    }

    String lastEvents() {
        return events.substring(Math.max(0, events.length() - EVENTS_SHOWN));
    }

    void run() {
        int lives = gen.between(2, LIVES_MAX);
        for (int life = 0; life < lives; life++) {
            boolean dies = life < lives - 1;
            mayDie = dies;
            if (!dies) {
                folder.crashAfter(NEVER);
            }
            try {
                if (dies && gen.below(3) == 0) {
                    folder.crashAfter(gen.between(1, gen.below(3) == 0 ? 30 : 400));
                }
                open();
                if (dies && gen.below(4) != 0) {
                    folder.crashAfter(gen.between(1, gen.pick(new long[] {100, 1000, 4000})));
                }
                work(gen.between(1, 160));
                if (dies && gen.below(4) == 0) {
                    die();
                    continue;
                }
                if (dies && gen.coin()) {
                    folder.crashAfter(gen.between(1, gen.coin() ? 20 : 120));
                }
                stop();
            } catch (SimulatedCrash crash) {
                die();
            }
        }
        open();
        stop();
        verify();
    }

    private void event(String text) {
        events.append(clock.nanoTime()).append(' ').append(text).append('\n');
    }

    // ---- lives ----

    private void open() {
        noteAbsent();
        if (isMade && changesCap && gen.below(CAP_CHANGES_ONE_IN) == 0) {
            otherCap();
        }
        StoreOptions options = StoreOptions.in(Path.of("simulated"))
                .poolBytes(1 << 20)
                .capBytes(cap)
                .segmentBytes(SEGMENT_BYTES)
                .blockBytesLargest(12_288)
                .indexBlocksMax(4096)
                .queryBlocksMax(64)
                .leasesMax(8)
                .writeQueueBlocks(64)
                .ringDepth(16)
                .durability(durability)
                .flushIntervalMillis(5)
                .policy(policy)
                .pageKind(PageKind.SMALL)
                .scrubHostBytesPerSecond(changesCap ? SCRUB_BYTES_PER_SECOND : 0)
                .scrubDriveBytesPerSecond(changesCap ? SCRUB_BYTES_PER_SECOND : 0)
                .probe(deathsInSnapshots(folder));
        isOpening = true;
        store = KvStore.openStepped(options, folders(isMade && gen.coin()), clock, seed + 1);
        isOpening = false;
        isMade = true;
        OpeningKind kind = store.openReport().kind();
        int made = store.openReport().lostFolders().size();
        assertTrue(made == 0 || lost >= 0, () -> "folders were made anew: " + store.openReport());
        event("opened " + kind + " epoch " + store.openReport().epoch() + " "
                + store.openReport().accounting());
        totals.opened(kind);
        // A stop that wrote its snapshot is a clean one, even if the machine died before it returned.
        noteAbsent();
        givenUp = kind == OpeningKind.CLEAN ? freeInCatalogs() : Map.of();
        assertTrue(store.openReport().accounting().isWhole(), "accounting");
        if (powerWasLost && !isSabotaged) {
            assertNotEquals(OpeningKind.KILL, kind, "a power loss was taken for a kill");
        }
        if (stoppedCleanly && lost < 0) {
            assertEquals(OpeningKind.CLEAN, kind, "the opening after a clean stop");
        }
        assertTrue(store.acceptedPosition() >= lastPosition, "positions went back");
        lastPosition = store.acceptedPosition();
        assertEquals(lastPosition, store.writtenPosition(), "what was found is written");
        assertEquals(lastPosition, store.durablePosition(), "what was found is durable");
        check.attach(store);
        check();
        powerWasLost = false;
        stoppedCleanly = false;
        lost = -1;
    }

    private void otherCap() {
        cap = capBytes + (gen.between(-1L, 6L) << 18);
        capChanged = true;
        event("the cap is to be " + cap);
    }

    /** What the catalogs say was given up for the cap, and the uses that ended with it. */
    private void noteAbsent() {
        for (DataFolder one : folders(false).list()) {
            if (isMade && Catalog.exists(one.path() + "/catalog")) {
                try {
                    for (SegmentRow row : Catalog.read(one.path() + "/catalog").segments()) {
                        if (row.state() == SegmentRow.State.ABSENT) {
                            givenUpForCap.add(List.of((long) row.segment(), row.useSequence()));
                        }
                    }
                } catch (OrbitKvException e) {
                    event("a catalog that was not made to its end");
                }
            }
        }
    }

    /** What a store has given up by the end of a life in which its cap was changed: its header may be gone, too. */
    private void noteGivenUp() {
        if (changesCap && store != null) {
            ledger.claims().values().stream()
                    .filter(claim -> store.useSequence(claim.segment) != claim.useSequence)
                    .forEach(claim -> givenUpForCap.add(List.of((long) claim.segment, claim.useSequence)));
        }
    }

    private DataFolders folders(boolean swapped) {
        return second == null
                ? DataFolders.of(folder)
                : swapped ? DataFolders.of(second, folder) : DataFolders.of(folder, second);
    }

    /** The next process; now and then it finds that a drive was replaced by an empty one. */
    private void reopen() {
        folder = folder.reopen();
        second = second == null ? null : folder.beside(secondReal);
        if (second != null && isMade && lost < 0 && gen.below(LOSSES_ONE_IN) == 0) {
            lost = gen.below(2);
            event("folder " + lost + " is lost");
            (lost == 0 ? folder : second).erase();
            ledger.lost(segment -> segment % 2 == lost);
            totals.foldersLost++;
        }
    }

    /** The drive's probe; snapshots are written so seldom that some deaths are aimed at them. */
    private WindowProbe deathsInSnapshots(SimulatedFolder of) {
        WindowProbe probe = of.probe();
        return new WindowProbe() {
            @Override
            public void enter(CrashWindow window) {
                if (window == CrashWindow.SNAPSHOT && mayDie && gen.below(3) == 0) {
                    of.crashAfter(gen.between(1, SNAPSHOT_OPERATIONS));
                }
                if (window == CrashWindow.CAP_CHANGE && mayDie && gen.below(4) == 0) {
                    of.crashAfter(gen.between(1, SNAPSHOT_OPERATIONS));
                }
                probe.enter(window);
            }

            @Override
            public void leave(CrashWindow window) {
                probe.leave(window);
            }
        };
    }

    private void stop() {
        ledger.acknowledge(store, check.handles);
        noteGivenUp();
        long position = store.acceptedPosition();
        event("stops at " + position + ", written " + store.writtenPosition());
        lastPosition = position;
        KvStore stopping = store;
        store = null;
        stopping.close();
        stoppedCleanly = true;
        ledger.allDurable();
        reopen();
    }

    /** Rows of segments that were in use once and are free now, with the use that has ended. */
    private Map<Integer, Long> freeInCatalogs() {
        Map<Integer, Long> free = new HashMap<>();
        for (DataFolder one : folders(false).list()) {
            for (SegmentRow row : Catalog.read(one.path() + "/catalog").segments()) {
                if (row.state() == SegmentRow.State.FREE) {
                    free.put(row.segment(), row.useSequence());
                }
            }
        }
        return free;
    }

    /** The machine loses power, or the process is killed: in the middle of an operation, or between two. */
    private void die() {
        boolean power = gen.below(5) < 3;
        if (folder.isCrashed()) {
            totals.died(folder.crashedIn(), isOpening);
            event("died in " + folder.crashedIn());
        }
        noteGivenUp();
        if (store != null) {
            ledger.acknowledge(store, check.handles);
            lastPosition = Math.max(lastPosition, store.acceptedPosition());
        }
        event(power ? "power is lost" : "killed");
        if (power) {
            folder.powerLoss();
            needed = Promise.DURABLE;
        } else {
            folder.kill();
        }
        totals.powerLosses += power ? 1 : 0;
        totals.kills += power ? 0 : 1;
        powerWasLost = power;
        stoppedCleanly = false;
        isOpening = false;
        discard();
        reopen();
        if (power && isMade && !isSabotaged && gen.below(4) == 0) {
            verify();
            folder = folder.reopen();
            second = second == null ? null : folder.beside(secondReal);
        }
    }

    /** Frees what a dead store held of this process. */
    private void discard() {
        KvStore dead = store;
        store = null;
        if (dead != null) {
            try {
                dead.close();
            } catch (SimulatedCrash expected) {
                return;
            }
        }
    }

    // ---- work ----

    private void work(int operations) {
        for (int i = 0; i < operations; i++) {
            int choice = gen.below(100);
            if (choice < 52) {
                save();
            } else if (choice < 70) {
                query();
            } else if (choice < 78) {
                sync(Level.WRITTEN);
            } else if (choice < 86) {
                sync(Level.DURABLE);
            } else if (choice < 88) {
                clear();
            } else if (choice < 92) {
                clock.advance(PAUSE_NANOS);
            } else if (choice < 94 && changesCap) {
                otherCap();
                event("cap: " + store.capBytes(cap, SYNC_MILLIS));
            }
            for (int step = gen.below(STEPS_MAX); step > 0; step--) {
                store.step();
            }
            ledger.acknowledge(store, check.handles);
            totals.movedBlocks += ledger.follow(store, check.handles);
        }
        noneLost(ledger.checkRunning(store, check.handles));
        noneWrong(store.stats());
    }

    /** A new prompt, or one from before: its blocks from a random one on, as an engine saves those it computed. */
    private void save() {
        CrashFamily family = gen.pick(families);
        int number = gen.below(5) == 0 && promptsSaved > 0 ? gen.below(promptsSaved) : promptsSaved++;
        Prompt prompt = prompts.get(number);
        int from = gen.coin() ? prompt.firstOwn() : gen.below(prompt.blocks());
        int count = gen.below(4) == 0 ? 1 : prompt.blocks() - from;
        for (int shard = 0; shard < family.shards(); shard++) {
            if (gen.below(20) == 0) {
                continue; // a rank that was too slow: the family has no hit on these blocks
            }
            saveShard(family, shard, prompt, from, count);
        }
    }

    private void saveShard(CrashFamily family, int shard, Prompt prompt, int from, int count) {
        ShardHandle handle = check.handles[family.number].shard(shard);
        boolean[] stored = new boolean[count];
        for (int i = 0; i < count; i++) {
            int key = (from + i) * KEY_BYTES;
            stored[i] = store.locate(handle, prompt.keys(), key).isStored();
        }
        check.fill(family, shard, prompt, from, count);
        store.save(
                handle,
                from == 0 ? null : prompt.keys(),
                Math.max(0, from - 1) * KEY_BYTES,
                prompt.keys(),
                from * KEY_BYTES,
                count,
                check.blocks,
                saved);
        event("save " + family.number + "/" + shard + " from " + from + " of " + prompt.blocks() + ": " + saved);
        for (int i = 0; i < saved.present() + saved.accepted(); i++) {
            if (!stored[i] && saved.accepted() > 0) {
                int key = (from + i) * KEY_BYTES;
                Block block = Block.of(family.number, shard, prompt.keys(), key);
                ledger.accepted(block, prompt.keys(), key, saved.position());
            }
        }
        totals.savedBlocks += saved.accepted();
    }

    private void query() {
        if (promptsSaved > 0) {
            Prompt prompt = prompts.get(gen.below(promptsSaved));
            int from = gen.below(prompt.blocks());
            CrashFamily family = gen.pick(families);
            event("query " + family.number + " from " + from + ": "
                    + check.restore(family, prompt.keys(), from * KEY_BYTES, prompt.blocks() - from, false));
        }
    }

    private void sync(Level level) {
        long position = store.acceptedPosition();
        SyncOutcome outcome = store.sync(position, level, SYNC_MILLIS);
        event("sync " + level + " " + position + ": " + outcome);
        assertEquals(SyncOutcome.REACHED, outcome);
    }

    private void clear() {
        CrashFamily family = gen.pick(families);
        event("clear " + family.number);
        clearing = family.number;
        if (mayDie && gen.below(8) == 0) {
            folder.crashAfter(gen.between(1, CLEAR_OPERATIONS));
        }
        store.clear(check.handles[family.number]);
        cleared(family);
        clearing = -1;
        totals.clears++;
    }

    private void cleared(CrashFamily family) {
        family.clears++;
        ledger.cleared(family.number);
    }

    // ---- checks ----

    private void check() {
        settleClear();
        // A log that still has free segments beside those that it gave up had no need to give up another: then a clean
        // stop has kept all that was accepted.
        boolean keptAll = stoppedCleanly
                && lost < 0
                && !capChanged
                && store.openReport().accounting().segmentsFree() > givenUp.size();
        for (Waiting block : ledger.takeUnwritten()) {
            Location at = check.locate(block.block(), block.keys(), block.offset());
            assertTrue(at.onDrive() || !keptAll, "accepted before a clean stop, and gone: " + block);
        }
        int promises = ledger.size();
        try (SegmentHeaders headers = new SegmentHeaders(folders(false).list(), SEGMENT_BYTES)) {
            noneLost(ledger.check(
                    store,
                    check.handles,
                    needed,
                    headers::useSequence,
                    (segment, use) -> givenUp.getOrDefault(segment, 0L) == use
                            || givenUpForCap.contains(List.of((long) segment, use))));
        }
        totals.promisesChecked += promises;
        totals.promisesKept += ledger.size();
        int first = Math.max(0, promptsSaved - PROMPTS_CHECKED);
        int found = 0;
        for (int number = first; number < promptsSaved; number++) {
            for (CrashFamily family : families) {
                found += check.checkPrompt(family, prompts.get(number));
            }
        }
        noneWrong(store.stats());
        capChanged = false;
        event("checked: " + promises + " promised, " + ledger.size() + " kept, " + found + " found");
        totals.foundBlocks += found;
        needed = Promise.WRITTEN;
    }

    /** A clear that the machine died in has happened whole or not at all: one block that is there says not at all. */
    private void settleClear() {
        if (clearing < 0) {
            return;
        }
        CrashFamily family = families[clearing];
        clearing = -1;
        if (check.hasAny(family, 0, promptsSaved)) {
            event("the clear of " + family.number + " has not happened");
            return;
        }
        event("the clear of " + family.number + " has happened");
        cleared(family);
    }

    private void noneLost(List<String> lost) {
        assertEquals(List.of(), lost, () -> lost.size() + " blocks are lost");
    }

    private void noneWrong(StoreStats stats) {
        assertEquals(0, stats.corruptBlocks(), "blocks in the index whose bytes are wrong");
        assertEquals(0, stats.readErrors(), "read errors");
        long found = stats.scrub().hostFound() + stats.scrub().driveFound();
        assertEquals(0, found, "blocks in which scrub sees damage");
        totals.scrubbedBytes += stats.scrub().driveBytes();
    }

    /** The tool that people check a folder with finds nothing wrong, after a clean stop as after a power loss. */
    private void verify() {
        VerifyReport report =
                Verify.run(folders(gen.coin()), OpeningOptions.of(0).simulated(seed));
        event("verified: " + report.toString().replace(secondReal.getParent().toString(), ""));
        boolean asExpected = lost < 0
                ? report.isClean()
                : report.problems().stream().allMatch(problem -> problem.code() == ErrorCode.FOLDER_SET);
        assertTrue(asExpected, () -> "verify: " + report.problems());
        folders(false).close();
    }

    /** Frees memory, whatever state the run is in. */
    @Override
    public void close() {
        if (store != null) {
            folder.kill();
            discard();
        }
        totals.restoredBlocks += check.restoredBlocks();
        check.close();
    }
}
