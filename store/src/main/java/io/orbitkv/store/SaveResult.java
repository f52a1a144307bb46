package io.orbitkv.store;

/**
 * What became of the blocks of one {@link KvStore#save}; reused by the caller from call to call.
 *
 * <p>Blocks are taken in order: {@code present + accepted} of them are in the store, the {@code dropped} ones behind
 * are not. Not thread-safe.
 */
public final class SaveResult {
    private long position;
    private int present;
    private int accepted;
    private int admitted;
    private int dropped;
    private DropReason reason = DropReason.NONE;

    /** Why blocks were dropped. */
    public enum DropReason {
        /** None was. */
        NONE,
        /** The queue to the drive is full: the drive is slower than the saves. Sync, or save again later. */
        QUEUE_FULL,
        /** Every segment of the host pool is being filled, read or written back. */
        POOL_BUSY,
        /** The index is full; it is evicting. */
        INDEX_FULL,
        /** The family was cleared while its blocks were being taken in. */
        CLEARED,
        /** The family has another key that begins with the same 8 bytes; keys are to be hashes of all that comes before. */
        KEY_COLLISION
    }

    /** Creates an empty result. */
    public SaveResult() {}

    void reset() {
        position = 0;
        present = 0;
        accepted = 0;
        admitted = 0;
        dropped = 0;
        reason = DropReason.NONE;
    }

    void present(int blocks) {
        present += blocks;
    }

    /** A block was taken in and is on its way to the drive. */
    void admitted(long lastPosition) {
        accepted++;
        admitted++;
        position = lastPosition;
    }

    /** A block was taken into host memory only. */
    void refused() {
        accepted++;
    }

    void drop(int blocks, DropReason why) {
        dropped += blocks;
        reason = why;
    }

    /** The place in the log of the last admitted block, for {@link KvStore#sync}; 0 when none was admitted. */
    public long position() {
        return position;
    }

    /** Blocks that were stored already. */
    public int present() {
        return present;
    }

    /** Blocks that were taken in. */
    public int accepted() {
        return accepted;
    }

    /**
     * Blocks that were taken in and are on their way to the drive: always the first ones of those accepted, and all of
     * them unless the store admits selectively ({@link StoreOptions#admission}) or no drive is in service. Only they survive the process, once
     * {@link KvStore#sync} says so.
     */
    public int admitted() {
        return admitted;
    }

    /** Blocks that were not taken in: the last ones of the call. */
    public int dropped() {
        return dropped;
    }

    /** Why blocks were dropped. */
    public DropReason reason() {
        return reason;
    }

    @Override
    public String toString() {
        return "present " + present + ", accepted " + accepted + " (admitted " + admitted + "), dropped " + dropped
                + " (" + reason + "), position " + position;
    }
}
