package io.orbitkv.recovery;

import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.Resources;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.tiers.LogGeometry;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The index as a clean stop leaves it on the drive, and the marker that says that it counts.
 *
 * <pre>
 * INDEX, pages of 4096 bytes: one header, then pages of namespaces, then pages of rows; n folders hold an nth each, in order
 * header:      0 magic "OKVSNAP1" | 8 version u32 | 12 namespaces u32 | 16 rows u64 | 24 epoch u64 | 32 store id 16 | zero
 * namespaces:  255 of 16 bytes:  id64 u64 | epoch u32 | zero u32
 * rows:        102 of 40 bytes:  key0 u64 | tag u64 | segment u32 | first page u16 | flags u16 (bit 0: continues a run)
 *                                | stored bytes u32 | checksum u32 | depth u32 | namespace u32 (its place in the list before)
 * each page:   4080 page number u32 | 4084 count in this page u32 | 4088 zero u32 | 4092 CRC32C of bytes 0 to 4091
 *
 * MARKER, one page: 0 magic "OKVMARK1" | 8 version u32 | 12 zero u32 | 16 epoch u64 | 24 next position u64
 *                   | 32 next use-sequence u64 | 40 transaction of the catalog u64 | 48 bytes of INDEX u64
 *                   | 56 CRC32C of all of INDEX u32 | 60 zero u32 | 64 store id 16 | zero | 4092 CRC32C of bytes 0 to 4091
 * </pre>
 */
final class Snapshot {
    static final int PAGE_BYTES = MemoryRegion.PAGE_BYTES;
    static final int VERSION = 1;
    static final long INDEX_MAGIC = magic("OKVSNAP1");
    private static final long MARKER_MAGIC = magic("OKVMARK1");
    static final int NAMESPACE_BYTES = 16;
    static final int ROW_BYTES = 40;
    private static final int TABLE_BYTES = 4080;
    static final int NAMESPACES_A_PAGE = TABLE_BYTES / NAMESPACE_BYTES;
    static final int ROWS_A_PAGE = TABLE_BYTES / ROW_BYTES;
    static final int PAGE_NUMBER = TABLE_BYTES;
    static final int PAGE_COUNT = TABLE_BYTES + 4;
    static final int PAGE_CRC = PAGE_BYTES - Integer.BYTES;
    static final int PIECE_PAGES = 256;
    static final int CONTINUES_RUN = 1;

    private Snapshot() {}

