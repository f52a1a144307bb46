package io.orbitkv.nativeio;

/**
 * An open file of a data folder, read and written past the page cache in whole pages.
 *
 * <p>Reads and writes are safe from any thread; they block. Close when no transfer of a ring is in flight.
 */
public interface StorageFile extends AutoCloseable {
    /** The file's name within its folder, for messages. */
    String name();

    /** Its length in bytes. */
    long bytes();

    /**
     * Reads whole pages; returns when all are there.
     *
     * @param fileOffset in bytes, a multiple of the page
     * @param region where the bytes land
     * @param offset in bytes within the region; the address there is a multiple of the page
     * @param bytes how many, a multiple of the page
     * @throws OrbitKvException {@link ErrorCode#DRIVE} on an error or at the end of the file
     */
    void read(long fileOffset, MemoryRegion region, long offset, int bytes);

    /** Writes whole pages; see {@link #read}. Not durable before {@link #flush()}. */
    void write(long fileOffset, MemoryRegion region, long offset, int bytes);

    /**
     * fdatasync: what was written before is durable afterwards.
     *
     * @throws OrbitKvException {@link ErrorCode#DRIVE}; never retry it, since the kernel may have dropped the pages
     */
    void flush();

    /**
     * Gives a range its blocks on the drive, so that writes into it can't fail for lack of room; it reads as zeros where it
     * had none. Durable with {@link #flush()}.
     *
     * @param fileOffset in bytes, a multiple of the page
     * @param bytes how many, a multiple of the page, within the file
     * @throws OrbitKvException {@link ErrorCode#NO_SPACE} when the file system is full
     */
    void allocate(long fileOffset, long bytes);

    /**
     * Gives a range's blocks back to the file system: it reads as zeros and takes nothing, and the file keeps its length.
     * A power loss may bring the range back until {@link #flush()}.
     *
     * @param fileOffset in bytes, a multiple of the page
     * @param bytes how many, a multiple of the page, within the file
     * @throws OrbitKvException {@link ErrorCode#NOT_AVAILABLE} where the file system can't do that
     */
    void punch(long fileOffset, long bytes);

    /** Closes the file. Safe to call twice. */
    @Override
    void close();
}
