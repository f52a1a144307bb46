package io.orbitkv.index;

/**
 * What a store is for all its life, as the catalog keeps it.
 *
 * @param formatVersion the version of the format on the drive
 * @param storeIdHigh first 8 bytes of the random store id, big-endian
 * @param storeIdLow last 8 bytes of the random store id, big-endian
 * @param segmentBytes bytes of a segment
 * @param segments how many segments
 * @param capBytes the cap that the store was made with
 * @param createdMillis when it was made, in milliseconds since 1970
 */
public record CatalogIdentity(
        int formatVersion,
        long storeIdHigh,
        long storeIdLow,
        long segmentBytes,
        int segments,
        long capBytes,
        long createdMillis) {
    /** The store id as 32 hexadecimal digits. */
    public String storeId() {
        return String.format("%016x%016x", storeIdHigh, storeIdLow);
    }
}
