package io.orbitkv.tiers;

/**
 * What a drive of the log still does.
 *
 * <pre>
 * SERVING --error, or no answer in time--> OUT --all transfers ended, probe begins--> RETURNING --probe is well--> SERVING
 *                                           ^------------ probe fails or is late ---------'
 * </pre>
 */
public enum TierState {
    /** Reads and writes. */
    SERVING,
    /** Answered with an error or not in time: takes no reads and no blocks, and is looked at again until it is well. */
    OUT,
    /** Out, and being tried: a page is read, one is written, and what was written before is flushed. */
    RETURNING,
    /** Was stopped cleanly: everything that it took over is durable. */
    STOPPED,
    /** A mistake of the log's own: takes no reads, writes nothing, and its positions stand still. */
    FAILED
}
