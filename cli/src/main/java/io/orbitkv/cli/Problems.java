package io.orbitkv.cli;

import java.util.ArrayList;
import java.util.List;

/** What must not be in a demo or a replay. */
final class Problems {
    private Problems() {}

    /** In words; empty when all is well. */
    static String of(Replay replay, long capBytes) {
        List<String> problems = new ArrayList<>();
        long wrong = replay.wrongBlocks();
        if (wrong > 0) {
            problems.add(wrong + " restored blocks had wrong bytes");
        }
        if (replay.lostWritten > 0) {
            problems.add(replay.lostWritten + " of " + replay.askedBlocks + " written blocks were lost in the restart");
        }
        if (replay.diskPeakBytes > capBytes) {
            problems.add("the data folders grew to " + replay.diskPeakBytes + " bytes, past the cap of " + capBytes);
        }
        if (replay.restart == Replay.Restart.KILL
                && !("KILL".equals(replay.restarted.kind) && "KILL".equals(replay.after.kind))) {
            problems.add("the store was opened as after " + replay.restarted.kind + ", then as after "
                    + replay.after.kind + ", so the kill proves nothing: did somebody else open the folder meanwhile?");
        }
        for (Phase phase : List.of(replay.before, replay.after)) {
            long read = Math.min(phase.driveReadBytes, phase.logReadBytes);
            if (read < phase.nvmeHitBytes) {
                problems.add("only " + read + " bytes were read from the drive "
                        + (phase == replay.before ? "before" : "after") + " the restart for NVMe hits of "
                        + phase.nvmeHitBytes + " bytes (is the folder on a drive?)");
            }
        }
        return String.join("; ", problems);
    }
}
