package io.orbitkv.cli;

import java.nio.file.Path;
import java.util.List;

/**
 * The data folders of a demo or a replay: those that the user named, which stay, or a temporary one, which is removed at
 * the end, an interrupt included, unless something is to be looked at.
 */
final class ReplayFolders implements AutoCloseable {
    private final List<Path> folders;
    private final Thread interrupted;
    private boolean keep;

    private ReplayFolders(List<Path> folders, boolean keep) {
        this.folders = List.copyOf(folders);
        this.keep = keep;
        interrupted = new Thread(this::removeAfterChildren, "remove-folder");
        if (!keep) {
            Runtime.getRuntime().addShutdownHook(interrupted);
        }
    }

    /**
     * Takes the folders that were named, or makes a temporary one.
     *
     * @param named what the user named; empty for a temporary folder
     * @param prefix what the temporary folder's name begins with
     */
    static ReplayFolders of(List<Path> named, String prefix) {
        return named.isEmpty()
                ? new ReplayFolders(List.of(TemporaryFolders.create(prefix)), false)
                : new ReplayFolders(named, true);
    }

    List<Path> paths() {
        return folders;
    }

    /** How to look at them afterwards, in words; they stay from now on. */
    String keep() {
        endHook();
        keep = true;
        return (folders.size() == 1 ? "the data folder " : "the data folders ") + DataPaths.text(folders)
                + (folders.size() == 1 ? " is" : " are") + " kept: look with 'orbitkv verify "
                + DataPaths.arguments(folders) + "'";
    }

    /** A child that still opens its store would make the folder anew. */
    private void removeAfterChildren() {
        ChildJvm.endAll();
        folders.forEach(TemporaryFolders::delete);
    }

    /** False where the JVM is ending already, and the hook does the work. */
    private boolean endHook() {
        try {
            Runtime.getRuntime().removeShutdownHook(interrupted);
            return true;
        } catch (IllegalStateException e) {
            return false;
        }
    }

    @Override
    public void close() {
        if (!keep && endHook()) {
            folders.forEach(TemporaryFolders::delete);
        }
    }
}
