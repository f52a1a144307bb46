package io.orbitkv.store;

import io.orbitkv.recovery.Accounting;
import io.orbitkv.recovery.OpeningKind;

/**
 * What an opening found.
 *
 * @param kind how the life before ended
 * @param epoch which life this is, from 1
 * @param accounting where every page of the log belongs
 * @param openNanos how long opening took
 */
public record OpenReport(OpeningKind kind, long epoch, Accounting accounting, long openNanos) {}
