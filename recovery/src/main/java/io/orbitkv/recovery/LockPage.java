package io.orbitkv.recovery;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The page in the lock file: who holds the folder, and in which boot of the machine it was opened last.
 *
 * <pre>
 * offset bytes
 *    0     8   magic "OKVLOCK1"
 *    8     8   pid of the holder
 *   16     8   epoch
 *   24    36   boot id, ASCII
 *   60    16   store id
 *   76  4016   zero
 * 4092     4   CRC32C of bytes 0 to 4091
 * </pre>
 *
 * <p>An opening writes it twice: first with its pid only, so that others see who holds the folder; when recovery is
 * done also with its epoch and boot id, so that a crash before that is judged by the ones of before.
 *
 * @param pid of the holder
 * @param epoch of the opening that finished last
 * @param bootId the boot of the machine in which that was
 * @param storeId the store's id, 16 bytes
 */
record LockPage(long pid, long epoch, String bootId, byte[] storeId) {
    private static final byte[] MAGIC = "OKVLOCK1".getBytes(StandardCharsets.US_ASCII);
    private static final int PID = 8;
    private static final int EPOCH = 16;
    private static final int BOOT_ID = 24;
    private static final int BOOT_ID_BYTES = 36;
    private static final int STORE_ID = 60;
    private static final int STORE_ID_BYTES = 16;
    private static final int CRC = MemoryRegion.PAGE_BYTES - Integer.BYTES;

    /** The page of a folder that is locked, or null when none that counts stands there. */
    static LockPage read(DataFolder folder) {
        try (StorageFile file = folder.open(FolderNames.LOCK, false);
                MemoryRegion page = newPage()) {
            if (file.bytes() < MemoryRegion.PAGE_BYTES) {
                return null;
            }
            file.read(0, page, 0, MemoryRegion.PAGE_BYTES);
            byte[] magic = new byte[MAGIC.length];
            page.copyTo(0, magic, 0, magic.length);
            if (!Arrays.equals(magic, MAGIC) || page.getInt(CRC) != checksum(page)) {
                return null;
            }
            byte[] boot = new byte[BOOT_ID_BYTES];
            page.copyTo(BOOT_ID, boot, 0, boot.length);
            byte[] id = new byte[STORE_ID_BYTES];
            page.copyTo(STORE_ID, id, 0, id.length);
            String text = new String(boot, StandardCharsets.US_ASCII);
            return new LockPage(page.getLong(PID), page.getLong(EPOCH), text, id);
        }
    }

    /** Writes the page, durably. */
    void write(DataFolder folder) {
        try (StorageFile file = folder.open(FolderNames.LOCK, true);
                MemoryRegion page = newPage()) {
            page.copyFrom(0, MAGIC, 0, MAGIC.length);
            page.putLong(PID, pid);
            page.putLong(EPOCH, epoch);
            byte[] boot = Arrays.copyOf(bootId.getBytes(StandardCharsets.US_ASCII), BOOT_ID_BYTES);
            page.copyFrom(BOOT_ID, boot, 0, boot.length);
            page.copyFrom(STORE_ID, storeId, 0, STORE_ID_BYTES);
            page.putInt(CRC, checksum(page));
            file.write(0, page, 0, MemoryRegion.PAGE_BYTES);
            file.flush();
        }
    }

    /** Whether it was written in this boot of the machine. */
    boolean isOfBoot(String boot) {
        byte[] padded = Arrays.copyOf(boot.getBytes(StandardCharsets.US_ASCII), BOOT_ID_BYTES);
        return bootId.equals(new String(padded, StandardCharsets.US_ASCII));
    }

    private static MemoryRegion newPage() {
        return MemoryRegion.anonymous(MemoryRegion.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING);
    }

    private static int checksum(MemoryRegion page) {
        return new BlockChecksum().update(page, 0, CRC).value();
    }
}
