package io.orbitkv.tiers;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.Arrays;

/**
 * How the log of one store is cut: segments of one size, several of them in a file while they are small.
 *
 * <pre>
 * segments/000000000000.seg  segments 0 .. segmentsPerFile-1, back to back
 * segments/000000000001.seg  segments segmentsPerFile .. 2*segmentsPerFile-1
 * ...                        the last file may be shorter
 * </pre>
 *
 * <p>Where a store has several data folders, segment s lies in folder s mod n, so that segments that are written at the
 * same time lie on several drives. Each folder packs its own segments into files in the same way, as many as every other;
 * the folder's k-th file has the number k * n + folder.
 *
 * <p>Immutable.
 */
public final class LogGeometry {
    /** The sub-folder of the segment files. */
    public static final String FOLDER = "segments";

    /** Bytes of a store id. */
    public static final int STORE_ID_BYTES = 16;

    /** Segments share a file up to this many bytes. */
    public static final long SHARED_FILE_BYTES_MAX = 64L << 20;

    /** Smallest segment: header, one batch of a few blocks, footer. */
    public static final int SEGMENT_BYTES_MIN = 16 * MemoryRegion.PAGE_BYTES;

    /** Largest segment: what the 16 bits of a page number reach. */
    public static final int SEGMENT_BYTES_MAX = Extent.PAGES_MAX * MemoryRegion.PAGE_BYTES;

    private static final int NAME_DIGITS = 12;
    private static final String SUFFIX = ".seg";

    private final int segmentBytes;
    private final int segments;
    private final byte[] storeId;
    private final int folders;

    /**
     * Describes a log.
     *
     * @param segmentBytes bytes of a segment, a power of two from {@link #SEGMENT_BYTES_MIN} to
     *     {@link #SEGMENT_BYTES_MAX}
     * @param segments how many segments, 1 to {@link Extent#SEGMENTS_MAX}
     * @param storeId the id of the store, {@link #STORE_ID_BYTES} bytes; copied
     */
    public LogGeometry(int segmentBytes, int segments, byte[] storeId) {
        this(segmentBytes, segments, storeId, 1);
    }

    /**
     * Describes a log that is spread over several data folders; see {@link #LogGeometry(int, int, byte[])}.
     *
     * @param segmentBytes bytes of a segment
     * @param segments how many segments in all, a multiple of {@code folders}
     * @param storeId the id of the store
     * @param folders how many data folders, at least 1
     */
    public LogGeometry(int segmentBytes, int segments, byte[] storeId, int folders) {
        if (folders < 1 || segments % folders != 0) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    segments + " segments can't be spread over " + folders + " folders; take a multiple");
        }
        if (segmentBytes < SEGMENT_BYTES_MIN
                || segmentBytes > SEGMENT_BYTES_MAX
                || Integer.bitCount(segmentBytes) != 1
                || segments < 1
                || segments > Extent.SEGMENTS_MAX
                || storeId.length != STORE_ID_BYTES) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    segments + " segments of " + segmentBytes + " bytes with a store id of " + storeId.length
                            + " bytes are not possible; take a power of two between " + SEGMENT_BYTES_MIN + " and "
                            + SEGMENT_BYTES_MAX + ", and 1 to " + Extent.SEGMENTS_MAX + " segments");
        }
        this.segmentBytes = segmentBytes;
        this.segments = segments;
        this.storeId = storeId.clone();
        this.folders = folders;
    }

    /** Bytes of a segment. */
    public int segmentBytes() {
        return segmentBytes;
    }

    /** Pages of a segment. */
    public int segmentPages() {
        return segmentBytes / MemoryRegion.PAGE_BYTES;
    }

    /** How many segments. */
    public int segments() {
        return segments;
    }

    /** A copy of the store's id. */
    public byte[] storeId() {
        return storeId.clone();
    }

    /** The largest block, in pages, that a segment can hold beside its header, one batch header and its footer. */
    public int blockPagesMax() {
        return segmentPages() - SegmentHeader.PAGES - BatchHeader.PAGES - Footer.pagesFor(1);
    }

    /** How many segments a file holds; the last one may hold fewer. */
    public int segmentsPerFile() {
        return (int) Math.max(1, SHARED_FILE_BYTES_MAX / segmentBytes);
    }

    /** How many data folders. */
    public int folders() {
        return folders;
    }

    /** How many segments each folder holds. */
    public int segmentsPerFolder() {
        return segments / folders;
    }

    /** The folder that a segment lies in, from 0. */
    public int folderOfSegment(int segment) {
        return segment % folders;
    }

    /** The folder that a file lies in, from 0. */
    public int folderOfFile(int file) {
        return file % folders;
    }

    /** How many files there are in all. */
    public int files() {
        return folders * ((segments / folders + segmentsPerFile() - 1) / segmentsPerFile());
    }

    /** Bytes of a file. */
    public long fileBytes(int file) {
        int held = Math.min(segmentsPerFile(), segments / folders - file / folders * segmentsPerFile());
        return (long) held * segmentBytes;
    }

    /** Bytes of all files together. */
    public long totalBytes() {
        return (long) segments * segmentBytes;
    }

    /** The number of the file that a segment lies in. */
    public int file(int segment) {
        return segment / folders / segmentsPerFile() * folders + segment % folders;
    }

    /** Where a segment starts within its file, in bytes. */
    public long fileOffset(int segment) {
        return (long) (segment / folders % segmentsPerFile()) * segmentBytes;
    }

    /** Where a page of a segment starts within the segment's file, in bytes. */
    public long fileOffset(int segment, int page) {
        return fileOffset(segment) + (long) page * MemoryRegion.PAGE_BYTES;
    }

    /** The name of a file within its data folder. */
    public static String fileName(int file) {
        // Not by a format, which costs a start a second of compiling regular expressions, and has other digits in some
        // locales.
        String digits = Integer.toString(file);
        return FOLDER + "/" + "0".repeat(NAME_DIGITS - digits.length()) + digits + SUFFIX;
    }

    /** The number in a file's name (without the folder), or -1 if it is not named like a segment file. */
    public static int fileNumber(String name) {
        if (name.length() != NAME_DIGITS + SUFFIX.length() || !name.endsWith(SUFFIX)) {
            return -1;
        }
        long number = 0;
        for (int i = 0; i < NAME_DIGITS; i++) {
            char digit = name.charAt(i);
            if (digit < '0' || digit > '9') {
                return -1;
            }
            number = number * 10 + (digit - '0');
        }
        return number <= Extent.SEGMENTS_MAX ? (int) number : -1;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof LogGeometry that
                && segmentBytes == that.segmentBytes
                && segments == that.segments
                && folders == that.folders
                && Arrays.equals(storeId, that.storeId);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(storeId) * 31 + segments;
    }

    @Override
    public String toString() {
        return segments + " segments of " + segmentBytes + " bytes"
                + (folders == 1 ? "" : " in " + folders + " folders");
    }
}