    private static long magic(String text) {
        return java.nio.ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII))
                .order(java.nio.ByteOrder.LITTLE_ENDIAN)
                .getLong();
    }

    /** What a marker says. */
    record Marker(
            long epoch,
            long nextPosition,
            long nextUseSequence,
            long transaction,
            long indexBytes,
            int indexChecksum,
            byte[] storeId) {
        boolean isSame(Marker other) {
            return epoch == other.epoch
                    && nextPosition == other.nextPosition
                    && nextUseSequence == other.nextUseSequence
                    && transaction == other.transaction
                    && indexBytes == other.indexBytes
                    && indexChecksum == other.indexChecksum
                    && Arrays.equals(storeId, other.storeId);
        }
    }

    /** Pages that an INDEX takes. */
    static long pages(int namespaces, long rows) {
        return 1 + pagesFor(namespaces, NAMESPACES_A_PAGE) + pagesFor(rows, ROWS_A_PAGE);
    }

    private static long pagesFor(long count, int aPage) {
        return (count + aPage - 1) / aPage;
    }

    // ---- writing ----

    /** Writes INDEX, durably; answers what the marker has to say of it. */
    static int writeIndex(
            DataFolders folders,
            LogGeometry geometry,
            PrefixIndex index,
            List<OpenedNamespace> namespaces,
            long epoch,
            long rows) {
        Map<Integer, Integer> places = new HashMap<>();
        for (OpenedNamespace namespace : namespaces) {
            places.put(namespace.number(), places.size());
        }
        try (PageWriter writer = new PageWriter(folders, pages(namespaces.size(), rows))) {
            writeHeader(writer, geometry, namespaces.size(), rows, epoch);
            for (OpenedNamespace namespace : namespaces) {
                long at = writer.place(NAMESPACE_BYTES);
                writer.piece.putLong(at, namespace.row().id64());
                writer.piece.putInt(at + 8, namespace.row().epoch());
                writer.piece.putInt(at + 12, 0);
            }
            writer.endPage();
            index.visit((number, continuesRun, key0, tag, extent, stored, checksum, depth) -> {
                Integer place = places.get(number);
                if (place != null) {
                    writeRow(writer, place, continuesRun, key0, tag, extent, stored, checksum, depth);
                }
            });
            writer.endPage();
            writer.writePiece();
            writer.flush();
            return writer.checksum.value();
        }
    }

    private static void writeHeader(PageWriter writer, LogGeometry geometry, int namespaces, long rows, long epoch) {
        long at = writer.place(TABLE_BYTES);
        writer.piece.putLong(at, INDEX_MAGIC);
        writer.piece.putInt(at + 8, VERSION);
        writer.piece.putInt(at + 12, namespaces);
        writer.piece.putLong(at + 16, rows);
        writer.piece.putLong(at + 24, epoch);
        writer.piece.copyFrom(at + 32, geometry.storeId(), 0, LogGeometry.STORE_ID_BYTES);
        writer.endPage();
    }

    private static void writeRow(
            PageWriter writer,
            int namespace,
            boolean continuesRun,
            long key0,
            long tag,
            long extent,
            int stored,
            int checksum,
            int depth) {
        long at = writer.place(ROW_BYTES);
        writer.piece.putLong(at, key0);
        writer.piece.putLong(at + 8, tag);
        writer.piece.putInt(at + 16, Extent.segment(extent));
        writer.piece.putShort(at + 20, (short) Extent.page(extent));
        writer.piece.putShort(at + 22, (short) (continuesRun ? CONTINUES_RUN : 0));
        writer.piece.putInt(at + 24, stored);
        writer.piece.putInt(at + 28, checksum);
        writer.piece.putInt(at + 32, depth);
        writer.piece.putInt(at + 36, namespace);
    }

    /** Rows that an INDEX of now would have. */
    static long rows(PrefixIndex index, List<OpenedNamespace> namespaces) {
        Map<Integer, Integer> known = new HashMap<>();
        for (OpenedNamespace namespace : namespaces) {
            known.put(namespace.number(), 0);
        }
        long[] rows = new long[1];
        index.visit((number, continuesRun, key0, tag, extent, stored, checksum, depth) ->
                rows[0] += known.containsKey(number) ? 1 : 0);
        return rows[0];
    }

    /** Writes MARKER in each folder, durably: from here on the snapshot counts. */
    static void writeMarker(DataFolders folders, Marker marker) {
        folders.list().forEach(folder -> writeMarker(folder, marker));
    }

    private static void writeMarker(DataFolder folder, Marker marker) {
        try (StorageFile file = folder.create(FolderNames.MARKER_NEW, PAGE_BYTES);
                MemoryRegion page = MemoryRegion.anonymous(PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING)) {
            page.putLong(0, MARKER_MAGIC);
            page.putInt(8, VERSION);
            page.putLong(16, marker.epoch());
            page.putLong(24, marker.nextPosition());
            page.putLong(32, marker.nextUseSequence());
            page.putLong(40, marker.transaction());
            page.putLong(48, marker.indexBytes());
            page.putInt(56, marker.indexChecksum());
            page.copyFrom(64, marker.storeId(), 0, LogGeometry.STORE_ID_BYTES);
            page.putInt(PAGE_CRC, new BlockChecksum().update(page, 0, PAGE_CRC).value());
            file.write(0, page, 0, PAGE_BYTES);
            file.flush();
        }
        folder.rename(FolderNames.MARKER_NEW, FolderNames.MARKER);
        folder.syncFolder(FolderNames.SNAPSHOT);
    }

    /** Fills pages one after the other and writes them in large pieces. */
    private static final class PageWriter implements AutoCloseable {
        private final Resources files = new Resources();
        private final List<StorageFile> parts = new ArrayList<>();
        private final long pagesAPart;
        private final MemoryRegion piece =
                MemoryRegion.anonymous((long) PIECE_PAGES * PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING);
        private final BlockChecksum pageChecksum = new BlockChecksum();
        private final BlockChecksum checksum = new BlockChecksum();
        private long written;
        private int page;
        private int used;
        private int count;

        PageWriter(DataFolders folders, long pages) {
            files.keep(piece);
            pagesAPart = pagesAPart(pages, folders.count());
            boolean good = false;
            try {
                for (int part = 0; part < folders.count(); part++) {
                    long mine = pagesOfPart(pages, folders.count(), part);
                    if (mine > 0) {
                        parts.add(files.keep(folders.get(part).create(FolderNames.INDEX, mine * PAGE_BYTES)));
                    }
                }
                good = true;
            } finally {
                if (!good) {
                    files.close();
                }
            }
        }

        long place(int bytes) {
            if (used + bytes > TABLE_BYTES) {
                endPage();
            }
            long at = (long) page * PAGE_BYTES + used;
            used += bytes;
            count++;
            return at;
        }

        void endPage() {
            if (count == 0) {
                return;
            }
            long at = (long) page * PAGE_BYTES;
            piece.putInt(at + PAGE_NUMBER, (int) (written / PAGE_BYTES) + page);
            piece.putInt(at + PAGE_COUNT, count);
            piece.putInt(
                    at + PAGE_CRC,
                    pageChecksum.reset().update(piece, at, PAGE_CRC).value());
            page++;
            used = 0;
            count = 0;
            if (page == PIECE_PAGES) {
                writePiece();
            }
        }

        void writePiece() {
            if (page > 0) {
                int bytes = page * PAGE_BYTES;
                checksum.update(piece, 0, bytes);
                for (int done = 0; done < bytes; ) {
                    long at = written / PAGE_BYTES;
                    int part = (int) (at / pagesAPart);
                    long inPart = at - part * pagesAPart;
                    int length = (int) Math.min(bytes - done, (pagesAPart - inPart) * PAGE_BYTES);
                    parts.get(part).write(inPart * PAGE_BYTES, piece, done, length);
                    written += length;
                    done += length;
                }
                page = 0;
                piece.fill(0, piece.bytes(), (byte) 0);
            }
        }

        void flush() {
            parts.forEach(StorageFile::flush);
        }

        @Override
        public void close() {
            files.close();
        }
    }

    // ---- parts: each folder holds as many pages of INDEX as every other, the last ones fewer ----

    private static long pagesAPart(long pages, int folders) {
        return (pages + folders - 1) / folders;
    }

    static long pagesOfPart(long pages, int folders, int part) {
        long each = pagesAPart(pages, folders);
        return Math.max(0, Math.min(each, pages - part * each));
    }

    // ---- reading ----

    /** Whether there is anything of a snapshot in any folder. */
    static boolean exists(DataFolders folders) {
        return folders.list().stream().anyMatch(Snapshot::existsIn);
    }

    /** Whether there is anything of a snapshot. */
    static boolean existsIn(DataFolder folder) {
        return folder.exists(FolderNames.MARKER)
                || folder.exists(FolderNames.MARKER_NEW)
                || folder.exists(FolderNames.INDEX);
    }

    /** Removes what there is, of a folder that was never used. */
    static void unlink(DataFolder folder) {
        folder.unlink(FolderNames.MARKER);
        folder.unlink(FolderNames.MARKER_NEW);
        folder.unlink(FolderNames.INDEX);
        folder.unlink(FolderNames.LAST_USED);
    }

    /** Removes the markers, durably: from here on the snapshot counts for nothing. */
    static void removeMarkers(DataFolders folders) {
        for (DataFolder folder : folders.list()) {
            folder.unlink(FolderNames.MARKER);
            folder.syncFolder(FolderNames.SNAPSHOT);
        }
    }

    /** Removes what is left of a snapshot without a marker, durably. */
    static void removeRest(DataFolders folders) {
        for (DataFolder folder : folders.list()) {
            folder.unlink(FolderNames.MARKER_NEW);
            folder.unlink(FolderNames.INDEX);
            folder.syncFolder(FolderNames.SNAPSHOT);
        }
    }

    /** The marker, or null where none counts for this state of the catalog; why not goes to the notes. */
    static Marker readMarker(DataFolders folders, LogGeometry geometry, CatalogContents catalog, Notes notes) {
        Marker marker = null;
        for (int i = 0; i < folders.count(); i++) {
            if (!folders.get(i).exists(FolderNames.MARKER)) {
                if (marker != null) {
                    notes.add("the snapshot is not in all folders: the log is scanned");
                }
                return null;
            }
            Marker mine = readMarkerPage(folders.get(i));
            if (mine == null) {
                notes.add("the marker of the snapshot is damaged: the log is scanned");
                return null;
            }
            if (marker != null && !mine.isSame(marker)) {
                notes.add("the folders have markers of different snapshots: the log is scanned");
                return null;
            }
            marker = mine;
        }
        boolean good = Arrays.equals(marker.storeId(), geometry.storeId())
                && marker.epoch() == catalog.counter(CatalogCounter.EPOCH)
                && marker.transaction() == catalog.transaction();
        if (!good) {
            notes.add("the snapshot is of another time (epoch " + marker.epoch() + ", transaction "
                    + marker.transaction() + ") than the catalog (" + catalog.counter(CatalogCounter.EPOCH) + ", "
                    + catalog.transaction() + "): the log is scanned");
            return null;
        }
        return marker;
    }

    /** The marker's page, or null where it does not check out. */
    static Marker readMarkerPage(DataFolder folder) {
        try (StorageFile file = folder.open(FolderNames.MARKER, false);
                MemoryRegion page = MemoryRegion.anonymous(PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING)) {
            if (file.bytes() != PAGE_BYTES) {
                return null;
            }
            file.read(0, page, 0, PAGE_BYTES);
            boolean good = page.getLong(0) == MARKER_MAGIC
                    && page.getInt(PAGE_CRC)
                            == new BlockChecksum().update(page, 0, PAGE_CRC).value()
                    && page.getInt(8) == VERSION;
            byte[] id = new byte[LogGeometry.STORE_ID_BYTES];
            page.copyTo(64, id, 0, id.length);
            return good
                    ? new Marker(
                            page.getLong(16),
                            page.getLong(24),
                            page.getLong(32),
                            page.getLong(40),
                            page.getLong(48),
                            page.getInt(56),
                            id)
                    : null;
        }
    }

    /** Takes the rows of an INDEX that is read. */
    @FunctionalInterface
    interface RowTaker {
        /**
         * Takes one row.
         *
         * @param namespace the place of its namespace in the list before
         * @return false when it can't be: reading ends
         */
        boolean take(
                int namespace,
                boolean continuesRun,
                long key0,
                long tag,
                int segment,
                int page,
                int stored,
                int checksum,
                int depth);
    }

    /** Namespaces of an INDEX: short ids and epochs, in their order. */
    record NamespaceList(List<Long> id64s, List<Integer> epochs) {}

    /** Is given the list before the first row, and answers who takes the rows. */
    @FunctionalInterface
    interface RowTakers {
        RowTaker after(NamespaceList namespaces);
    }

    /**
     * Reads INDEX.
     *
     * @return null when all of it was good and taken; otherwise what was not
     */
    static String readIndex(DataFolders folders, LogGeometry geometry, Marker marker, RowTakers takers) {
        try (SnapshotReader reader = new SnapshotReader(folders, geometry, marker, takers, new Object())) {
            while (reader.step()) {
                // a page a step
            }
            return reader.odd();
        }
    }
}
