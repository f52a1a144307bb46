package io.orbitkv.nativeio;

import java.util.List;

/**
 * One data folder: every file operation of the store on it goes through this door, so that tests can put a simulated
 * drive behind it.
 *
 * <p>Names are relative to the folder, with {@code /} between parts. Files are made with mode 0600, folders with 0700.
 * Safe from any thread.
 */
public interface DataFolder extends AutoCloseable {
    /** Where it is, for messages and for the catalog, which does its own file access. */
    String path();

    /** Names this boot of the machine, so that a kill can be told from a power loss. */
    String bootId();

    /**
     * Takes the folder for this process.
     *
     * @param name the lock file, created where it is missing
     * @param waitNanos how long to wait for a holder whose process is gone but whose transfers are still in flight
     * @throws OrbitKvException {@link ErrorCode#FOLDER_IN_USE} with the pid of the holder
     */
    void lock(String name, long waitNanos);

    /** Makes a sub-folder unless it exists; durable once {@link #syncFolder} of its parent was called. */
    void makeFolder(String name);

    /** Names of the files and folders in a sub-folder ({@code ""} is the folder itself), sorted; empty if there is none. */
    List<String> list(String name);

    /** Whether a file or folder exists. */
    boolean exists(String name);

    /**
     * Creates a file and allocates its blocks on the drive.
     *
     * @param name must not exist yet
     * @param bytes its length, a multiple of the page
     * @return the file, open for reading and writing
     * @throws OrbitKvException {@link ErrorCode#NO_SPACE} when the file system is full
     */
    StorageFile create(String name, long bytes);

    /**
     * Makes a file as long as this, without blocks for what is new: it reads as zeros. A file that is as long or longer stays
     * as it is, one that is not there is made; durable once {@link #syncFolder} was called.
     *
     * @param name the file, which nobody has open
     * @param bytes its length, a multiple of the page
     */
    void extend(String name, long bytes);

    /**
     * Opens a file that exists.
     *
     * @param name the file
     * @param writable whether to write as well
     * @return the file
     */
    StorageFile open(String name, boolean writable);

    /** Renames a file, replacing the target; durable once {@link #syncFolder} was called. */
    void rename(String from, String to);

    /** Removes a file; durable once {@link #syncFolder} was called. A file that isn't there is fine. */
    void unlink(String name);

    /** fsync of a sub-folder ({@code ""} is the folder itself): creations, renames and removals in it are durable. */
    void syncFolder(String name);

    /** Bytes that a file, or a folder with all below it, takes on the drive (st_blocks × 512). */
    long allocatedBytes(String name);

    /** Bytes that the file system could still give out. */
    long freeBytes();

    /**
     * Makes a ring for this folder's drive. The ring keeps the folder's lock held until its transfers have ended, even
     * if this process is killed.
     *
     * @param depth most transfers in flight
     */
    default IoRing newRing(int depth) {
        return newRing(depth, List.of());
    }

    /**
     * Makes a ring for the files of this folder and of others of the same kind; see {@link #newRing(int)}.
     *
     * @param depth most transfers in flight
     * @param beside the other folders
     * @return the ring, which holds the locks of all of them
     */
    IoRing newRing(int depth, List<DataFolder> beside);

    /**
     * Makes a reader for callers' own threads, of files of any folder of this machine.
     *
     * @return the reader, or null where there is none: then reads go through a ring
     */
    default TimedReader newReader() {
        return null;
    }

    /** Gives the lock back and closes what is open. Safe to call twice. */
    @Override
    void close();
}
