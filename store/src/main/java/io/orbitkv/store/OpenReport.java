package io.orbitkv.store;

import io.orbitkv.recovery.Accounting;
import io.orbitkv.recovery.OpeningKind;
import java.util.List;

/**
 * What an opening found.
 *
 * @param kind how the life before ended
 * @param epoch which life this is, from 1
 * @param accounting where every page of the log belongs
 * @param openNanos how long opening took
 * @param lostFolders paths of data folders that held nothing of their store, and so were made anew: their blocks are gone
 */
public record OpenReport(
        OpeningKind kind, long epoch, Accounting accounting, long openNanos, List<String> lostFolders) {}
