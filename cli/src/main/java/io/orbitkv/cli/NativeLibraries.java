package io.orbitkv.cli;

import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The native parts of JNA, jffi and LMDB, unpacked when this program was built. Otherwise each library unpacks its own at
 * every start into a folder for temporary files, and a process that is killed leaves it there.
 */
final class NativeLibraries {
    /** Names the folder that they were unpacked into. */
    static final String FOLDER = "orbitkv.native";

    private NativeLibraries() {}

    /**
     * Tells the libraries where their native parts are; before any of them is used. One whose part is not there, or whose
     * property is set already, goes on as it would.
     *
     * @param folder as in {@link #FOLDER}; null: none was unpacked
     */
    static void use(String folder) {
        if (folder == null) {
            return;
        }
        boolean arm = System.getProperty("os.arch").equals("aarch64");
        Path root = Path.of(folder);
        Path jna = root.resolve("com/sun/jna").resolve(arm ? "linux-aarch64" : "linux-x86-64");
        Path jffi = root.resolve("jni").resolve(arm ? "aarch64-Linux" : "x86_64-Linux");
        Path lmdb = root.resolve("org/lmdbjava/native").resolve((arm ? "aarch64" : "x86_64") + "-linux-gnu.so");
        set("jna.boot.library.path", jna);
        set("jffi.boot.library.path", jffi);
        set("lmdbjava.native.lib", lmdb);
    }

    private static void set(String property, Path place) {
        if (System.getProperty(property) == null && Files.isReadable(place)) {
            System.setProperty(property, place.toString());
        }
    }
}
