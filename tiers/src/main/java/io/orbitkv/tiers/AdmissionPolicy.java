package io.orbitkv.tiers;

/** Which of the blocks that are saved are written to the drive. */
public enum AdmissionPolicy {
    /** Every one. */
    ALL,
    /** A block on its second use: much fewer writes, and more hits where the drive is small against the traffic. */
    REUSE,
    /** Whichever of the two does better on a sample of the traffic. */
    DUEL
}
