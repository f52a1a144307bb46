package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.CatalogIdentity;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.tiers.LogGeometry;

/**
 * How a cap is shared out: catalog, room for a snapshot, the file system's own blocks for our files and folders, and
 * all the rest in whole segments. Several folders share it equally: each holds as many segments, and takes no more than its
 * share.
 *
 * @param capBytes most bytes that all folders together may take on their drives
 * @param segmentBytes bytes of a segment
 * @param segments how many there are in all
 * @param catalogBytes what the catalog takes, in each folder
 * @param snapshotBytes what a snapshot may take in each folder: index and marker together
 * @param folders how many folders
 */
public record Budget(
        long capBytes, int segmentBytes, int segments, long catalogBytes, long snapshotBytes, int folders) {
    /** A 64th: a row of 40 bytes a block, and so blocks down to 2.5 KiB on average. */
    private static final int SNAPSHOT_SHARE = 64;

    private static final int SEGMENT_SHARE = 1024;
    private static final int SEGMENT_BYTES_MIN = 1 << 20;
    private static final int SEGMENT_BYTES_MAX = 64 << 20;

    private static final long MIB = 1 << 20;

    /** A row, in pages that may be half full, and as many for the next transaction and the one before. */
    private static final int CATALOG_BYTES_A_SEGMENT = 256;

    /** Lock page, four folders of one block each, and one block to be safe. */
    private static final long FIXED_BYTES = 6L * MemoryRegion.PAGE_BYTES;

    /** A file's extent tree, where its blocks are scattered, and its share of the folder. */
    private static final long FILE_BYTES = MemoryRegion.PAGE_BYTES;

    /** The largest power of two of at most cap/1024, between 1 and 64 MiB. */
    public static int defaultSegmentBytes(long capBytes) {
        long share = Long.highestOneBit(Math.max(1, capBytes / SEGMENT_SHARE));
        return (int) Math.max(SEGMENT_BYTES_MIN, Math.min(SEGMENT_BYTES_MAX, share));
    }

    /**
     * Shares out the cap of one folder; see {@link #of(long, int, int, int)}.
     *
     * @param capBytes most bytes that the folder may take
     * @param segmentBytes bytes of a segment; 0: by the cap
     * @param segmentsMin fewest segments that will do
     * @return how it is shared out
     */
    public static Budget of(long capBytes, int segmentBytes, int segmentsMin) {
        return of(capBytes, segmentBytes, segmentsMin, 1);
    }

    /**
     * Shares out a cap.
     *
     * @param capBytes most bytes that all folders may take
     * @param segmentBytes bytes of a segment; 0: by the cap
     * @param segmentsMin fewest segments that will do
     * @param folders how many folders
     * @return how it is shared out
     * @throws OrbitKvException {@link ErrorCode#CAP_TOO_SMALL}, naming the smallest cap that works
     */
    public static Budget of(long capBytes, int segmentBytes, int segmentsMin, int folders) {
        int bytes = segmentBytes == 0 ? defaultSegmentBytes(capBytes) : segmentBytes;
        int segmentsMinEach = (segmentsMin + folders - 1) / folders;
        Budget one = share(capBytes / folders, bytes, Extent.SEGMENTS_MAX / folders);
        Budget budget =
                new Budget(capBytes, bytes, one.segments * folders, one.catalogBytes, one.snapshotBytes, folders);
        if (one.segments < segmentsMinEach) {
            long smallest = smallestCap(bytes, segmentsMinEach) * folders;
            throw new OrbitKvException(
                    ErrorCode.CAP_TOO_SMALL,
                    "a cap of " + capBytes + " bytes holds " + budget.segments + " segments of " + bytes
                            + " bytes" + (folders == 1 ? "" : " in " + folders + " folders") + ", and at least "
                            + segmentsMinEach * folders + " are needed; give a cap of at least " + smallest
                            + " bytes" + (bytes > SEGMENT_BYTES_MIN ? " or smaller segments" : ""));
        }
        return budget;
    }

    /**
     * Shares out a cap for a store that was made with another one: its segment size and its catalogs stay as they are.
     *
     * @param capBytes most bytes that all folders may take
     * @param made what the store is
     * @param catalogBytes what its catalog takes, in each folder
     * @return how it is shared out; with as many segments as fit, which may be more than the files have places for
     */
    public static Budget fitting(long capBytes, CatalogIdentity made, long catalogBytes) {
        long share = capBytes / made.folders();
        Budget one = new Budget(share, (int) made.segmentBytes(), 0, catalogBytes, snapshotBytes(share), 1);
        long rowsMax = Math.max(catalogBytes / CATALOG_BYTES_A_SEGMENT, made.segments() / made.folders());
        long most = Math.min(Extent.SEGMENTS_MAX / made.folders(), rowsMax);
        int each = (int) Math.min(most, one.segmentsBeside(0, made.segments() / made.folders()));
        return new Budget(
                capBytes, one.segmentBytes, each * made.folders(), catalogBytes, one.snapshotBytes, made.folders());
    }

    /** What a catalog takes that is made anew for a store, where it is not known what the old one took. */
    static long catalogBytes(CatalogContents known) {
        CatalogIdentity made = known.identity();
        if (known.mapBytes() > 0) {
            return known.mapBytes();
        }
        long share = made.capBytes() / made.folders();
        long segments = Math.max(made.segments() / made.folders(), share / made.segmentBytes());
        return Math.max(Catalog.mapBytes(share), rowBytes(segments));
    }

    private static long rowBytes(long segments) {
        return (segments * CATALOG_BYTES_A_SEGMENT + MIB - 1) / MIB * MIB;
    }

    /**
     * Refuses a cap that is too small for a store that was made with another one.
     *
     * @throws OrbitKvException {@link ErrorCode#CAP_TOO_SMALL}, naming the smallest cap that works
     */
    public Budget requireSegments(int segmentsMin, CatalogIdentity made) {
        int wanted = (Math.min(segmentsMin, made.segments()) + folders - 1) / folders * folders;
        if (segments >= wanted) {
            return this;
        }
        long smallest = capBytes;
        while (fitting(smallest, made, catalogBytes).segments < wanted) {
            smallest += (long) segmentBytes * folders;
        }
        throw new OrbitKvException(
                ErrorCode.CAP_TOO_SMALL,
                "a cap of " + capBytes + " bytes holds " + segments + " segments of " + segmentBytes
                        + " bytes of the store"
                        + " that is there, and at least " + wanted + " are needed; give a cap of at least " + smallest
                        + " bytes");
    }

    /**
     * How many segments a folder has room for.
     *
     * @param otherBytes bytes of its share that something else takes
     * @param places how many its files have places for; all these files exist, and count with what the file system needs
     * @return how many; more than {@code places} where there is room for further files
     */
    public int segmentsBeside(long otherBytes, int places) {
        long rest = capBytes / folders - catalogBytes - snapshotBytes - FIXED_BYTES - otherBytes;
        long perFile = Math.max(1, LogGeometry.SHARED_FILE_BYTES_MAX / segmentBytes);
        long files = (places + perFile - 1) / perFile;
        long fit = Math.floorDiv(rest - files * FILE_BYTES, segmentBytes);
        return (int) Math.max(
                0, Math.min(Extent.SEGMENTS_MAX, fit <= places ? fit : Math.max(places, fill(rest, segmentBytes))));
    }

    /** What a folder takes at most beside its segments and a snapshot, where its files have places for so many segments. */
    public long fixedBytes(int places) {
        long perFile = Math.max(1, LogGeometry.SHARED_FILE_BYTES_MAX / segmentBytes);
        return FIXED_BYTES + catalogBytes + (places + perFile - 1) / perFile * FILE_BYTES;
    }

    /** Segments in whole files, and in a last one. */
    private static long fill(long rest, int segmentBytes) {
        long perFile = Math.max(1, LogGeometry.SHARED_FILE_BYTES_MAX / segmentBytes);
        long fileBytes = perFile * segmentBytes + FILE_BYTES;
        long whole = Math.max(0, rest / fileBytes);
        long last = Math.max(0, (rest - whole * fileBytes - FILE_BYTES) / segmentBytes);
        return whole * perFile + last;
    }

    private static long snapshotBytes(long capBytes) {
        return Math.max(4L, capBytes / SNAPSHOT_SHARE / MemoryRegion.PAGE_BYTES) * MemoryRegion.PAGE_BYTES;
    }

    private static Budget share(long capBytes, int segmentBytes, int segmentsMax) {
        long catalogBytes = Math.max(Catalog.mapBytes(capBytes), rowBytes(capBytes / segmentBytes));
        long snapshotBytes = snapshotBytes(capBytes);
        long rest = capBytes - catalogBytes - snapshotBytes - FIXED_BYTES;
        long segments = Math.min(segmentsMax, fill(rest, segmentBytes));
        return new Budget(capBytes, segmentBytes, (int) segments, catalogBytes, snapshotBytes, 1);
    }

    private static long smallestCap(int segmentBytes, int segmentsMin) {
        long cap = (long) segmentBytes * segmentsMin;
        while (share(cap, segmentBytes, Extent.SEGMENTS_MAX).segments < segmentsMin) {
            cap += MemoryRegion.PAGE_BYTES * 16L;
        }
        return cap;
    }

    /** What a folder takes once it is made, without a snapshot: its file system must have this much free. */
    public long creationBytes() {
        long perFile = Math.max(1, LogGeometry.SHARED_FILE_BYTES_MAX / segmentBytes);
        long mine = segments / folders;
        long files = (mine + perFile - 1) / perFile;
        return FIXED_BYTES + files * FILE_BYTES + catalogBytes + mine * segmentBytes;
    }
}
