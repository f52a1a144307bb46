package io.orbitkv.suite;

import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.recovery.OpeningKind;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;

/** What the runs of a test have done, so that a test that has stopped testing is noticed. */
final class PowerLossTotals {
    final Map<OpeningKind, Integer> openings = new EnumMap<>(OpeningKind.class);
    final Map<CrashWindow, Integer> diedIn = new EnumMap<>(CrashWindow.class);
    int powerLosses;
    int kills;
    int diedOutside;
    int diedOpening;
    int clears;
    int foldersLost;
    long savedBlocks;
    long restoredBlocks;
    long promisesChecked;
    long promisesKept;
    long foundBlocks;
    long movedBlocks;
    long scrubbedBytes;

    void opened(OpeningKind kind) {
        openings.merge(kind, 1, Integer::sum);
    }

    void died(Set<CrashWindow> windows, boolean opening) {
        diedOpening += opening ? 1 : 0;
        if (windows.isEmpty()) {
            diedOutside++;
        }
        windows.forEach(window -> diedIn.merge(window, 1, Integer::sum));
    }

    @Override
    public String toString() {
        return powerLosses + " power losses, " + kills + " kills; openings " + openings + "; died in windows " + diedIn
                + ", outside of all " + diedOutside + ", while opening " + diedOpening + "; " + clears + " clears, "
                + foldersLost + " folders lost, "
                + savedBlocks + " blocks saved, " + restoredBlocks + " restored and compared; promises checked "
                + promisesChecked + ", kept " + promisesKept
                + ", the others ended with their segments; found after opening "
                + foundBlocks + "; seen moved to other segments " + movedBlocks + "; bytes scrubbed on the drive "
                + scrubbedBytes;
    }
}
