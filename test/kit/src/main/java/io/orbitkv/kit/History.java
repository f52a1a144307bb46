package io.orbitkv.kit;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.zip.CRC32C;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Everything that a simulated drive was asked and what it answered, so that two runs of one seed can be compared byte
 * for byte.
 *
 * <pre>
 * row of 40 bytes, little endian:
 *  0 4 operation | 4 4 file number | 8 8 offset | 16 4 bytes | 20 4 checksum of data or name | 24 8 result | 32 8 time in ns
 * </pre>
 *
 * <p>The digest covers every row; the bytes themselves are kept up to {@link #BYTES_MAX}. Guarded by its drive.
 */
public final class History {
    /** Bytes of one row. */
    public static final int ROW_BYTES = 40;

    /** Most bytes kept: some 800,000 operations, more than any crash test makes, and little memory. */
    public static final int BYTES_MAX = 32 << 20;

    private static final int LINES_SHOWN = 40;

    /** What was asked of the drive. */
    enum Operation {
        LOCK,
        MAKE_FOLDER,
        CREATE,
        OPEN,
        RENAME,
        UNLINK,
        SYNC_FOLDER,
        READ,
        WRITE,
        FLUSH,
        SUBMIT_READ,
        SUBMIT_WRITE,
        SUBMIT_FLUSH,
        COMPLETE_READ,
        COMPLETE_WRITE,
        COMPLETE_FLUSH,
        CRASH,
        POWER_LOSS,
        KILL,
        EXTEND,
        ALLOCATE,
        PUNCH
    }

    private static final Operation[] OPERATIONS = Operation.values();

    private final byte[] row = new byte[ROW_BYTES];
    private final UnsafeBuffer rowView = new UnsafeBuffer(row);
    private final MessageDigest digest;
    private final CRC32C crc = new CRC32C();
    private byte[] kept = new byte[64 * ROW_BYTES];
    private int keptBytes;
    private long rows;

    History() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }

    void add(Operation operation, int file, long offset, int bytes, int checksum, long result, long timeNanos) {
        rowView.putInt(0, operation.ordinal());
        rowView.putInt(4, file);
        rowView.putLong(8, offset);
        rowView.putInt(16, bytes);
        rowView.putInt(20, checksum);
        rowView.putLong(24, result);
        rowView.putLong(32, timeNanos);
        digest.update(row);
        rows++;
        if (keptBytes + ROW_BYTES > BYTES_MAX) {
            return;
        }
        if (keptBytes + ROW_BYTES > kept.length) {
            kept = Arrays.copyOf(kept, 2 * kept.length);
        }
        System.arraycopy(row, 0, kept, keptBytes, ROW_BYTES);
        keptBytes += ROW_BYTES;
    }

    int checksum(String name) {
        crc.reset();
        for (int i = 0; i < name.length(); i++) {
            crc.update(name.charAt(i));
        }
        return (int) crc.getValue();
    }

    /** Operations so far. */
    public long rows() {
        return rows;
    }

    /** The rows, oldest first; cut off at {@link #BYTES_MAX}. */
    public byte[] bytes() {
        return Arrays.copyOf(kept, keptBytes);
    }

    /** SHA-256 over all rows, in hex. */
    public String digest() {
        try {
            MessageDigest soFar = (MessageDigest) digest.clone();
            return HexFormat.of().formatHex(soFar.digest());
        } catch (CloneNotSupportedException e) {
            throw new IllegalStateException("the JDK's SHA-256 can be cloned", e);
        }
    }

    /** The last operations that were kept, one a line, for the message of a failed test. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder("history of " + rows + " operations, SHA-256 " + digest());
        UnsafeBuffer view = new UnsafeBuffer(kept);
        for (int at = Math.max(0, keptBytes - LINES_SHOWN * ROW_BYTES); at < keptBytes; at += ROW_BYTES) {
            text.append("\n  ").append(at / ROW_BYTES).append(": ").append(OPERATIONS[view.getInt(at)]);
            text.append(" file ").append(view.getInt(at + 4)).append(" offset ").append(view.getLong(at + 8));
            text.append(" bytes ").append(view.getInt(at + 16)).append(" crc ");
            text.append(Integer.toHexString(view.getInt(at + 20)))
                    .append(" -> ")
                    .append(view.getLong(at + 24));
            text.append(" at ").append(view.getLong(at + 32)).append(" ns");
        }
        return text.toString();
    }
}
