package io.orbitkv.suite;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.KeyChain;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.kit.Fault;
import io.orbitkv.kit.Faults;
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
import io.orbitkv.recovery.FillState;
import io.orbitkv.recovery.OpeningKind;
import io.orbitkv.recovery.OpeningOptions;
import io.orbitkv.recovery.Verify;
import io.orbitkv.recovery.VerifyReport;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Location;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.store.StoreStats;
import io.orbitkv.suite.CrashLedger.Block;
import io.orbitkv.suite.CrashLedger.Claim;
import io.orbitkv.suite.CrashLedger.Promise;
import io.orbitkv.suite.CrashLedger.Waiting;
import io.orbitkv.suite.CrashPrompts.Prompt;
import io.orbitkv.suite.Violation.Kind;
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
final class SimulationRun implements AutoCloseable {
    private static final int SEGMENT_BYTES = 64 << 10;
    private static final int EVENTS_SHOWN = 4096;
    private static final int CLEAR_OPERATIONS = 5;
    private static final int SNAPSHOT_OPERATIONS = 14;
    private static final int REAPPENDS_ONE_IN = 16;
    private static final int REUSES_ONE_IN = 48;
    private static final int AIMED_OPERATIONS = 40;
    private static final long NEVER = 1L << 60;
    static final int LIVES_MAX = 6;
    private static final int PROMPTS_CHECKED = 160;
    private static final int LOSSES_ONE_IN = 4;

    /** One run in so many has any policy; the others have the one that moves blocks. */
    private static final int POLICY_ONE_IN = 4;

    private static final Map<Integer, Long> UNKNOWN = Map.of(-1, -1L);
    private static final long RESTORE_TIMEOUT_MILLIS = 500;
    private static final int CAP_CHANGES_ONE_IN = 4;
    private static final long CAP_WAIT_MILLIS = 120_000;
    private static final long SCRUB_BYTES_PER_SECOND = 256 << 20;

    /** So often a drive may make an opening refuse before it is left alone. */
    private static final int REFUSALS_MAX = 3;

    private final SimulationTotals totals;
    private final boolean isSabotaged;
    private final SimulationCase of;
    private final FaultMix mix;
    private final DriveModel drive;
    private final Harms harms;
    private final SimulatedClients clients;
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
    private long lastPosition;
    private Promise needed = Promise.WRITTEN;
    private boolean powerWasLost;
    private boolean stoppedCleanly;

    /** By segment: the use in which the store had given it up when it stopped cleanly, as its catalog says; none after a death. */
    private Map<Integer, Long> givenUp = Map.of();

    /**
     * By segment: its use when the store died, where it does not flush before it puts a segment to another: a power loss may
     * take the header that would prove that an earlier use had ended. Empty otherwise; {@link #UNKNOWN} after a death in a stop, and
     * after a stop beside a failed drive.
     */
    private Map<Integer, Long> usesAtDeath = Map.of();
    /** The cap changes now and then, at openings and between. */
    private long cap;

    private boolean capChanged;

    /** A stop on the way to a smaller cap has no room for a snapshot. */
    private boolean stoppedOverCap;

    /** A third of the seeds, of one folder and of two; the others have histories that tests know by their numbers. */
    private final boolean changesCap;

    /** Segments and the uses in which they were given up for the cap, as the catalog says or the store said before it died. */
    private final Set<List<Long>> givenUpForCap = new HashSet<>();

    private int clearing = -1;
    private boolean isOpening;
    private boolean mayDie;
    private boolean isMade;
    private boolean isUsable = true;

