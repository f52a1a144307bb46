package io.orbitkv.store;

/**
 * Where a block lies now: for diagnostics, it may move at any time.
 *
 * @param inHost whether host memory holds it
 * @param onDrive whether the drive holds it
 * @param segment its segment of the log, -1 where it isn't on the drive
 * @param page its first page within that segment
 * @param useSequence which life of the segment: as long as {@link KvStore#useSequence(int)} still says so, it is there
 */
public record Location(boolean inHost, boolean onDrive, int segment, int page, long useSequence) {
    /** Not stored. */
    public static final Location NOWHERE = new Location(false, false, -1, 0, 0);

    /** Whether any tier holds it. */
    public boolean isStored() {
        return inHost || onDrive;
    }
}
