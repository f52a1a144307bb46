package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.CatalogIdentity;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFiles;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.tiers.LogGeometry;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.BitSet;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Makes a store in empty folders, or a folder of a store anew that has lost it. A file INCOMPLETE stands in a folder until
 * all is durable; a folder in which it stands was never used, and is made anew.
 */
final class Creation {
    private final DataFolders folders;
    private final OpeningOptions options;
    private final WindowProbe probe;

    Creation(DataFolders folders, OpeningOptions options, WindowProbe probe) {
        this.folders = folders;
        this.options = options;
        this.probe = probe;
    }

    /** Whether an earlier creation did not come to its end. */
    static boolean isUnfinished(DataFolder folder, LockPage lockPage) {
        // The first opening that got further than this left an epoch in lock page and catalog: then the file means
        // nothing, whoever put it there.
        if (!folder.exists(FolderNames.INCOMPLETE) || (lockPage != null && lockPage.epoch() != 0)) {
            return false;
        }
        try {
            CatalogContents contents = Catalog.read(FolderNames.catalogPath(folder));
            return contents.counter(CatalogCounter.EPOCH) == 0;
        } catch (OrbitKvException e) {
            return true; // missing, or half made
        }
    }

    /** Refuses a cap that is too small, or too large for a file system. */
    void requireRoom() {
        Budget budget = budget();
        for (DataFolder folder : folders.list()) {
            requireSpace(folder, budget);
        }
    }

    private Budget budget() {
        if (options.capBytes() <= 0) {
            throw new OrbitKvException(
                    ErrorCode.CAP_TOO_SMALL, "there is no store in " + folders.path() + " yet: give a cap to make one");
        }
        return Budget.of(options.capBytes(), options.segmentBytes(), options.segmentsMin(), folders.count());
    }

    /** Makes everything and answers the open catalog. The folders are locked, and hold nothing but our own. */
    Catalog create(long nowMillis) {
        Budget budget = budget();
        ByteBuffer id = ByteBuffer.wrap(newStoreId());
        LogGeometry geometry = new LogGeometry(budget.segmentBytes(), budget.segments(), id.array(), folders.count());
        for (int number = 0; number < folders.count(); number++) {
            makeFiles(number, geometry, budget, new BitSet());
        }
        CatalogIdentity identity = new CatalogIdentity(
                folders.count() == 1 ? Catalog.FORMAT_VERSION : Catalog.FORMAT_VERSION_FOLDERS,
                id.getLong(0),
                id.getLong(Long.BYTES),
                budget.segmentBytes(),
                budget.segments(),
                budget.capBytes(),
                nowMillis,
                folders.count(),
                0);
        Catalog catalog =
                Catalog.create(FolderNames.catalogPath(folders.get(0)), identity, budget.catalogBytes(), probe);
        boolean good = false;
        try {
            for (int number = 1; number < folders.count(); number++) {
                catalog.add(number, FolderNames.catalogPath(folders.get(number)), budget.catalogBytes());
            }
            folders.list().forEach(Creation::end);
            good = true;
            return catalog;
        } finally {
            if (!good) {
                catalog.close();
            }
        }
    }

    /** Refuses to make a lost folder anew where its file system has no room for it. */
    void requireRoomFor(int number, CatalogContents contents) {
        requireSpace(folders.get(number), budgetOf(contents));
    }

    /** Refuses a larger cap where a file system has no room for it. */
    void requireRoomToGrow(CapPlan plan) {
        CatalogIdentity identity = plan.contents().identity();
        Budget budget = budgetOf(plan.contents());
        long wanted = (long) Math.min(budget.segments(), identity.segments()) / identity.folders();
        for (int number = 0; number < folders.count(); number++) {
            int folder = number;
            long absent = plan.absent().stream()
                    .filter(segment -> segment % identity.folders() == folder)
                    .count();
            long present = identity.segments() / identity.folders() - absent;
            long needed = (wanted - present) * identity.segmentBytes();
            long free = folders.get(number).freeBytes();
            if (needed > free) {
                throw new OrbitKvException(
                        ErrorCode.NO_SPACE,
                        "a cap of " + identity.capBytes() + " bytes takes " + needed + " bytes more in "
                                + folders.get(number).path() + ", and its file system has " + free
                                + " left; free them or give a smaller cap");
            }
        }
    }

    /**
     * Makes a folder anew that the store has lost: its segments are free, all else is as in the other folders. Places of a
     * larger cap come later: the catalog has to hear of them before files get them.
     */
    void remake(int number, CapPlan plan, LogGeometry asItIs, Catalog catalog) {
        Budget budget = budgetOf(plan.contents());
        makeFiles(number, asItIs, budget, plan.absent());
        catalog.add(number, FolderNames.catalogPath(folders.get(number)), budget.catalogBytes());
        end(folders.get(number));
    }

    private static Budget budgetOf(CatalogContents contents) {
        return Budget.fitting(contents.identity().capBytes(), contents.identity(), contents.mapBytes());
    }

    private void makeFiles(int number, LogGeometry geometry, Budget budget, BitSet absent) {
        DataFolder folder = folders.get(number);
        removeLeftovers(folder);
        requireSpace(folder, budget);
        if (!folder.exists(FolderNames.INCOMPLETE)) {
            folder.create(FolderNames.INCOMPLETE, MemoryRegion.PAGE_BYTES).close();
        }
        folder.makeFolder(FolderNames.CATALOG);
        folder.makeFolder(FolderNames.SNAPSHOT);
        folder.makeFolder(LogGeometry.FOLDER);
        folder.syncFolder("");
        for (int file = number; file < geometry.files(); file += geometry.folders()) {
            CapPlan.makeFile(folder, geometry, file, absent);
            options.progress().onProgress("allocating segment files", file + 1L, geometry.files());
        }
        folder.syncFolder(LogGeometry.FOLDER);
    }

    private static void end(DataFolder folder) {
        folder.unlink(FolderNames.INCOMPLETE);
        folder.syncFolder("");
    }

    /** INCOMPLETE itself stays: a power loss may bring back what is removed here, and then it must stand there too. */
    private void removeLeftovers(DataFolder folder) {
        if (!folder.exists(FolderNames.INCOMPLETE)) {
            return;
        }
        for (String name : folder.list(LogGeometry.FOLDER)) {
            if (LogGeometry.fileNumber(name) >= 0) {
                folder.unlink(LogGeometry.FOLDER + "/" + name);
            }
        }
        Snapshot.unlink(folder);
        for (String name : List.of("data.mdb", "lock.mdb", "SPARE", "SPARE.new")) {
            StorageFiles.unlink(FolderNames.catalogPath(folder) + "/" + name);
        }
    }

    private static void requireSpace(DataFolder folder, Budget budget) {
        long needed = budget.creationBytes();
        long free = folder.freeBytes();
        if (free < needed) {
            throw new OrbitKvException(
                    ErrorCode.NO_SPACE,
                    "a store with a cap of " + budget.capBytes() + " bytes takes " + needed + " bytes in "
                            + folder.path() + ", and its file system has " + free + " left: " + (needed - free)
                            + " are missing; free them or give a smaller cap");
        }
    }

    private byte[] newStoreId() {
        byte[] id = new byte[LogGeometry.STORE_ID_BYTES];
        if (options.storeIdSeed() == 0) {
            new SecureRandom().nextBytes(id);
        } else {
            SplittableRandom random = new SplittableRandom(options.storeIdSeed());
            ByteBuffer.wrap(id).putLong(random.nextLong()).putLong(random.nextLong());
        }
        return id;
    }
}