    /**
     * A run that has not begun.
     *
     * @param of what is to be run
     * @param realFolder an empty folder for the catalogs
     * @param totals where what happened is counted
     * @param isSabotaged whether the drive was made to break its contract, for a control
     */
    SimulationRun(SimulationCase of, Path realFolder, SimulationTotals totals, boolean isSabotaged) {
        this.isSabotaged = isSabotaged;
        this.totals = totals;
        this.of = of;
        this.seed = of.seed();
        this.mix = new FaultMix(of);
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
        Faults faults = folder.faults();
        mix.applyTo(faults);
        this.drive = new DriveModel(faults);
        this.harms = new Harms(this::inOrder, SEGMENT_BYTES);
        check.blame((segment, page, bytes) -> segment >= 0 && harms.excuse(segment, page, bytes));
        this.clients = new SimulatedClients(
                gen, mix, of.operations(), families, prompts, check, ledger, drive, clock, totals, this::event);
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
        int drawn = gen.between(2, LIVES_MAX);
        int lives = Math.min(drawn, of.lives());
        boolean canDie = mix.has(Fault.KILL) || mix.has(Fault.POWER_LOSS);
        for (int life = 0; life < lives && isUsable; life++) {
            boolean dies = life < drawn - 1 && canDie;
            mayDie = dies;
            if (!dies) {
                folder.crashAfter(NEVER);
            }
            try {
                live(dies);
            } catch (SimulatedCrash crash) {
                die();
            }
        }
        mayDie = false;
        folder.crashAfter(NEVER);
        if (isUsable && open()) {
            stop();
            verify();
        }
    }

    private void live(boolean dies) {
        if (dies && gen.below(3) == 0) {
            folder.crashAfter(gen.between(1, gen.below(3) == 0 ? 30 : 400));
        }
        if (!open()) {
            return;
        }
        if (dies && gen.below(4) != 0) {
            folder.crashAfter(gen.between(1, gen.pick(new long[] {100, 1000, 4000})));
        }
        clients.work(store, gen.between(1, 160), new BesideClients());
        noneLost(ledger.checkRunning(store, check.handles, this::isExcused));
        noneWrong(store.stats());
        if (dies && gen.below(4) == 0) {
            die();
            return;
        }
        if (dies && gen.coin()) {
            folder.crashAfter(gen.between(1, gen.coin() ? 20 : 120));
        }
        stop();
    }

    private void event(String text) {
        events.append(clock.nanoTime()).append(' ').append(text).append('\n');
    }

    // ---- lives ----

    /** Opens the store, with another try where a drive that fails makes it refuse; false: it is not to be opened any more. */
    private boolean open() {
        folder.noteHarms(true);
        noteAbsent();
        if (isMade && changesCap && gen.below(CAP_CHANGES_ONE_IN) == 0) {
            otherCap();
        }
        for (int refused = 0; ; refused++) {
            drive.begin();
            folder.faults().pause(refused >= REFUSALS_MAX);
            try {
                openOnce();
                break;
            } catch (OrbitKvException e) {
                isOpening = false;
                event("refused " + e.code());
                discard(); // an index that could not be filled
                totals.refusedOpenings++;
                if (!drive.mayRefuse(e)) {
                    throw e;
                }
                powerWasLost = false; // what it found may have been written down already
                stoppedCleanly = false;
                folders(false).close();
                reopenBare();
                if (refused >= REFUSALS_MAX) {
                    require(drive.hasLied(), "a folder that no drive has harmed is refused: " + e.code());
                    event("given up");
                    totals.unusable++;
                    isUsable = false;
                    return false;
                }
            } finally {
                folder.faults().pause(false);
            }
        }
        opened();
        return true;
    }

    private void openOnce() {
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
                .restoreTimeoutMillis(RESTORE_TIMEOUT_MILLIS)
                .policy(policy)
                .pageKind(PageKind.SMALL)
                .scrubHostBytesPerSecond(changesCap ? SCRUB_BYTES_PER_SECOND : 0)
                .scrubDriveBytesPerSecond(changesCap ? SCRUB_BYTES_PER_SECOND : 0)
                .probe(aimedDeaths(folder));
        isOpening = true;
        store = KvStore.openStepped(options, folders(isMade && gen.coin()), clock, seed + 1);
        isMade = true;
        check.attach(store);
        askWhileItFills();
        isOpening = false;
    }

