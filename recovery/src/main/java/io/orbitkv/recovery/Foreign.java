package io.orbitkv.recovery;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** What lies in data folders that OrbitKV did not put there: left alone beside a store, refused where one is to be made. */
final class Foreign {
    private static final int SHOWN_MAX = 5;

    private final DataFolders folders;
    private final Map<DataFolder, List<String>> byFolder = new IdentityHashMap<>();
    private final List<String> names = new ArrayList<>();
    private long bytes;

    /** Looks into folders. */
    Foreign(DataFolders folders) {
        this.folders = folders;
        folders.list().forEach(folder -> byFolder.put(folder, FolderNames.foreign(folder)));
    }

    /** Refuses a folder that holds no store, but other things. */
    void refuse(DataFolder folder) {
        List<String> foreign = byFolder.get(folder);
        if (!foreign.isEmpty()) {
            throw new OrbitKvException(
                    ErrorCode.FOREIGN_FILE,
                    "the folder " + folder.path() + " holds no store, but other things: "
                            + foreign.subList(0, Math.min(SHOWN_MAX, foreign.size()))
                            + (foreign.size() > SHOWN_MAX ? " ..." : "") + "; choose an empty folder");
        }
    }

    /** Measures all of it and tells people. */
    void note(Notes notes) {
        for (DataFolder folder : folders.list()) {
            for (String name : byFolder.get(folder)) {
                String shown = folders.count() == 1 ? name : folder.path() + "/" + name;
                long taken = folder.allocatedBytes(name);
                names.add(shown);
                bytes += taken;
                notes.add("ignored: " + shown + " (" + taken + " bytes), which OrbitKV did not put there");
            }
        }
    }

    /** Names of what was noted, with their folders where there are several. */
    List<String> names() {
        return names;
    }

    /** What they take on the drives. */
    long bytes() {
        return bytes;
    }
}
