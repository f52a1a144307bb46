package io.orbitkv.recovery;

import static io.orbitkv.recovery.Snapshot.CONTINUES_RUN;
import static io.orbitkv.recovery.Snapshot.INDEX_MAGIC;
import static io.orbitkv.recovery.Snapshot.NAMESPACES_A_PAGE;
import static io.orbitkv.recovery.Snapshot.NAMESPACE_BYTES;
import static io.orbitkv.recovery.Snapshot.PAGE_BYTES;
import static io.orbitkv.recovery.Snapshot.PAGE_COUNT;
import static io.orbitkv.recovery.Snapshot.PAGE_CRC;
import static io.orbitkv.recovery.Snapshot.PAGE_NUMBER;
import static io.orbitkv.recovery.Snapshot.PIECE_PAGES;
import static io.orbitkv.recovery.Snapshot.ROWS_A_PAGE;
import static io.orbitkv.recovery.Snapshot.ROW_BYTES;
import static io.orbitkv.recovery.Snapshot.VERSION;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.recovery.Snapshot.Marker;
import io.orbitkv.recovery.Snapshot.NamespaceList;
import io.orbitkv.recovery.Snapshot.RowTaker;
import io.orbitkv.recovery.Snapshot.RowTakers;
import io.orbitkv.tiers.LogGeometry;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Reads the INDEX of a snapshot, page by page, and hands its rows on. Not thread-safe. */
final class SnapshotReader implements AutoCloseable {
    private final DataFolders folders;
    private final LogGeometry geometry;
    private final Marker marker;
    private final RowTakers takers;
    private final Object lock;
    private final BlockChecksum whole = new BlockChecksum();
    private final BlockChecksum pageChecksum = new BlockChecksum();
    private final List<Long> id64s = new ArrayList<>();
    private final List<Integer> epochs = new ArrayList<>();
    private int namespaces;
    private long rows;
    private long rowsTaken;
    private RowTaker taker;
    private int pagesRead;

    // ---- where reading stands ----
    private final MemoryRegion piece =
            MemoryRegion.anonymous((long) PIECE_PAGES * PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING);
    private StorageFile file;
    private int part;
    private long partBytes;
    private long done;
    private int at;
    private int filled;
    private boolean ended;
    private String odd;

    /**
     * Begins.
     *
     * @param lock is held while the rows of a page are handed on, and never while a page is read
     */
    SnapshotReader(DataFolders folders, LogGeometry geometry, Marker marker, RowTakers takers, Object lock) {
        this.folders = folders;
        this.geometry = geometry;
        this.marker = marker;
        this.takers = takers;
        this.lock = lock;
        if (marker.indexBytes() < PAGE_BYTES || marker.indexBytes() % PAGE_BYTES != 0) {
            odd = "its marker says that it has " + marker.indexBytes() + " bytes";
        }
    }

    /** Handles the next page; false at the end, whether all was good or something was {@link #odd}. */
    boolean step() {
        if (odd != null || ended) {
            return false;
        }
        if (at == filled && !fill()) {
            return false;
        }
        odd = readPage(pagesRead++);
        at += PAGE_BYTES;
        return odd == null;
    }

    /** What does not check out, or null. */
    String odd() {
        return odd;
    }

    /** Pages handled so far. */
    long pagesRead() {
        return pagesRead;
    }

    /** Reads on; false where nothing is left or what is there is not right. */
    private boolean fill() {
        while (done == partBytes) {
            closeFile();
            if (part == folders.count()) {
                ended = true;
                odd = end();
                return false;
            }
            odd = openPart(part++);
            if (odd != null) {
                return false;
            }
        }
        int length = (int) Math.min(piece.bytes(), partBytes - done);
        file.read(done, piece, 0, length);
        whole.update(piece, 0, length);
        done += length;
        at = 0;
        filled = length;
        return true;
    }

    private String openPart(int number) {
        partBytes = Snapshot.pagesOfPart(marker.indexBytes() / PAGE_BYTES, folders.count(), number) * PAGE_BYTES;
        done = 0;
        if (partBytes == 0) {
            return null;
        }
        DataFolder folder = folders.get(number);
        if (!folder.exists(FolderNames.INDEX)) {
            return "it is missing";
        }
        file = folder.open(FolderNames.INDEX, false);
        return file.bytes() == partBytes ? null : "it has " + file.bytes() + " bytes and should have " + partBytes;
    }

    /** What is wrong with all of it, once the last part was read. */
    private String end() {
        if (rowsTaken != rows || id64s.size() != namespaces) {
            return "it has " + rowsTaken + " of " + rows + " rows";
        }
        return whole.value() == marker.indexChecksum() ? null : "it does not match the marker's checksum";
    }

    private String readPage(int number) {
        if (piece.getInt((long) at + PAGE_NUMBER) != number
                || piece.getInt((long) at + PAGE_CRC)
                        != pageChecksum.reset().update(piece, at, PAGE_CRC).value()) {
            return "page " + number + " is damaged";
        }
        int count = piece.getInt((long) at + PAGE_COUNT);
        if (number == 0) {
            return readHeader();
        }
        if (id64s.size() < namespaces) {
            if (count < 1 || count > NAMESPACES_A_PAGE) {
                return "page " + number + " counts " + count;
            }
            for (int i = 0; i < count; i++) {
                id64s.add(piece.getLong(at + (long) i * NAMESPACE_BYTES));
                epochs.add(piece.getInt(at + (long) i * NAMESPACE_BYTES + 8));
            }
            return null;
        }
        if (count < 1 || count > ROWS_A_PAGE) {
            return "page " + number + " counts " + count;
        }
        if (taker == null) {
            taker = takers.after(new NamespaceList(id64s, epochs));
        }
        synchronized (lock) {
            return readRows(count);
        }
    }

    private String readRows(int count) {
        for (int i = 0; i < count; i++) {
            if (!readRow(at + (long) i * ROW_BYTES)) {
                return "row " + (rowsTaken + i) + " does not fit the log";
            }
        }
        rowsTaken += count;
        return null;
    }

    private String readHeader() {
        byte[] id = new byte[LogGeometry.STORE_ID_BYTES];
        piece.copyTo(at + 32L, id, 0, id.length);
        namespaces = piece.getInt(at + 12L);
        rows = piece.getLong(at + 16L);
        boolean good = piece.getLong(at) == INDEX_MAGIC
                && piece.getInt(at + 8L) == VERSION
                && piece.getLong(at + 24L) == marker.epoch()
                && Arrays.equals(id, geometry.storeId())
                && namespaces >= 0
                && rows >= 0;
        return good ? null : "its header does not fit the marker";
    }

    private boolean readRow(long row) {
        int namespace = piece.getInt(row + 36);
        int segment = piece.getInt(row + 16);
        int page = piece.getShort(row + 20) & 0xFFFF;
        int stored = piece.getInt(row + 24);
        return namespace >= 0
                && namespace < namespaces
                && segment >= 0
                && segment < geometry.segments()
                && stored >= 1
                && page >= 2
                && page + (long) Extent.pages(stored) <= geometry.segmentPages()
                && taker.take(
                        namespace,
                        (piece.getShort(row + 22) & CONTINUES_RUN) != 0,
                        piece.getLong(row),
                        piece.getLong(row + 8),
                        segment,
                        page,
                        stored,
                        piece.getInt(row + 28),
                        piece.getInt(row + 32));
    }

    private void closeFile() {
        if (file != null) {
            file.close();
            file = null;
        }
    }

    @Override
    public void close() {
        closeFile();
        piece.close();
    }
}
