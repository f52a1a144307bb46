package io.orbitkv.tiers;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.MemoryRegion;

/** What all pages of disk format 1 share; {@code docs/format.md} is the truth. */
public final class DiskFormat {
    /** The version that this code reads and writes. */
    public static final int VERSION = 1;

    /** The unit of everything on the drive, in bytes. */
    public static final int PAGE_BYTES = MemoryRegion.PAGE_BYTES;

    /** Where the CRC32C of a header page stands: it covers all bytes before it. */
    public static final int PAGE_CRC_OFFSET = PAGE_BYTES - Integer.BYTES;

    private DiskFormat() {}

    /** Eight ASCII characters as they stand on the drive. */
    static long magic(String text) {
        assert text.length() == Long.BYTES : text;
        long magic = 0;
        for (int i = 0; i < Long.BYTES; i++) {
            magic |= (long) text.charAt(i) << (i * Byte.SIZE);
        }
        return magic;
    }

    static void sealPage(BlockChecksum checksum, MemoryRegion region, long offset) {
        region.putInt(offset + PAGE_CRC_OFFSET, pageChecksum(checksum, region, offset));
    }

    static boolean isWholePage(BlockChecksum checksum, MemoryRegion region, long offset) {
        return region.getInt(offset + PAGE_CRC_OFFSET) == pageChecksum(checksum, region, offset);
    }

    private static int pageChecksum(BlockChecksum checksum, MemoryRegion region, long offset) {
        return checksum.reset().update(region, offset, PAGE_CRC_OFFSET).value();
    }
}
