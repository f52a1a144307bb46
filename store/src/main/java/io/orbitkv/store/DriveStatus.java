package io.orbitkv.store;

import io.orbitkv.tiers.TierState;

/**
 * What a drive of a store does.
 *
 * @param folder its data folder
 * @param state whether it serves
 * @param oldestTransferMillis how long the oldest transfer has been under way there, 0 when there is none
 */
public record DriveStatus(String folder, TierState state, long oldestTransferMillis) {}
