package io.orbitkv.manager;

/** Why not all of the pool may be used. */
enum PoolCondition {
    /** All of it may. */
    WHOLE,
    /** The manager has just started, and lets one piece after the other be used. */
    GROWING,
    /** The machine, or a control group of the manager, has too little memory left for more. */
    MEMORY,
    /** A process still maps the pool of a former manager of this store: both together take no more than one. */
    FORMER_POOL
}
