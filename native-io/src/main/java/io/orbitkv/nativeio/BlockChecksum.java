package io.orbitkv.nativeio;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.agrona.BufferUtil;
import org.agrona.UnsafeApi;

/**
 * CRC32C (Castagnoli, RFC 3720 appendix B.4) over native memory, in pieces, without allocation.
 *
 * <p>A block's checksum covers its 32-byte key and then its stored bytes, so that one check proves both identity and
 * content. One damaged block in 2^32 goes undetected.
 *
 * <p>Not thread-safe: each thread keeps its own.
 */
public final class BlockChecksum {
    private static final long CAPACITY_OFFSET = UnsafeApi.objectFieldOffset(java.nio.Buffer.class, "capacity");
    private static final int PIECE_BYTES_MAX = 1 << 30;

    private final CRC32C crc = new CRC32C();

    /**
     * The JDK computes CRC32C of native memory only through a direct buffer, so one is aimed at each range. It owns
     * one byte of its own; address and capacity are put back afterwards, so that its cleaner is not misled.
     */
    private final ByteBuffer window = ByteBuffer.allocateDirect(1);

    private final long ownAddress = BufferUtil.address(window);

    /** Creates a checksum over nothing. */
    public BlockChecksum() {
        reset();
    }

    /** Starts again. */
    public BlockChecksum reset() {
        crc.reset();
        return this;
    }

    /** Adds a range of memory. */
    public BlockChecksum update(MemoryRegion region, long offset, long length) {
        long address = region.address(offset, length);
        try {
            for (long done = 0; done < length; ) {
                int piece = (int) Math.min(PIECE_BYTES_MAX, length - done);
                aim(address + done, piece);
                crc.update(window);
                done += piece;
            }
        } finally {
            aim(ownAddress, 1);
        }
        return this;
    }

    /** Adds a range of an array. */
    public BlockChecksum update(byte[] array, int offset, int length) {
        crc.update(array, offset, length);
        return this;
    }

    /** The checksum of what was added since the last reset. */
    public int value() {
        return (int) crc.getValue();
    }

    private void aim(long address, int length) {
        UnsafeApi.putLong(window, BufferUtil.BYTE_BUFFER_ADDRESS_FIELD_OFFSET, address);
        UnsafeApi.putInt(window, CAPACITY_OFFSET, length);
        window.clear();
    }
}