    private void opened() {
        OpeningKind kind = store.openReport().kind();
        int made = store.openReport().lostFolders().size();
        require(made == 0 || lost >= 0, "folders were made anew: " + store.openReport());
        event("opened " + kind + " epoch " + store.openReport().epoch() + " "
                + store.openReport().accounting());
        totals.opened(kind);
        // A stop that wrote its snapshot is a clean one, even if the machine died before it returned.
        noteAbsent();
        givenUp = kind == OpeningKind.CLEAN ? freeInCatalogs() : Map.of();
        require(store.openReport().accounting().isWhole(), "the accounting is not whole");
        if (powerWasLost && !isSabotaged) {
            require(kind != OpeningKind.KILL, "a power loss was taken for a kill");
        }
        if (stoppedCleanly && lost < 0 && !drive.isTainted() && !stoppedOverCap) {
            require(kind == OpeningKind.CLEAN, "the opening after a clean stop was of kind " + kind);
        }
        require(store.acceptedPosition() >= lastPosition, "positions went back");
        lastPosition = store.acceptedPosition();
        require(lastPosition == store.writtenPosition(), "what was found is written");
        require(lastPosition == store.durablePosition(), "what was found is durable");
        folder.faults().pause(true);
        try {
            check();
        } finally {
            folder.faults().pause(false);
        }
        folder.noteHarms(false);
        powerWasLost = false;
        stoppedCleanly = false;
        stoppedOverCap = false;
        lost = -1;
        drive.begin();
    }

    private static void require(boolean holds, String broken) {
        if (!holds) {
            throw new Violation(Kind.OTHER, broken);
        }
    }

    private List<SimulatedFolder> inOrder() {
        return second == null ? List.of(folder) : List.of(folder, second);
    }

    /** What is found before the index is whole is right; nothing is promised to be there yet. */
    private void askWhileItFills() {
        int steps = 0;
        while (store.openReport().fill() == FillState.FILLING) {
            store.step();
            steps++;
            if (gen.below(8) == 0) {
                queryWhileItFills();
                totals.queriesWhileFilling++;
            }
        }
        event("filled in " + steps + " steps");
        require(store.awaitWhole(0), "the index is not whole");
    }

