package io.orbitkv.suite;

import io.orbitkv.kit.Fault;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.recovery.OpeningKind;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;

/** What runs have done, so that a simulation that has stopped simulating is noticed. Not thread-safe. */
final class SimulationTotals {
    final Map<OpeningKind, Long> openings = new EnumMap<>(OpeningKind.class);
    final Map<CrashWindow, Long> entered = new EnumMap<>(CrashWindow.class);
    final Map<CrashWindow, Long> diedIn = new EnumMap<>(CrashWindow.class);
    final Map<Fault, Long> faults = new EnumMap<>(Fault.class);
    long runs;
    long wrong;
    long lost;
    long otherFailures;
    long operations;
    long powerLosses;
    long kills;
    long diedOutside;
    long diedOpening;
    long refusedOpenings;
    long unusable;
    long clears;
    long foldersLost;
    long savedBlocks;
    long restoredBlocks;
    long promisesChecked;
    long promisesKept;
    long foundBlocks;
    long movedBlocks;
    long queriesWhileFilling;
    long scrubbedBytes;

    /** Blocks that a drive had harmed, found, not returned, and counted as corrupt by the store. */
    long corruptBlocks;

    /** Promises that a drive that lied has broken. */
    long excusedLosses;

    void opened(OpeningKind kind) {
        openings.merge(kind, 1L, Long::sum);
    }

    void died(Set<CrashWindow> windows, boolean opening) {
        diedOpening += opening ? 1 : 0;
        if (windows.isEmpty()) {
            diedOutside++;
        }
        windows.forEach(window -> diedIn.merge(window, 1L, Long::sum));
    }

    /** A run is over: what its machine has seen. */
    void took(SimulatedFolder folder) {
        runs++;
        folder.windowsEntered().forEach((window, count) -> entered.merge(window, count, Long::sum));
        for (Fault fault : Fault.values()) {
            faults.merge(fault, folder.faults().count(fault), Long::sum);
        }
    }

    /** A run has failed. */
    void failed(Throwable failure) {
        switch (Violation.kindOf(failure)) {
            case WRONG -> wrong++;
            case LOST -> lost++;
            case OTHER -> otherFailures++;
        }
    }

    long diedIn(CrashWindow window) {
        return diedIn.getOrDefault(window, 0L);
    }

    void add(SimulationTotals other) {
        other.openings.forEach((key, count) -> openings.merge(key, count, Long::sum));
        other.entered.forEach((key, count) -> entered.merge(key, count, Long::sum));
        other.diedIn.forEach((key, count) -> diedIn.merge(key, count, Long::sum));
        other.faults.forEach((key, count) -> faults.merge(key, count, Long::sum));
        runs += other.runs;
        wrong += other.wrong;
        lost += other.lost;
        otherFailures += other.otherFailures;
        operations += other.operations;
        powerLosses += other.powerLosses;
        kills += other.kills;
        diedOutside += other.diedOutside;
        diedOpening += other.diedOpening;
        refusedOpenings += other.refusedOpenings;
        unusable += other.unusable;
        clears += other.clears;
        foldersLost += other.foldersLost;
        savedBlocks += other.savedBlocks;
        restoredBlocks += other.restoredBlocks;
        promisesChecked += other.promisesChecked;
        promisesKept += other.promisesKept;
        foundBlocks += other.foundBlocks;
        movedBlocks += other.movedBlocks;
        queriesWhileFilling += other.queriesWhileFilling;
        scrubbedBytes += other.scrubbedBytes;
        corruptBlocks += other.corruptBlocks;
        excusedLosses += other.excusedLosses;
    }

    @Override
    public String toString() {
        return powerLosses + " power losses, " + kills + " kills; openings " + openings + ", refused " + refusedOpenings
                + " (for good " + unusable + "); died in windows " + diedIn + ", outside of all " + diedOutside
                + ", while opening " + diedOpening + "; windows entered " + entered + "; faults " + faults + "; "
                + operations + " operations, " + clears + " clears, " + foldersLost + " folders lost, " + savedBlocks
                + " blocks saved, " + restoredBlocks + " restored and compared; promises checked " + promisesChecked
                + ", kept " + promisesKept + ", broken by drives that lied " + excusedLosses
                + ", the others ended with their segments; harmed blocks counted as corrupt " + corruptBlocks
                + "; found after opening " + foundBlocks + "; seen moved to other segments " + movedBlocks
                + "; bytes scrubbed on the drive " + scrubbedBytes;
    }
}
