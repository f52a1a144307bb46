package io.orbitkv.nativeio;

import com.sun.jna.Native;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What statx(2) tells of one file.
 *
 * @param device the file system that it is on
 * @param inode its number there
 * @param folder whether it is a folder
 * @param regular whether it is a regular file
 * @param bytes its length
 * @param allocatedBytes what it takes on the drive
 */
record Stat(long device, long inode, boolean folder, boolean regular, long bytes, long allocatedBytes) {
    // struct statx of linux/stat.h, the same on every architecture.
    private static final int STRUCT_BYTES = 256;
    private static final int MODE = 28; // u16
    private static final int INODE = 32; // u64
    private static final int SIZE = 40; // u64
    private static final int BLOCKS = 48; // u64, units of 512 bytes whatever the file system's block is
    private static final int DEVICE = 136; // two u32, major and minor
    private static final int BLOCK_BYTES = 512;
    private static final int TYPE_MASK = 0xf000;
    private static final int TYPE_FOLDER = 0x4000;
    private static final int TYPE_REGULAR = 0x8000;

    /** The file at a path, or null when there is none; a symbolic link is not followed. */
    static Stat of(String path) {
        byte[] into = new byte[STRUCT_BYTES];
        if (LibC.statx(LibC.AT_FDCWD, path, LibC.AT_SYMLINK_NOFOLLOW, LibC.STATX_BASIC_STATS, into) < 0) {
            int errno = Native.getLastError();
            if (errno == LibC.ENOENT || errno == LibC.ENOTDIR) {
                return null;
            }
            throw new OrbitKvException(
                    errno == LibC.EIO ? ErrorCode.DRIVE : ErrorCode.FOLDER_UNUSABLE,
                    "cannot look at " + path + ": " + Errno.text(errno));
        }
        return of(into);
    }

    /** The file that a path leads to, links of /proc included, or null when it can't be told. */
    static Stat behind(String path) {
        byte[] into = new byte[STRUCT_BYTES];
        return LibC.statx(LibC.AT_FDCWD, path, 0, LibC.STATX_BASIC_STATS, into) < 0 ? null : of(into);
    }

    private static Stat of(byte[] into) {
        ByteBuffer fields = ByteBuffer.wrap(into).order(ByteOrder.nativeOrder());
        int type = fields.getShort(MODE) & TYPE_MASK;
        return new Stat(
                fields.getLong(DEVICE),
                fields.getLong(INODE),
                type == TYPE_FOLDER,
                type == TYPE_REGULAR,
                fields.getLong(SIZE),
                fields.getLong(BLOCKS) * BLOCK_BYTES);
    }
}
