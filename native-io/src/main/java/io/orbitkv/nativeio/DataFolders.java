package io.orbitkv.nativeio;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The data folders of one store, mostly one: on several drives a store's segments are spread over all of them.
 *
 * <p>Immutable; the folders in it are as safe from threads as they are by themselves.
 */
public final class DataFolders implements AutoCloseable {
    /** Most folders of a store. */
    public static final int FOLDERS_MAX = 16;

    private final List<DataFolder> folders;

    /**
     * Takes folders together, in this order.
     *
     * @param folders 1 to {@link #FOLDERS_MAX}
     * @throws OrbitKvException {@link ErrorCode#BAD_ARGUMENT} where one is given twice, or there are too many
     */
    public DataFolders(List<? extends DataFolder> folders) {
        if (folders.isEmpty() || folders.size() > FOLDERS_MAX) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "a store has 1 to " + FOLDERS_MAX + " data folders, and " + folders.size() + " are given");
        }
        for (int i = 0; i < folders.size(); i++) {
            for (int j = 0; j < i; j++) {
                requireApart(folders.get(j).path(), folders.get(i).path());
            }
        }
        this.folders = List.copyOf(folders);
    }

    private static void requireApart(String first, String second) {
        if (first.equals(second)) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, "the data folder " + first + " is given twice; give each folder once");
        }
        if ((first + "/").startsWith(second + "/") || (second + "/").startsWith(first + "/")) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "of the data folders " + first + " and " + second
                            + " one lies in the other; give folders that lie beside each other");
        }
    }

    /** Takes folders together; see {@link #DataFolders(List)}. */
    public static DataFolders of(DataFolder... folders) {
        return new DataFolders(List.of(folders));
    }

    /** How many. */
    public int count() {
        return folders.size();
    }

    /** One of them, from 0. */
    public DataFolder get(int number) {
        return folders.get(number);
    }

    /** All of them, in order. */
    public List<DataFolder> list() {
        return folders;
    }

    /** The same folders in another order. */
    public DataFolders inOrder(int[] order) {
        List<DataFolder> ordered = new ArrayList<>();
        for (int number : order) {
            ordered.add(folders.get(number));
        }
        return new DataFolders(ordered);
    }

    /** Their paths, for messages. */
    public String path() {
        return folders.stream().map(DataFolder::path).collect(Collectors.joining(", "));
    }

    /**
     * Tells these folders from any others of this machine: 16 hex digits that stay the same over restarts, renames and other
     * orders, and change with the file system or a folder that takes another's place.
     */
    public String identity() {
        long sum = 0; // no matter in which order
        for (DataFolder folder : folders) {
            Stat stat = Stat.of(folder.path());
            sum += mixed(stat == null ? folder.path().hashCode() : mixed(stat.device()) + stat.inode());
        }
        return HexFormat.of().toHexDigits(sum);
    }

    /** The finalizer of MurmurHash3: close numbers end far apart. */
    private static long mixed(long value) {
        long mixed = (value ^ value >>> 33) * 0xff51afd7ed558ccdL;
        mixed = (mixed ^ mixed >>> 33) * 0xc4ceb9fe1a85ec53L;
        return mixed ^ mixed >>> 33;
    }

    /** Bytes that all of them together take on their drives. */
    public long allocatedBytes() {
        long bytes = 0;
        for (DataFolder folder : folders) {
            bytes += folder.allocatedBytes("");
        }
        return bytes;
    }

    /**
     * Makes a ring for the files of all folders; see {@link DataFolder#newRing(int)}.
     *
     * @param depth most transfers in flight
     * @return the ring
     */
    public IoRing newRing(int depth) {
        return folders.get(0).newRing(depth, folders.subList(1, folders.size()));
    }

    /** Closes all of them. Safe to call twice. */
    @Override
    public void close() {
        Resources all = new Resources();
        folders.forEach(all::keep);
        all.close();
    }
}
