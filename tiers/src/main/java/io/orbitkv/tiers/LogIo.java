package io.orbitkv.tiers;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFile;

/**
 * The log's files, of all data folders, and its ring, addressed by segment and page. Writes leave a part of the ring to reads,
 * and go one at a time while somebody reads: a drive serves what it was given first, and nobody waits for a write.
 *
 * <p>Files are open from the start; the ring is made by the agent's thread, which owns it.
 */
final class LogIo implements AutoCloseable {
    private final DataFolders folders;
    private final LogGeometry geometry;
    private final int ringDepth;
    private final int readDepth;
    private final StorageFile[] files;

    /** So long after a read another is expected. */
    private static final long READ_CALM_NANOS = 50_000_000;

    /** Most writes in flight while somebody reads. */
    private static final int WRITES_BESIDE_READS = 1;

    private volatile IoRing ring;

    /** When somebody read last, by the tier's clock. */
    private volatile long readNanos;

    private volatile boolean wasRead;

    // The agent's.
    private int writeDepth;
    private int writesInFlight;
    private boolean isReadFrom;

    LogIo(DataFolders folders, LogGeometry geometry, NvmeOptions options) {
        this.folders = folders;
        this.geometry = geometry;
        this.ringDepth = options.ringDepth();
        this.readDepth = options.readDepth();
        this.files = new StorageFile[geometry.files()];
        boolean good = false;
        try {
            for (int file = 0; file < files.length; file++) {
                files[file] = open(file);
            }
            good = true;
        } finally {
            if (!good) {
                close();
            }
        }
    }

    private StorageFile open(int number) {
        DataFolder folder = folders.get(geometry.folderOfFile(number));
        StorageFile file = folder.open(LogGeometry.fileName(number), true);
        if (file.bytes() < geometry.fileBytes(number)) {
            long bytes = file.bytes();
            file.close();
            throw new OrbitKvException(
                    ErrorCode.SEGMENT_FILE,
                    folder.path() + "/" + LogGeometry.fileName(number) + " has " + bytes + " bytes instead of "
                            + geometry.fileBytes(number)
                            + "; open the folder through recovery, which decides what to do");
        }
        return file;
    }

    void openRing(MemoryRegion hostPool, MemoryRegion staging) {
        IoRing opened = folders.newRing(ringDepth);
        opened.register(hostPool); // where the kernel refuses, transfers cost a little more: nothing to decide here
        opened.register(staging);
        writeDepth = Math.max(1, opened.depth() - readDepth);
        ring = opened;
    }

    boolean isOpen() {
        return ring != null;
    }

    IoRing ring() {
        return ring;
    }

    void wakeup() {
        IoRing now = ring;
        if (now != null) {
            now.wakeup();
        }
    }

    /** Somebody is about to read. Any thread. */
    void readAt(long nowNanos) {
        readNanos = nowNanos;
        wasRead = true;
    }

    /** A step of the agent begins. */
    void stepAt(long nowNanos) {
        isReadFrom = wasRead && nowNanos - readNanos < READ_CALM_NANOS;
    }

    boolean write(int segment, int page, MemoryRegion region, long offset, long bytes, long token) {
        IoRing mine = ring;
        if (isReadFrom && writesInFlight >= WRITES_BESIDE_READS
                || mine.inFlight() >= writeDepth
                || !mine.write(
                        fileOf(segment), geometry.fileOffset(segment, page), region, offset, (int) bytes, token)) {
            return false;
        }
        writesInFlight++;
        return true;
    }

    /** A write that the ring took has ended, well or not. */
    void writeEnded() {
        writesInFlight--;
    }

    boolean flush(int file, long token) {
        IoRing mine = ring;
        return mine.inFlight() < writeDepth && mine.flush(files[file], token);
    }

    boolean read(long extent, MemoryRegion region, long offset, long bytes, long token) {
        int segment = Extent.segment(extent);
        long from = geometry.fileOffset(segment, Extent.page(extent));
        return ring.read(fileOf(segment), from, region, offset, (int) bytes, token);
    }

    /** On the caller's thread. */
    void readNow(long extent, MemoryRegion region, long offset, long bytes) {
        int segment = Extent.segment(extent);
        fileOf(segment).read(geometry.fileOffset(segment, Extent.page(extent)), region, offset, (int) bytes);
    }

    void punch(int segment) {
        fileOf(segment).punch(geometry.fileOffset(segment), geometry.segmentBytes());
    }

    void allocate(int segment) {
        fileOf(segment).allocate(geometry.fileOffset(segment), geometry.segmentBytes());
    }

    /** On the caller's thread. */
    void flushNow(int file) {
        files[file].flush();
    }

    private StorageFile fileOf(int segment) {
        return files[geometry.file(segment)];
    }

    int file(int segment) {
        return geometry.file(segment);
    }

    int fileCount() {
        return files.length;
    }

    /** Waits until nothing is in flight and frees the ring. */
    void closeRing() {
        IoRing mine = ring;
        ring = null;
        if (mine != null) {
            mine.close();
        }
    }

    @Override
    public void close() {
        closeRing();
        for (StorageFile file : files) {
            if (file != null) {
                file.close();
            }
        }
    }
}
