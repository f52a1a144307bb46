package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.CatalogCopies;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.tiers.LogGeometry;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The data folders of a store as they are at a moment, read by tools and left alone.
 *
 * <p>Where nobody holds the folders they are locked, for as long as they stay open, and nothing changes meanwhile. Otherwise
 * they are read beside their owner: the catalog's pages are copied, checked and read again while a commit comes between, so
 * that what is shown is one state of the store, of the moment that the view names; the log behind it goes on.
 *
 * @param folders by number; as they were given where the catalogs could not be read
 * @param lost numbers of the folders that hold nothing
 * @param isUnused whether the store was never open, so that nothing is lost with a folder
 * @param lockPages by number; null where none counts
 * @param copies what each catalog says; null where one can't be read
 * @param catalog what the catalogs say together; null where one can't be read
 * @param absent segments without pages; empty without a catalog
 * @param plan what an opening would make of the catalogs, without another cap; null with the catalog
 * @param geometry the log's; null with the catalog
 * @param unreadable catalogs that can't be read, with the reasons
 * @param owner who holds the folders, for people; empty where they are locked now
 * @param atMillis when the catalogs were read, in milliseconds since 1970
 */
record StoreView(
        DataFolders folders,
        BitSet lost,
        boolean isUnused,
        List<LockPage> lockPages,
        CatalogCopies copies,
        CatalogContents catalog,
        BitSet absent,
        CapPlan plan,
        LogGeometry geometry,
        Map<DataFolder, OrbitKvException> unreadable,
        String owner,
        long atMillis) {
    /** An owner commits at most ten times a second, and a read takes less than the time between. */
    private static final int READS_MAX = 100;

    private static final long READ_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    /**
     * Looks at folders.
     *
     * @param given not locked yet, in any order; stay the caller's
     * @param options wait for the lock; the rest doesn't matter
     * @return what there is
     * @throws OrbitKvException {@link ErrorCode#FOLDER_UNUSABLE} where there is no store; {@link ErrorCode#OTHER_VERSION},
     *     {@link ErrorCode#OTHER_STORE}, {@link ErrorCode#OTHER_GEOMETRY}, {@link ErrorCode#FOLDER_SET} where the folders don't
     *     belong together
     */
    static StoreView of(DataFolders given, OpeningOptions options) {
        requireStore(given);
        String owner = lock(given, options);
        LockPage[] lockPages = new LockPage[given.count()];
        CatalogContents[] read = new CatalogContents[given.count()];
        Map<DataFolder, OrbitKvException> unreadable = new LinkedHashMap<>();
        for (int i = 0; i < read.length; i++) {
            DataFolder folder = given.get(i);
            lockPages[i] = folder.exists(FolderNames.LOCK) ? LockPage.read(folder) : null;
            if (read.length > 1 && FolderSet.holdsNothing(folder, lockPages[i])) {
                continue;
            }
            try {
                read[i] = readCatalog(folder, !owner.isEmpty());
            } catch (OrbitKvException e) {
                if (e.code() != ErrorCode.CATALOG) {
                    throw e;
                }
                unreadable.put(folder, e);
            }
        }
        long now = System.currentTimeMillis();
        if (!unreadable.isEmpty()) {
            return new StoreView(
                    given,
                    new BitSet(),
                    false,
                    listOf(lockPages),
                    null,
                    null,
                    new BitSet(),
                    null,
                    null,
                    unreadable,
                    owner,
                    now);
        }
        FolderSet set = FolderSet.arrange(given, lockPages, read, owner.isEmpty());
        if (set.isFresh()) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE,
                    "the store in " + given.path()
                            + " was not made to its end, and never used: the next opening makes it anew");
        }
        CapPlan plan = CapPlan.asItIs(set);
        return new StoreView(
                set.folders(),
                set.lost(),
                set.isUnused(),
                set.lockPages(),
                set.copies(),
                plan.contents(),
                plan.absent(),
                plan,
                Opening.geometry(plan.contents().identity()),
                unreadable,
                owner,
                now);
    }

    private static void requireStore(DataFolders given) {
        if (given.list().stream()
                .allMatch(folder -> !folder.exists(FolderNames.CATALOG) && !folder.exists(LogGeometry.FOLDER))) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE, "there is no store in " + given.path() + "; name another folder");
        }
    }

    private static String lock(DataFolders given, OpeningOptions options) {
        String owner = "";
        for (DataFolder folder : given.list()) {
            try {
                folder.lock(FolderNames.LOCK, options.lockWaitNanos());
            } catch (OrbitKvException e) {
                if (e.code() != ErrorCode.FOLDER_IN_USE) {
                    throw e;
                }
                owner = e.getMessage();
            }
        }
        return owner;
    }

    private static CatalogContents readCatalog(DataFolder folder, boolean beside) {
        for (int i = 1; ; i++) {
            try {
                return Catalog.read(FolderNames.catalogPath(folder));
            } catch (OrbitKvException e) {
                // Where nobody writes, another read finds the same.
                if (e.code() != ErrorCode.CATALOG || !beside || i == READS_MAX) {
                    throw e;
                }
                LockSupport.parkNanos(READ_AGAIN_NANOS);
            }
        }
    }

    private static List<LockPage> listOf(LockPage[] pages) {
        List<LockPage> list = new ArrayList<>();
        for (LockPage page : pages) {
            list.add(page);
        }
        return list;
    }

    /**
     * This view, if its catalogs could be read.
     *
     * @throws OrbitKvException {@link ErrorCode#CATALOG}
     */
    StoreView requireCatalog() {
        for (OrbitKvException reason : unreadable.values()) {
            throw reason;
        }
        return this;
    }

    /** Whether another process has the folders, and may write to them. */
    boolean isInUse() {
        return !owner.isEmpty();
    }

    /**
     * Refuses folders that another process holds.
     *
     * @param what what can't be done then, for people
     */
    void requireLocked(String what) {
        if (isInUse()) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_IN_USE,
                    what + " writes to the folders, so nobody else may have them: " + owner + ". Nothing was changed");
        }
    }

    /** Whether the machine has been up since the store was open last, as far as lock pages tell. */
    boolean isOfThisBoot() {
        for (int number = 0; number < folders.count(); number++) {
            LockPage page = lockPages.get(number);
            if (!lost.get(number)
                    && (page == null || !page.isOfBoot(folders.get(number).bootId()))) {
                return false;
            }
        }
        return true;
    }

    /** Segments that lie in folders that are there, and have pages. */
    int[] segmentsPresent() {
        return FolderSet.segmentsPresent(geometry, lost, absent);
    }

    /** The file of a segment. */
    String file(int segment) {
        return shown(folders.get(geometry.folderOfSegment(segment)), LogGeometry.fileName(geometry.file(segment)));
    }

    /** A file's name in its folder; where there are several folders, with the folder. */
    String shown(DataFolder folder, String name) {
        return folders.count() == 1 ? name : folder.path() + "/" + name;
    }
}
