package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.CatalogIdentity;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFiles;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.tiers.LogGeometry;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Makes a store in an empty folder. A file INCOMPLETE stands there until all is durable; a folder in which it stands
 * was never used, and is made anew.
 */
final class Creation {
    private final DataFolder folder;
    private final OpeningOptions options;
    private final WindowProbe probe;

    Creation(DataFolder folder, OpeningOptions options, WindowProbe probe) {
        this.folder = folder;
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

    /** Refuses a cap that is too small, or too large for the file system. */
    void requireRoom() {
        requireSpace(budget());
    }

    private Budget budget() {
        if (options.capBytes() <= 0) {
            throw new OrbitKvException(
                    ErrorCode.CAP_TOO_SMALL, "there is no store in " + folder.path() + " yet: give a cap to make one");
        }
        return Budget.of(options.capBytes(), options.segmentBytes(), options.segmentsMin());
    }

    /** Makes everything and answers the open catalog. The folder is locked, and holds nothing but our own. */
    Catalog create(long nowMillis) {
        Budget budget = budget();
        removeLeftovers();
        requireSpace(budget);
        ByteBuffer id = ByteBuffer.wrap(newStoreId());
        LogGeometry geometry = new LogGeometry(budget.segmentBytes(), budget.segments(), id.array());
        folder.create(FolderNames.INCOMPLETE, MemoryRegion.PAGE_BYTES).close();
        folder.makeFolder(FolderNames.CATALOG);
        folder.makeFolder(FolderNames.SNAPSHOT);
        folder.makeFolder(LogGeometry.FOLDER);
        folder.syncFolder("");
        for (int file = 0; file < geometry.files(); file++) {
            folder.create(LogGeometry.fileName(file), geometry.fileBytes(file)).close();
            options.progress().onProgress("allocating segment files", file + 1L, geometry.files());
        }
        folder.syncFolder(LogGeometry.FOLDER);
        CatalogIdentity identity = new CatalogIdentity(
                Catalog.FORMAT_VERSION,
                id.getLong(0),
                id.getLong(Long.BYTES),
                budget.segmentBytes(),
                budget.segments(),
                budget.capBytes(),
                nowMillis);
        Catalog catalog = Catalog.create(FolderNames.catalogPath(folder), identity, budget.catalogBytes(), probe);
        try {
            folder.unlink(FolderNames.INCOMPLETE);
            folder.syncFolder("");
            return catalog;
        } catch (RuntimeException | Error e) {
            catalog.close();
            throw e;
        }
    }

    private void removeLeftovers() {
        if (!folder.exists(FolderNames.INCOMPLETE)) {
            return;
        }
        for (String name : folder.list(LogGeometry.FOLDER)) {
            if (LogGeometry.fileNumber(name) >= 0) {
                folder.unlink(LogGeometry.FOLDER + "/" + name);
            }
        }
        Snapshot.unlink(folder);
        for (String name : List.of("data.mdb", "lock.mdb")) {
            StorageFiles.unlink(FolderNames.catalogPath(folder) + "/" + name);
        }
        folder.unlink(FolderNames.INCOMPLETE);
        folder.syncFolder("");
    }

    private void requireSpace(Budget budget) {
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
