package io.orbitkv.suite;

import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Reads use-sequences from the header pages of the segments, by the table of docs/format.md and without the store's own
 * code: the proof that a segment was put to use again.
 */
final class SegmentHeaders implements AutoCloseable {
    private static final long FILE_BYTES_MAX = 64L << 20;
    private static final int MAGIC_BYTES = 8;
    private static final int USE_SEQUENCE = 24;
    private static final byte[] MAGIC = "OKVSEG01".getBytes(StandardCharsets.US_ASCII);

    private final List<? extends DataFolder> folders;
    private final int segmentBytes;
    private final MemoryRegion page =
            MemoryRegion.anonymous(MemoryRegion.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);

    /** Looks into the folders of a store, in the order of their numbers. */
    SegmentHeaders(List<? extends DataFolder> folders, int segmentBytes) {
        this.folders = folders;
        this.segmentBytes = segmentBytes;
    }

    /** The use-sequence in a segment's header; 0 where no header stands. */
    long useSequence(int segment) {
        long perFile = Math.max(1, FILE_BYTES_MAX / segmentBytes);
        int count = folders.size();
        int folder = segment % count;
        long inFolder = segment / count;
        String name = String.format("segments/%012d.seg", inFolder / perFile * count + folder);
        try (StorageFile file = folders.get(folder).open(name, false)) {
            file.read(inFolder % perFile * segmentBytes, page, 0, MemoryRegion.PAGE_BYTES);
        }
        for (int i = 0; i < MAGIC_BYTES; i++) {
            if (page.getByte(i) != MAGIC[i]) {
                return 0;
            }
        }
        return page.getLong(USE_SEQUENCE);
    }

    @Override
    public void close() {
        page.close();
    }
}
