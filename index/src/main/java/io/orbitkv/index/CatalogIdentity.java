package io.orbitkv.index;

/**
 * What a store is, as the catalog keeps it: all of it for its whole life but for the cap, and the number of segments, which
 * grows with a cap that asks for more.
 *
 * @param formatVersion the version of the format on the drive
 * @param storeIdHigh first 8 bytes of the random store id, big-endian
 * @param storeIdLow last 8 bytes of the random store id, big-endian
 * @param segmentBytes bytes of a segment
 * @param segments how many segments its files have places for; those beyond the cap have no pages
 * @param capBytes the cap
 * @param createdMillis when it was made, in milliseconds since 1970
 * @param folders how many data folders it is spread over
 * @param folder the number of the folder that this catalog lies in, from 0
 */
public record CatalogIdentity(
        int formatVersion,
        long storeIdHigh,
        long storeIdLow,
        long segmentBytes,
        int segments,
        long capBytes,
        long createdMillis,
        int folders,
        int folder) {
    /** A store in one folder; see the record. */
    public CatalogIdentity(
            int formatVersion,
            long storeIdHigh,
            long storeIdLow,
            long segmentBytes,
            int segments,
            long capBytes,
            long createdMillis) {
        this(formatVersion, storeIdHigh, storeIdLow, segmentBytes, segments, capBytes, createdMillis, 1, 0);
    }

    /** The same store, as another of its folders knows it. */
    public CatalogIdentity inFolder(int number) {
        return inFolder(number, folders);
    }

    /** The same, spread over so many folders. */
    CatalogIdentity inFolder(int number, int of) {
        return new CatalogIdentity(
                formatVersion, storeIdHigh, storeIdLow, segmentBytes, segments, capBytes, createdMillis, of, number);
    }

    /** The same store with another cap, and places for so many segments. */
    public CatalogIdentity resized(long cap, int places) {
        return new CatalogIdentity(
                formatVersion, storeIdHigh, storeIdLow, segmentBytes, places, cap, createdMillis, folders, folder);
    }

    /** The store id as 32 hexadecimal digits. */
    public String storeId() {
        return String.format("%016x%016x", storeIdHigh, storeIdLow);
    }
}
