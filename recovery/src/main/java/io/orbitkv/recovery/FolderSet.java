package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.CatalogCopies;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.CatalogIdentity;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.tiers.LogGeometry;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The data folders of one store, put in the order of their numbers, and what stands in each. A folder that holds nothing may
 * stand for any number that no other has: its blocks are lost, or the store is yet to be made.
 *
 * @param folders by number
 * @param lockPages by number; null where none counts
 * @param copies what the catalogs hold; null where no folder holds anything
 * @param lost numbers of the folders that hold nothing while others hold the store
 */
record FolderSet(DataFolders folders, List<LockPage> lockPages, CatalogCopies copies, BitSet lost) {
    /**
     * Looks at folders and changes nothing.
     *
     * @param given in any order
     * @throws OrbitKvException {@link ErrorCode#CATALOG}, {@link ErrorCode#OTHER_VERSION}, {@link ErrorCode#OTHER_STORE},
     *     {@link ErrorCode#OTHER_GEOMETRY} for a wrong number of folders, {@link ErrorCode#FOLDER_SET}
     */
    static FolderSet look(DataFolders given) {
        int count = given.count();
        LockPage[] lockPages = new LockPage[count];
        CatalogContents[] read = new CatalogContents[count];
        for (int i = 0; i < count; i++) {
            DataFolder folder = given.get(i);
            lockPages[i] = LockPage.read(folder);
            read[i] = holdsNothing(folder, lockPages[i]) ? null : Catalog.read(FolderNames.catalogPath(folder));
        }
        return arrange(given, lockPages, read, true);
    }

    /**
     * Puts folders in order by what was read of them.
     *
     * @param given in any order
     * @param lockPages theirs
     * @param read theirs; null for a folder that holds nothing
     * @param quiet whether nobody commits meanwhile, so that all must be of the same commit, or one of them one behind
     * @return the folders in order
     */
    static FolderSet arrange(DataFolders given, LockPage[] lockPages, CatalogContents[] read, boolean quiet) {
        int count = given.count();
        requireOneStore(given, read);
        int[] order = order(given, read);
        List<CatalogContents> byNumber = new ArrayList<>();
        List<LockPage> pagesByNumber = new ArrayList<>();
        BitSet lost = new BitSet();
        for (int number = 0; number < count; number++) {
            byNumber.add(read[order[number]]);
            pagesByNumber.add(lockPages[order[number]]);
            lost.set(number, read[order[number]] == null);
        }
        DataFolders folders = given.inOrder(order);
        if (lost.cardinality() == count) {
            return new FolderSet(folders, pagesByNumber, null, new BitSet());
        }
        CatalogCopies copies = new CatalogCopies(byNumber);
        if (quiet) {
            requireInStep(folders, copies);
        }
        return new FolderSet(folders, pagesByNumber, copies, lost);
    }

    /** Whether there is nothing of a store, or one that was never used since it was not made to its end. */
    static boolean holdsNothing(DataFolder folder, LockPage lockPage) {
        return isEmpty(folder) || Creation.isUnfinished(folder, lockPage);
    }

    /** Whether there is nothing of a store: no catalog, and no segment file. */
    static boolean isEmpty(DataFolder folder) {
        return !Catalog.exists(FolderNames.catalogPath(folder))
                && folder.list(LogGeometry.FOLDER).stream().allMatch(name -> LogGeometry.fileNumber(name) < 0)
                && !Snapshot.existsIn(folder);
    }

    private static void requireOneStore(DataFolders given, CatalogContents[] read) {
        int first = -1;
        for (int i = 0; i < read.length; i++) {
            if (read[i] == null) {
                continue;
            }
            CatalogIdentity mine = read[i].identity();
            if (first < 0) {
                first = i;
            } else if (!mine.storeId().equals(read[first].identity().storeId())) {
                throw new OrbitKvException(
                        ErrorCode.OTHER_STORE,
                        "the data folder " + given.get(i).path() + " is of store " + mine.storeId() + ", and "
                                + given.get(first).path() + " is of store "
                                + read[first].identity().storeId()
                                + "; give the folders of one store. Nothing was changed");
            }
            if (mine.folders() != read.length) {
                throw otherCount(given.get(i), mine.folders(), read.length);
            }
        }
    }

