package io.orbitkv.store;

/**
 * What the data folders take, beside the cap. All folders together; each keeps its equal share.
 *
 * @param capBytes most bytes that the store's files and foreign ones may take together
 * @param ownBytes bytes that the store's files take on the drives: segments, catalogs, snapshots, folders
 * @param foreignBytes bytes of everything else in the folders, as they were seen last, at most some seconds ago
 * @param condition how far the store has come
 */
public record CapState(long capBytes, long ownBytes, long foreignBytes, CapCondition condition) {
    /** Whether own and foreign bytes were within the cap when they were seen last. */
    public boolean isWithin() {
        return ownBytes + foreignBytes <= capBytes;
    }
}
