package io.orbitkv.recovery;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;

/**
 * Names of the blocks that host memory held when the store stopped, those used last first, so that the next life can bring
 * them back. Hints: each is looked up in the index before anything is done with it, so an old or a damaged file costs nothing.
 *
 * <pre>
 * USED, pages of 4096 bytes
 * blocks:     85 of 48 bytes:  key 32 | namespace's id64 u64 | its epoch u32 | flags u32 (bit 0: goes on behind the one before)
 * each page:  4080 page number u32 | 4084 count in this page u32 | 4088 "USE1" | 4092 CRC32C of bytes 0 to 4091
 * </pre>
 *
 * <p>One thread.
 */
public final class LastUsedBlocks implements AutoCloseable {
    /** Most blocks that are named: 12 MiB, so that a stop writes them in a moment. */
    public static final int BLOCKS_MAX = 1 << 18;

    private static final int PAGE_BYTES = MemoryRegion.PAGE_BYTES;
    private static final int BLOCK_BYTES = 48;
    private static final int BLOCKS_A_PAGE = 4080 / BLOCK_BYTES;
    private static final int ID64 = PrefixIndex.KEY_BYTES;
    private static final int EPOCH = ID64 + Long.BYTES;
    private static final int FLAGS = EPOCH + Integer.BYTES;
    private static final int GOES_ON = 1;
    private static final int PAGE_NUMBER = 4080;
    private static final int PAGE_COUNT = 4084;
    private static final int PAGE_MAGIC = 4088;
    private static final int PAGE_CRC = 4092;
    private static final int MAGIC = 0x31455355;
    private static final int PIECE_BYTES = 256 * PAGE_BYTES;

    private final MemoryRegion pages;
    private int count;

    /**
     * Names none yet.
     *
     * @param blocksMax most that will be added, up to {@link #BLOCKS_MAX}
     */
    public LastUsedBlocks(int blocksMax) {
        pages = MemoryRegion.anonymous(
                (long) pagesOf(Math.max(1, blocksMax)) * PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING);
    }

    private static int pagesOf(int blocks) {
        return (blocks + BLOCKS_A_PAGE - 1) / BLOCKS_A_PAGE;
    }

    /** Most blocks whose names fit into so many bytes of a drive. */
    public static int blocksIn(long bytes) {
        return (int) Math.min(BLOCKS_MAX, Math.max(0, bytes) / PAGE_BYTES * BLOCKS_A_PAGE);
    }

    /** How many are named. */
    public int count() {
        return count;
    }

    private static long at(int block) {
        return (long) (block / BLOCKS_A_PAGE) * PAGE_BYTES + (long) (block % BLOCKS_A_PAGE) * BLOCK_BYTES;
    }

    /** Adds a block; see the layout. */
    public void add(MemoryRegion keyRegion, long keyOffset, long id64, int epoch, boolean goesOn) {
        long at = at(count++);
        pages.copyFrom(at, keyRegion, keyOffset, PrefixIndex.KEY_BYTES);
        pages.putLong(at + ID64, id64);
        pages.putInt(at + EPOCH, epoch);
        pages.putInt(at + FLAGS, goesOn ? GOES_ON : 0);
    }

    /** Where the key of a block stands, for a copy. */
    public void copyKey(int block, MemoryRegion into, long offset) {
        into.copyFrom(offset, pages, at(block), PrefixIndex.KEY_BYTES);
    }

    /** The namespace of a block. */
    public long id64(int block) {
        return pages.getLong(at(block) + ID64);
    }

    /** Its epoch. */
    public int epoch(int block) {
        return pages.getInt(at(block) + EPOCH);
    }

    /** Whether a block is the next of its prompt behind the one before it here. */
    public boolean goesOn(int block) {
        return pages.getInt(at(block) + FLAGS) == GOES_ON;
    }

    /** Writes the names down, durably, in place of those that are there. */
    public void write(DataFolder folder) {
        remove(folder);
        if (count == 0) {
            return;
        }
        BlockChecksum checksum = new BlockChecksum();
        for (int page = 0; page < pagesOf(count); page++) {
            long start = (long) page * PAGE_BYTES;
            pages.putInt(start + PAGE_NUMBER, page);
            pages.putInt(start + PAGE_COUNT, Math.min(BLOCKS_A_PAGE, count - page * BLOCKS_A_PAGE));
            pages.putInt(start + PAGE_MAGIC, MAGIC);
            pages.putInt(
                    start + PAGE_CRC,
                    checksum.reset().update(pages, start, PAGE_CRC).value());
        }
        long bytes = (long) pagesOf(count) * PAGE_BYTES;
        try (StorageFile file = folder.create(FolderNames.LAST_USED, bytes)) {
            for (long done = 0; done < bytes; done += PIECE_BYTES) {
                file.write(done, pages, done, (int) Math.min(PIECE_BYTES, bytes - done));
            }
            file.flush();
        }
        folder.syncFolder(FolderNames.SNAPSHOT);
    }

    /** Reads what the last clean stop wrote down, up to the first page that is damaged; none where there is no file. */
    public static LastUsedBlocks read(DataFolder folder) {
        if (!folder.exists(FolderNames.LAST_USED)) {
            return new LastUsedBlocks(0);
        }
        try (StorageFile file = folder.open(FolderNames.LAST_USED, false)) {
            long bytes = Math.min(file.bytes(), (long) pagesOf(BLOCKS_MAX) * PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
            LastUsedBlocks read = new LastUsedBlocks((int) (bytes / PAGE_BYTES * BLOCKS_A_PAGE));
            boolean good = false;
            try {
                read.readFrom(file, bytes);
                good = true;
                return read;
            } finally {
                if (!good) {
                    read.close();
                }
            }
        }
    }

    private void readFrom(StorageFile file, long bytes) {
        for (long done = 0; done < bytes; done += PIECE_BYTES) {
            file.read(done, pages, done, (int) Math.min(PIECE_BYTES, bytes - done));
        }
        BlockChecksum checksum = new BlockChecksum();
        for (long start = 0; start < bytes; start += PAGE_BYTES) {
            int here = pages.getInt(start + PAGE_COUNT);
            boolean good = pages.getInt(start + PAGE_MAGIC) == MAGIC
                    && pages.getInt(start + PAGE_NUMBER) == start / PAGE_BYTES
                    && here > 0
                    && here <= BLOCKS_A_PAGE
                    && pages.getInt(start + PAGE_CRC)
                            == checksum.reset().update(pages, start, PAGE_CRC).value();
            if (!good) {
                return;
            }
            count += here;
            if (here < BLOCKS_A_PAGE) {
                return; // the last
            }
        }
    }

    /** Forgets what the last clean stop wrote down. */
    public static void remove(DataFolder folder) {
        folder.unlink(FolderNames.LAST_USED);
    }

    /** Frees the memory. */
    @Override
    public void close() {
        pages.close();
    }
}
