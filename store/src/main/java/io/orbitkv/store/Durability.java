package io.orbitkv.store;

/** When the store flushes the drive by itself; {@link KvStore#sync} flushes at any setting. */
public enum Durability {
    /** Never: blocks survive a kill, and a power loss only as far as the last {@link KvStore#sync}. */
    WRITTEN,
    /** At most every {@link StoreOptions#flushIntervalMillis()} milliseconds. */
    INTERVAL,
    /** After every batch: a block counts as written only when it is durable. */
    ALWAYS
}