    private static OrbitKvException otherCount(DataFolder folder, int made, int given) {
        return new OrbitKvException(
                ErrorCode.OTHER_GEOMETRY,
                "the store in " + folder.path() + " was made with " + made + " data folder" + (made == 1 ? "" : "s")
                        + ", and " + given + (given == 1 ? " is" : " are") + " given; give all of them and no other"
                        + (given < made ? ", an empty one in place of one that is lost" : "")
                        + ", or start a new store in empty folders. Nothing was changed");
    }

    /** Which of the given folders has which number; those that hold nothing take the numbers that are left. */
    private static int[] order(DataFolders given, CatalogContents[] read) {
        int[] order = new int[read.length];
        Arrays.fill(order, -1);
        for (int i = 0; i < read.length; i++) {
            if (read[i] != null) {
                int number = read[i].identity().folder();
                if (order[number] >= 0) {
                    throw new OrbitKvException(
                            ErrorCode.FOLDER_SET,
                            "the data folders " + given.get(order[number]).path() + " and "
                                    + given.get(i).path() + " are both folder " + number
                                    + " of their store, so one is a copy; give each folder of the store once. Nothing was"
                                    + " changed");
                }
                order[number] = i;
            }
        }
        int next = 0;
        for (int i = 0; i < read.length; i++) {
            if (read[i] == null) {
                while (order[next] >= 0) {
                    next++;
                }
                order[next] = i;
            }
        }
        return order;
    }

    /** A folder that was away while the store ran would bring back what was cleared meanwhile. */
    private static void requireInStep(DataFolders folders, CatalogCopies copies) {
        long commits = copies.together().transaction();
        for (int number = 0; number < folders.count(); number++) {
            if (!copies.isInStep(number)) {
                throw new OrbitKvException(
                        ErrorCode.FOLDER_SET,
                        "the data folder " + folders.get(number).path() + " (number " + number
                                + ") was not there when the"
                                + " store ran last: it is of commit "
                                + copies.of(number).counter(CatalogCounter.COMMITS) + ", and the store is at " + commits
                                + "; empty it, so that it is made anew without its blocks, or put the newest state of every"
                                + " folder back. Nothing was changed");
            }
        }
    }

    /** Says in the lock pages who holds the folders; epochs and boot ids stay until the opening is done. */
    void announce(long pid, byte[] storeId) {
        for (int number = 0; number < folders.count(); number++) {
            LockPage before = lockPages.get(number);
            long epoch = before == null ? 0 : before.epoch();
            String boot = before == null ? "" : before.bootId();
            if (lost.get(number)) {
                epoch = 0;
                boot = folders.get(number).bootId(); // whatever it will hold was not written in an earlier one
            }
            new LockPage(pid, epoch, boot, storeId).write(folders.get(number));
        }
    }

    /** Whether the machine has been up since the store was open last; not where a lock page can't tell. */
    boolean isOfThisBoot(Notes notes) {
        for (int number = 0; number < folders.count(); number++) {
            LockPage page = lockPages.get(number);
            if (lost.get(number)) {
                continue;
            }
            if (page == null) {
                notes.add("the lock page is damaged: the last end is taken for a power loss");
                return false;
            }
            if (!page.isOfBoot(folders.get(number).bootId())) {
                return false;
            }
        }
        return true;
    }

    /** Segments that lie in folders that are there; those of a lost one are free, absent ones nothing. */
    static int[] segmentsPresent(LogGeometry geometry, BitSet lost, BitSet absent) {
        return IntStream.range(0, geometry.segments())
                .filter(segment -> !lost.get(geometry.folderOfSegment(segment)) && !absent.get(segment))
                .toArray();
    }

    /** Whether there is no store yet. */
    boolean isFresh() {
        return copies == null;
    }

    /**
     * Whether the store was never open: a death came while its folders were made. Then nothing is lost with a folder that was
     * not made to its end.
     */
    boolean isUnused() {
        return copies != null && copies.together().counter(CatalogCounter.EPOCH) == 0;
    }

    /** The paths of the catalogs, by number. */
    List<String> catalogPaths() {
        return folders.list().stream().map(FolderNames::catalogPath).toList();
    }

    /** The paths of the folders whose blocks are lost. */
    List<String> lostPaths() {
        return isUnused()
                ? List.of()
                : lost.stream().mapToObj(number -> folders.get(number).path()).toList();
    }
}