    private void queryWhileItFills() {
        if (clients.promptsSaved() > 0) {
            Prompt prompt = prompts.get(gen.below(clients.promptsSaved()));
            int from = gen.below(prompt.blocks());
            check.restore(gen.pick(families), prompt.keys(), from * KeyChain.KEY_BYTES, prompt.blocks() - from, false);
        }
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

    private void reopenBare() {
        folder = folder.reopen();
        second = second == null ? null : folder.beside(secondReal);
    }

    /** The next process; now and then it finds that a drive was replaced by an empty one. */
    private void reopen() {
        reopenBare();
        if (second != null && isMade && lost < 0 && mix.has(Fault.FOLDER_LOSS) && gen.below(LOSSES_ONE_IN) == 0) {
            lost = gen.below(2);
            event("folder " + lost + " is lost");
            folder.faults().happened(Fault.FOLDER_LOSS);
            (lost == 0 ? folder : second).erase();
            ledger.lost(segment -> segment % 2 == lost);
            totals.foldersLost++;
        }
    }

    /** The drive's probe; what happens seldom, or is over soon, has some deaths aimed at it. */
    private WindowProbe aimedDeaths(SimulatedFolder on) {
        WindowProbe probe = on.probe();
        return new WindowProbe() {
            @Override
            public void enter(CrashWindow window) {
                if (window == CrashWindow.SNAPSHOT && mayDie && gen.below(3) == 0) {
                    on.crashAfter(gen.between(1, SNAPSHOT_OPERATIONS));
                }
                if (window == CrashWindow.CAP_CHANGE && mayDie && gen.below(4) == 0) {
                    on.crashAfter(gen.between(1, SNAPSHOT_OPERATIONS));
                }
                probe.enter(window);
            }

            @Override
            public void leave(CrashWindow window) {
                probe.leave(window);
                aim(window);
            }

            /** Right behind a window, too: when what it guarded is believed. */
            private void aim(CrashWindow window) {
                int oneIn = switch (window) {
                    case REAPPEND -> REAPPENDS_ONE_IN;
                    case SEGMENT_REUSE -> REUSES_ONE_IN;
                    default -> 0;
                };
                if (oneIn > 0 && mayDie && of.clients() > 1 && mix.choices().below(oneIn) == 0) {
                    on.crashAfter(mix.choices().between(1, AIMED_OPERATIONS));
                }
            }
        };
    }

    private void stop() {
        ledger.acknowledge(store, check.handles);
        clients.giveUpLeases();
        noteGivenUp();
        long position = store.acceptedPosition();
        event("stops at " + position + ", written " + store.writtenPosition());
        StoreStats stats = store.stats(); // may be a second old
        stoppedOverCap = capChanged && (stats.capBytes() != cap || stats.ownBytes() > cap);
        lastPosition = position;
        KvStore stopping = store;
        store = null;
        usesAtDeath = durability.flushesBeforeReuse() ? Map.of() : UNKNOWN;
        stopping.close();
        check.foundWrongForGood();
        stoppedCleanly = !drive.mayBeOutOfService();
        if (stoppedCleanly) { // otherwise headers may wait for a flush until the store is open again
            usesAtDeath = Map.of();
            ledger.allDurable();
        }
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
        if (!mix.has(Fault.KILL) || !mix.has(Fault.POWER_LOSS)) {
            power = mix.has(Fault.POWER_LOSS);
        }
        totals.died(folder.crashedIn(), isOpening);
        event("died in " + folder.crashedIn());
        if (store != null
                && !isOpening) { // before that, its positions tell nothing of what an earlier life had promised
            noteGivenUp();
            ledger.acknowledge(store, check.handles);
            lastPosition = Math.max(lastPosition, store.acceptedPosition());
            noteUses(store);
        }
        event(power ? "power is lost" : "killed");
        if (power) {
            folder.powerLoss();
            needed = Promise.DURABLE;
        } else {
            folder.kill();
        }
        folder.faults().happened(power ? Fault.POWER_LOSS : Fault.KILL);
        totals.powerLosses += power ? 1 : 0;
        totals.kills += power ? 0 : 1;
        powerWasLost = power;
        stoppedCleanly = false;
        isOpening = false;
        clients.forgetLeases();
        check.foundWrongInVain();
        discard();
        reopen();
        if (power && isMade && !isSabotaged && gen.below(4) == 0) {
            verify();
            reopenBare();
        }
    }

    /** Whether a use of a segment may have ended before a power loss that took the proof. */
    private boolean mayHaveEnded(int segment, long use) {
        return needed == Promise.DURABLE && (usesAtDeath == UNKNOWN || usesAtDeath.getOrDefault(segment, use) != use);
    }

    /** A death before the promises of the life before were checked adds to what is known of that one. */
    private void noteUses(KvStore dying) {
        if (durability.flushesBeforeReuse() || usesAtDeath == UNKNOWN) {
            return;
        }
        Map<Integer, Long> uses = usesOf(dying);
        usesAtDeath.forEach((segment, use) -> uses.merge(segment, use, Math::max));
        usesAtDeath = uses;
    }

    private Map<Integer, Long> usesOf(KvStore dying) {
        Map<Integer, Long> uses = new HashMap<>();
        ledger.claims().values().forEach(claim -> uses.put(claim.segment, dying.useSequence(claim.segment)));
        return uses;
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

    /** Keeps the books while clients work, and times deaths. */
    private final class BesideClients implements SimulatedClients.Run {
        @Override
        public void clearing(int family) {
            if (family < 0) {
                cleared(families[clearing]);
            } else if (mayDie && gen.below(8) == 0) {
                folder.crashAfter(gen.between(1, CLEAR_OPERATIONS));
            }
            clearing = family;
        }

        @Override
        public void changeCap() {
            if (changesCap) {
                otherCap();
                event("cap: " + store.capBytes(cap, gen.coin() ? CAP_WAIT_MILLIS : 0));
            }
        }

        @Override
        public void acknowledge() {
            ledger.acknowledge(store, check.handles);
            totals.movedBlocks += ledger.follow(store, check.handles);
        }
    }

    private void cleared(CrashFamily family) {
        family.clears++;
        ledger.cleared(family.number);
    }

    // ---- checks ----

    private boolean isExcused(Block block, Claim claim) {
        return drive.hasLied() && harms.excuse(claim, families[block.family()].blockBytes());
    }

    private void check() {
        settleClear();
        // A log that still has free segments beside those that it gave up had no need to give up another: then a clean
        // stop has kept all that was accepted.
        boolean keptAll = stoppedCleanly
                && lost < 0
                && !drive.isTainted()
                && !capChanged
                && store.openReport().accounting().segmentsFree() > givenUp.size();
        for (Waiting block : ledger.takeUnwritten()) {
            Location at = check.locate(block.block(), block.keys(), block.offset());
            if (keptAll && !at.onDrive()) {
                throw new Violation(Kind.LOST, "accepted before a clean stop, and gone: " + block);
            }
        }
        int promises = ledger.size();
        try (SegmentHeaders headers = new SegmentHeaders(folders(false).list(), SEGMENT_BYTES)) {
            noneLost(ledger.check(
                    store,
                    check.handles,
                    needed,
                    headers::useSequence,
                    (segment, use) -> givenUp.getOrDefault(segment, 0L) == use
                            || givenUpForCap.contains(List.of((long) segment, use))
                            || mayHaveEnded(segment, use),
                    this::isExcused));
        }
        check.checkQuarantine(prompts, clients.promptsSaved());
        totals.promisesChecked += promises;
        totals.promisesKept += ledger.size();
        int first = Math.max(0, clients.promptsSaved() - PROMPTS_CHECKED);
        int found = 0;
        for (int number = first; number < clients.promptsSaved(); number++) {
            for (CrashFamily family : families) {
                found += check.checkPrompt(family, prompts.get(number));
            }
        }
        noneWrong(store.stats());
        capChanged = false;
        event("checked: " + promises + " promised, " + ledger.size() + " kept, " + found + " found");
        totals.foundBlocks += found;
        needed = Promise.WRITTEN;
        usesAtDeath = Map.of();
    }

    /** A clear that the machine died in has happened whole or not at all: one block that is there says not at all. */
    private void settleClear() {
        if (clearing < 0) {
            return;
        }
        CrashFamily family = families[clearing];
        clearing = -1;
        if (check.hasAny(family, 0, clients.promptsSaved())) {
            event("the clear of " + family.number + " has not happened");
            return;
        }
        event("the clear of " + family.number + " has happened");
        cleared(family);
    }

    private static void noneLost(List<String> lost) {
        if (!lost.isEmpty()) {
            throw new Violation(Kind.LOST, lost.size() + " blocks are lost: " + lost);
        }
    }

    /** What is counted as wrong has a drive that lied to blame for it; what could not be read, one that failed. */
    private void noneWrong(StoreStats stats) {
        if (stats.corruptBlocks() > 0 && !drive.hasLied()) {
            throw new Violation(Kind.LOST, stats.corruptBlocks() + " blocks in the index whose bytes are wrong");
        }
        require(stats.readErrors() == 0 || drive.hasFailedReads(), "reads failed: " + stats.readErrors());
        long found = stats.scrub().hostFound() + stats.scrub().driveFound();
        if (found > 0 && !drive.hasLied()) {
            throw new Violation(Kind.LOST, found + " blocks in which scrub sees damage");
        }
        totals.scrubbedBytes += stats.scrub().driveBytes();
    }

    /** The tool that people check a folder with finds nothing wrong, after a clean stop as after a power loss. */
    private void verify() {
        folder.faults().pause(true);
        try {
            VerifyReport report =
                    Verify.run(folders(gen.coin()), OpeningOptions.of(0).simulated(seed));
            event("verified: "
                    + report.toString().replace(secondReal.getParent().toString(), ""));
            boolean asExpected = lost < 0
                    ? report.isClean()
                    : report.problems().stream().allMatch(problem -> problem.code() == ErrorCode.FOLDER_SET);
            require(asExpected || drive.isTainted(), "verify: " + report.problems());
        } catch (OrbitKvException e) {
            event("verify refused: " + e.code());
            if (!drive.mayRefuse(e)) {
                throw e;
            }
        } finally {
            folder.faults().pause(false);
        }
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
        totals.corruptBlocks += check.corruptBlocks();
        totals.excusedLosses += ledger.excusedLosses();
        totals.took(folder);
        check.close();
    }
}
