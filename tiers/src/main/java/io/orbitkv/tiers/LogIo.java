package io.orbitkv.tiers;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.nativeio.TimedReader;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.concurrent.NanoClock;

/**
 * The log's files in one data folder, and their ring, addressed by segment and page. Writes leave a part of the ring to reads,
 * and go one at a time while somebody reads: a drive serves what it was given first, and nobody waits for a write.
 *
 * <p>Files are open from the start; the ring is made by the agent's thread, which owns it.
 */
final class LogIo implements AutoCloseable {
    private final DataFolder folder;
    private final NanoClock clock;
    private final LogGeometry geometry;
    private final int ringDepth;
    private final int readDepth;
    private final StorageFile[] files;

    private static final long NANOS_PER_SECOND = 1_000_000_000;

    /** So long after a read another is expected. */
    private static final long READ_CALM_NANOS = 50_000_000;

    /** Most writes in flight while somebody reads. */
    private static final int WRITES_BESIDE_READS = 1;

    /** A drive that still ends transfers is slow, and one of them may take so many times as long. */
    private static final int SLOW_FACTOR = 4;

    /** A drive that moves so little is slow, not hung. */
    private static final long SLOW_BYTES_PER_SECOND = 64L << 20;

    /** Most bytes that a flush is given time for: a drive with a cache of its own pays there for the writes before. */
    private static final long FLUSHED_BYTES_MAX = 512L << 20;

    private volatile IoRing ring;
    private volatile InFlight inFlight;

    /** Bytes of the transfers in flight, and those that flushes in flight cover. Written by the agent only. */
    private final AtomicLong owedBytes = new AtomicLong();

    /** When somebody read last, by the tier's clock. */
    private volatile long readNanos;

    private volatile boolean wasRead;

    private final FlushClock flushes = new FlushClock();

    // The agent's.
    private boolean[] isWrite;
    private boolean[] isFlush;
    private int writeDepth;
    private int writesInFlight;
    private boolean isReadFrom;
    private long[] owed;
    private long unflushedBytes;

    LogIo(DataFolder folder, int drive, LogGeometry geometry, NvmeOptions options, NanoClock clock) {
        this.folder = folder;
        this.clock = clock;
        this.geometry = geometry;
        this.ringDepth = options.ringDepth();
        this.readDepth = options.readDepth();
        this.files = new StorageFile[geometry.files()];
        boolean good = false;
        try {
            for (int file = 0; file < files.length; file++) {
                files[file] = geometry.folderOfFile(file) == drive ? open(file) : null;
            }
            good = true;
        } finally {
            if (!good) {
                close();
            }
        }
    }

    private StorageFile open(int number) {
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

    void openRing(HostBlocks host, MemoryRegion staging) {
        IoRing opened = folder.newRing(ringDepth);
        // Where the kernel refuses, transfers cost a little more: nothing to decide here.
        opened.register(host.memory(), host.unitBytes());
        opened.register(staging);
        writeDepth = Math.max(1, opened.depth() - readDepth);
        inFlight = new InFlight(opened.depth());
        isWrite = new boolean[opened.depth()];
        isFlush = new boolean[opened.depth()];
        owed = new long[opened.depth()];
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
        if ((isReadFrom && writesInFlight >= WRITES_BESIDE_READS) || ring.inFlight() >= writeDepth) {
            return false;
        }
        long to = geometry.fileOffset(segment, page);
        int slot = begin(token, bytes);
        boolean taken =
                submitted(slot, slot >= 0 && ring.write(fileOf(segment), to, region, offset, (int) bytes, slot));
        if (taken) {
            isWrite[slot] = true;
            writesInFlight++;
            unflushedBytes += bytes;
        }
        return taken;
    }

    boolean flush(int file, long token) {
        if (ring.inFlight() >= writeDepth) {
            return false;
        }
        int slot = begin(token, Math.min(unflushedBytes, FLUSHED_BYTES_MAX));
        boolean taken = submitted(slot, slot >= 0 && ring.flush(files[file], slot));
        if (taken) {
            isFlush[slot] = true;
            flushes.begun(unflushedBytes, clock.nanoTime());
            unflushedBytes = 0; // of all files: one drive, one cache
        }
        return taken;
    }

    boolean read(long extent, MemoryRegion region, long offset, long bytes, long token) {
        int segment = Extent.segment(extent);
        long from = geometry.fileOffset(segment, Extent.page(extent));
        int slot = begin(token, bytes);
        return submitted(slot, slot >= 0 && ring.read(fileOf(segment), from, region, offset, (int) bytes, slot));
    }

    /** Starts a read on the caller's thread. */
    int readNow(TimedReader reader, long extent, MemoryRegion region, long offset, long bytes, long timeoutNanos) {
        int segment = Extent.segment(extent);
        long from = geometry.fileOffset(segment, Extent.page(extent));
        return reader.read(fileOf(segment), from, region, offset, (int) bytes, timeoutNanos);
    }

    private int begin(long token, long bytes) {
        int slot = inFlight.add(token, clock.nanoTime());
        if (slot >= 0) {
            owed[slot] = bytes;
            owedBytes.setRelease(owedBytes.getPlain() + bytes);
        }
        return slot;
    }

    private void settle(int slot) {
        owedBytes.setRelease(owedBytes.getPlain() - owed[slot]);
    }

    private boolean submitted(int slot, boolean taken) {
        if (!taken && slot >= 0) {
            settle(slot);
            inFlight.remove(slot);
        }
        return taken;
    }

    /** The folder, for messages. */
    String path() {
        return folder.path();
    }

    /** What a transfer was for that the ring has ended. */
    long ended(long slot) {
        int number = (int) slot;
        if (isWrite[number]) {
            isWrite[number] = false;
            writesInFlight--;
        }
        long now = clock.nanoTime();
        if (isFlush[number]) {
            isFlush[number] = false;
            flushes.ended(now);
        }
        settle(number);
        return inFlight.end(number, now);
    }

    /** See {@link FlushClock#leftNanos}. Any thread. */
    double flushNanosLeft(long nowNanos) {
        return flushes.leftNanos(nowNanos);
    }

    /** How long the oldest transfer has been under way, 0 when none is. Any thread. */
    long ageNanos(long nowNanos) {
        InFlight transfers = inFlight;
        return transfers == null ? 0 : transfers.ageNanos(nowNanos);
    }

    /** Whether a transfer that has been under way for so long will hardly end any more. Any thread. */
    boolean isLate(long ageNanos, long timeoutNanos, long nowNanos) {
        if (ageNanos <= timeoutNanos) {
            return false;
        }
        InFlight transfers = inFlight;
        boolean moves = transfers != null && transfers.hasEndedWithin(timeoutNanos, nowNanos);
        long owedNanos = owedBytes.getAcquire() * NANOS_PER_SECOND / SLOW_BYTES_PER_SECOND;
        return ageNanos > (moves ? SLOW_FACTOR * timeoutNanos : timeoutNanos) + owedNanos;
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
