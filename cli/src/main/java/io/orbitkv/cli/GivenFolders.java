package io.orbitkv.cli;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.Resources;
import io.orbitkv.recovery.OpeningOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The data folders that a tool looks into: never made, closed with the tool, with its progress on stderr. */
final class GivenFolders implements AutoCloseable {
    private final Resources opened = new Resources();
    private final Terminal terminal = Terminal.onStderr();
    private final DataFolders folders;

    GivenFolders(List<Path> paths) {
        DataPaths.requireFolders(paths, "name a data folder");
        boolean good = false;
        try {
            List<DataFolder> list = new ArrayList<>();
            for (Path path : paths) {
                list.add(opened.keep(HostFolder.open(path)));
            }
            folders = new DataFolders(list);
            good = true;
        } finally {
            if (!good) {
                opened.close();
            }
        }
    }

    DataFolders folders() {
        return folders;
    }

    /** How to read them. */
    OpeningOptions options() {
        return OpeningOptions.of(0).withProgress((what, done, of) -> {
            if (terminal.isDue()) {
                terminal.show(String.format(Locale.ROOT, "%s: %,d of %,d", what, done, of));
            }
        });
    }

    /** Removes the line of progress, before other things are printed. */
    void clear() {
        terminal.clear();
    }

    @Override
    public void close() {
        terminal.clear();
        opened.close();
    }
}
