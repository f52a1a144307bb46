package io.orbitkv.recovery;

import io.orbitkv.nativeio.DataFolder;

/**
 * What a data folder takes on its drive, told apart by who put it there.
 *
 * @param ownBytes segments, catalog, snapshots, lock page and the folders themselves
 * @param foreignBytes everything else below the folder
 */
public record FolderBytes(long ownBytes, long foreignBytes) {
    /** Looks at every file. */
    public static FolderBytes look(DataFolder folder) {
        long foreign = foreignBytes(folder);
        return new FolderBytes(Math.max(0, folder.allocatedBytes("") - foreign), foreign);
    }

    /** Looks at the files only that are not our own. */
    public static long foreignBytes(DataFolder folder) {
        long bytes = 0;
        for (String name : FolderNames.foreign(folder)) {
            bytes += folder.allocatedBytes(name);
        }
        return bytes;
    }
}
