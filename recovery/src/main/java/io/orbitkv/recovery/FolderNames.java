package io.orbitkv.recovery;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.tiers.LogGeometry;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** What lies in a data folder, and what does not belong there. */
final class FolderNames {
    static final String LOCK = "LOCK";
    static final String CATALOG = "catalog";
    static final String SNAPSHOT = "snapshot";
    static final String INDEX = SNAPSHOT + "/INDEX";
    static final String MARKER = SNAPSHOT + "/MARKER";

    /** Which blocks host memory held at the last clean stop: hints, in the first folder only. */
    static final String LAST_USED = SNAPSHOT + "/USED";

    /** What a marker is called until it is whole and flushed: a death in between leaves no marker that looks damaged. */
    static final String MARKER_NEW = SNAPSHOT + "/MARKER.new";

    /** There as long as the folder is being made: what else is there may be made anew. */
    static final String INCOMPLETE = "INCOMPLETE";

    private static final Set<String> OWN = Set.of(LOCK, CATALOG, SNAPSHOT, LogGeometry.FOLDER, INCOMPLETE);

    /** What mkfs leaves at the top of a file system. */
    private static final Set<String> TOLERATED = Set.of("lost+found");

    private static final Set<String> OWN_CATALOG = Set.of("data.mdb", "lock.mdb", "SPARE", "SPARE.new");
    private static final Set<String> OWN_SNAPSHOT = Set.of("INDEX", "MARKER", "MARKER.new", "USED");

    private FolderNames() {}

    static String catalogPath(DataFolder folder) {
        return folder.path() + "/" + CATALOG;
    }

    /** Names of everything that OrbitKV did not put there. */
    static List<String> foreign(DataFolder folder) {
        List<String> foreign = new ArrayList<>();
        for (String name : folder.list("")) {
            if (!OWN.contains(name) && !TOLERATED.contains(name)) {
                foreign.add(name);
            }
        }
        for (String name : folder.list(LogGeometry.FOLDER)) {
            if (LogGeometry.fileNumber(name) < 0) {
                foreign.add(LogGeometry.FOLDER + "/" + name);
            }
        }
        for (String name : folder.list(CATALOG)) {
            if (!OWN_CATALOG.contains(name)) {
                foreign.add(CATALOG + "/" + name);
            }
        }
        for (String name : folder.list(SNAPSHOT)) {
            if (!OWN_SNAPSHOT.contains(name)) {
                foreign.add(SNAPSHOT + "/" + name);
            }
        }
        return foreign;
    }
}
