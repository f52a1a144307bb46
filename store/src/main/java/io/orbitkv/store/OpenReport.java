package io.orbitkv.store;

import io.orbitkv.recovery.Accounting;
import io.orbitkv.recovery.FillState;
import io.orbitkv.recovery.OpeningKind;
import io.orbitkv.recovery.OpeningTimes;
import java.util.List;
import java.util.Locale;

/**
 * What an opening found, as far as it is known: the index is filled while the store serves.
 *
 * @param kind how the life before ended
 * @param epoch which life this is, from 1
 * @param accounting where every page of the log belonged when its blocks were indexed; null before the index is whole
 * @param openNanos how long it took until the store could answer
 * @param lostFolders paths of data folders that held nothing of their store, and so were made anew: their blocks are gone
 * @param fill how far the index is
 * @param filledShare the part of it that is filled, 0 to 1
 * @param times where the time went
 */
public record OpenReport(
        OpeningKind kind,
        long epoch,
        Accounting accounting,
        long openNanos,
        List<String> lostFolders,
        FillState fill,
        double filledShare,
        OpeningTimes times) {
    private static final double NANOS_A_MILLI = 1e6;

    /** The times, for people: a line for each step, in milliseconds from the start of the opening. */
    public List<String> timeLines() {
        return List.of(
                line("folders locked", times.lockedNanos()),
                line("catalog read", times.catalogNanos()),
                line("segment headers read", times.headersNanos()),
                line("log's state known", times.judgedNanos()),
                line("epoch begun", times.readyNanos()),
                line("store open", openNanos),
                switch (fill) {
                    case FILLING ->
                        String.format(Locale.ROOT, "%-22s %9.0f %% so far", "index filled", 100 * filledShare);
                    case WHOLE -> line("index whole", times.wholeNanos());
                    case FAILED -> "index not whole: filling it failed, see the log";
                });
    }

    private static String line(String what, long nanos) {
        return String.format(Locale.ROOT, "%-22s %9.1f ms", what, nanos / NANOS_A_MILLI);
    }
}
