package io.orbitkv.nativeio;

import com.sun.jna.Native;
import java.util.Objects;
import org.agrona.BufferUtil;
import org.agrona.MutableDirectBuffer;
import org.agrona.UnsafeApi;

/**
 * A stretch of native memory with bounds: the one class through which the project touches off-heap bytes.
 *
 * <p>Offsets are bytes from the region's start. Every access is checked against the region's length; a closed region
 * has length 0, so that an access after close throws instead of killing the JVM. Numbers are in native byte order,
 * which is little-endian on every machine that we support (checked at class initialisation).
 *
 * <p>Accesses are safe from any thread, with the memory order that their name tells; closing is the owner's task, when
 * nobody accesses the region any more and the kernel has no transfer into it in flight.
 */
public final class MemoryRegion implements AutoCloseable {
    /** The unit of alignment and transfer, in bytes. */
    public static final int PAGE_BYTES = 4096;

    /** Size and alignment of a huge page on x86-64 and aarch64 with 4 KiB pages, in bytes. */
    public static final long HUGE_PAGE_BYTES = 2L << 20;

    private static final int CACHE_LINE_BYTES = 64;

    /** Some milliseconds of the kernel's work. */
    private static final long POPULATED_BYTES = 4L << 20;

    private static final long ARRAY_BASE = UnsafeApi.arrayBaseOffset(byte[].class);
    private static final long INT_ARRAY_BASE = UnsafeApi.arrayBaseOffset(int[].class);
    private static final long LONG_ARRAY_BASE = UnsafeApi.arrayBaseOffset(long[].class);

    static {
        if (!java.nio.ByteOrder.nativeOrder().equals(java.nio.ByteOrder.LITTLE_ENDIAN)) {
            throw new UnsupportedOperationException("OrbitKV needs a little-endian machine");
        }
    }

    private final MemoryPurpose purpose;
    private final long mappedAddress;
    private final long mappedBytes;
    private final int fd;
    private final Object keptReachable;
    private final long address;
    private long bytes;
    private boolean closed;

    private MemoryRegion(
            MemoryPurpose purpose,
            long mappedAddress,
            long mappedBytes,
            int fd,
            Object keptReachable,
            long address,
            long bytes) {
        this.purpose = purpose;
        this.mappedAddress = mappedAddress;
        this.mappedBytes = mappedBytes;
        this.fd = fd;
        this.keptReachable = keptReachable;
        this.address = address;
        this.bytes = bytes;
        purpose.add(mappedBytes);
    }

    /**
     * Maps zeroed private memory, aligned to 2 MiB where it is at least that large and to a page otherwise.
     *
     * @param bytes how many bytes, at least 1; rounded up to whole pages
     * @param kind the pages to ask for
     * @param purpose what it is counted under
     * @return the region, owned by the caller
     * @throws OrbitKvException {@link ErrorCode#OUT_OF_MEMORY} when the kernel refuses
     */
    public static MemoryRegion anonymous(long bytes, PageKind kind, MemoryPurpose purpose) {
        requirePositive(bytes);
        if (kind == PageKind.HUGETLB) {
            long rounded = roundUp(bytes, HUGE_PAGE_BYTES);
            long mapped = map(rounded, LibC.MAP_PRIVATE | LibC.MAP_ANONYMOUS | LibC.MAP_HUGETLB, -1, kind, purpose);
            return new MemoryRegion(purpose, mapped, rounded, -1, null, mapped, rounded);
        }
        long rounded = roundUp(bytes, PAGE_BYTES);
        long slack = rounded >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 0;
        int flags = LibC.MAP_PRIVATE | LibC.MAP_ANONYMOUS | LibC.MAP_NORESERVE;
        long mapped = map(rounded + slack, flags, -1, kind, purpose);
        long aligned = slack == 0 ? mapped : roundUp(mapped, HUGE_PAGE_BYTES);
        if (kind == PageKind.TRANSPARENT_HUGE) {
            LibC.madvise(aligned, rounded, LibC.MADV_HUGEPAGE); // advice: a kernel without huge pages may say no
        }
        return new MemoryRegion(purpose, mapped, rounded + slack, -1, null, aligned, rounded);
    }

    /**
     * Maps zeroed memory that can be shared with other processes through its descriptor.
     *
     * @param name shown in /proc for people; no meaning otherwise
     * @param bytes how many bytes, at least 1; rounded up to whole pages
     * @param kind the pages to ask for
     * @param purpose what it is counted under
     * @return the region, owned by the caller; seal it with {@link #seal(Seal...)}
     * @throws OrbitKvException {@link ErrorCode#OUT_OF_MEMORY} when the kernel refuses
     */
    public static MemoryRegion memfd(String name, long bytes, PageKind kind, MemoryPurpose purpose) {
        requirePositive(bytes);
        boolean huge = kind == PageKind.HUGETLB;
        long rounded = roundUp(bytes, huge ? HUGE_PAGE_BYTES : PAGE_BYTES);
        int fd = LibC.memfd_create(name, LibC.MFD_CLOEXEC | LibC.MFD_ALLOW_SEALING | (huge ? LibC.MFD_HUGETLB : 0));
        if (fd < 0) {
            throw noMemory("memfd_create", rounded, kind, purpose, Native.getLastError());
        }
        boolean good = false;
        try {
            if (LibC.ftruncate(fd, rounded) < 0) {
                throw noMemory("ftruncate", rounded, kind, purpose, Native.getLastError());
            }
            long mapped = map(rounded, LibC.MAP_SHARED, fd, kind, purpose);
            if (kind == PageKind.TRANSPARENT_HUGE) {
                LibC.madvise(mapped, rounded, LibC.MADV_HUGEPAGE);
            }
            MemoryRegion region = new MemoryRegion(purpose, mapped, rounded, fd, null, mapped, rounded);
            good = true;
            return region;
        } finally {
            if (!good) {
                LibC.close(fd);
            }
        }
    }

    /**
     * Memory that other processes may map for reading, while this one alone writes it: nobody can map it writable any more,
     * write to its descriptor, punch holes into it or change its size.
     *
     * @param name shown in /proc for people; no meaning otherwise
     * @param bytes how many bytes, at least 1; rounded up to whole pages
     * @param kind the pages to ask for
     * @param purpose what it is counted under
     * @return the region, owned by the caller
     * @throws OrbitKvException {@link ErrorCode#OUT_OF_MEMORY} when the kernel refuses
     */
    public static MemoryRegion sealed(String name, long bytes, PageKind kind, MemoryPurpose purpose) {
        MemoryRegion region = memfd(name, bytes, kind, purpose);
        boolean good = false;
        try {
            region.seal(Seal.FUTURE_WRITE, Seal.SHRINK, Seal.GROW, Seal.SEAL);
            good = true;
            return region;
        } finally {
            if (!good) {
                region.close();
            }
        }
    }

    /**
     * Maps shared memory that another process has passed. What it maps must not shrink: ask for its seals first, where the
     * other process is not trusted.
     *
     * @param descriptor an open memfd; the region does not own it
     * @param bytes how many bytes from its start; rounded up to whole pages
     * @param writable whether it may be written: without, an access that writes kills the JVM
     * @return the region, owned by the caller
     * @throws OrbitKvException {@link ErrorCode#OUT_OF_MEMORY} when the kernel refuses
     */
    public static MemoryRegion ofDescriptor(int descriptor, long bytes, boolean writable) {
        requirePositive(bytes);
        long rounded = roundUp(bytes, PAGE_BYTES);
        int protection = LibC.PROT_READ | (writable ? LibC.PROT_WRITE : 0);
        long mapped = LibC.mmap(0, rounded, protection, LibC.MAP_SHARED, descriptor, 0);
        if (mapped == -1) {
            throw noMemory("mmap", rounded, PageKind.SMALL, MemoryPurpose.SHARED, Native.getLastError());
        }
        return new MemoryRegion(MemoryPurpose.SHARED, mapped, rounded, -1, null, mapped, rounded);
    }

    /**
     * Maps a small file shared, so that another process can watch what this one is doing even after it was killed.
     *
     * <p>For probes of tests and tools only: a file of a failing drive would raise SIGBUS, which kills the JVM, so
     * nothing of the store itself is ever mapped from a file.
     *
     * @param path the file; created where it is missing
     * @param bytes its length, at least 1; rounded up to whole pages
     * @return the region, owned by the caller
     */
    public static MemoryRegion sharedFile(String path, long bytes) {
        requirePositive(bytes);
        long rounded = roundUp(bytes, PAGE_BYTES);
        int fd = LibC.open(path, LibC.O_RDWR | LibC.O_CREAT | LibC.O_CLOEXEC, 0600);
        if (fd < 0) {
            throw new OrbitKvException(
                    ErrorCode.SYSTEM_CALL, "cannot open " + path + ": " + Errno.text(Native.getLastError()));
        }
        try {
            if (LibC.ftruncate(fd, rounded) < 0) {
                throw noMemory("ftruncate", rounded, PageKind.SMALL, MemoryPurpose.TOOL, Native.getLastError());
            }
            long mapped = map(rounded, LibC.MAP_SHARED, fd, PageKind.SMALL, MemoryPurpose.TOOL);
            return new MemoryRegion(MemoryPurpose.TOOL, mapped, rounded, -1, null, mapped, rounded);
        } finally {
            LibC.close(fd);
        }
    }

    /**
     * Maps a part of an io_uring.
     *
     * @param ringFd the ring's descriptor, which stays the caller's
     * @param bytes how many bytes; rounded up to whole pages
     * @param fileOffset which part, as linux/io_uring.h has it (IORING_OFF_...)
     */
    static MemoryRegion ofRing(int ringFd, long bytes, long fileOffset) {
        long rounded = roundUp(bytes, PAGE_BYTES);
        int flags = LibC.MAP_SHARED | LibC.MAP_POPULATE;
        long mapped = LibC.mmap(0, rounded, LibC.PROT_READ | LibC.PROT_WRITE, flags, ringFd, fileOffset);
        if (mapped == -1) {
            throw noMemory("mmap", rounded, PageKind.SMALL, MemoryPurpose.RING, Native.getLastError());
        }
        return new MemoryRegion(MemoryPurpose.RING, mapped, rounded, -1, null, mapped, rounded);
    }

    /**
     * Looks at memory that somebody else owns.
     *
     * @param address where it starts; the caller vouches that {@code bytes} bytes are mapped for as long as it is used
     * @param bytes how many bytes
     * @return a region whose close only makes it unusable
     */
    public static MemoryRegion foreign(long address, long bytes) {
        if (address <= 0 || bytes < 0) {
            throw new OrbitKvException(
                    ErrorCode.BAD_BUFFER,
                    "not a memory range: address " + address + ", bytes " + bytes + "; give what the owner allocated");
        }
        return new MemoryRegion(MemoryPurpose.FOREIGN, 0, 0, -1, null, address, bytes);
    }

    /**
     * Looks at a direct buffer between index 0 and its capacity; the buffer is kept reachable.
     *
     * @param buffer a direct buffer
     * @return a region whose close only makes it unusable
     */
    public static MemoryRegion foreign(java.nio.ByteBuffer buffer) {
        if (!buffer.isDirect()) {
            throw new OrbitKvException(
                    ErrorCode.BAD_BUFFER, "the buffer is not direct; use its array instead: " + buffer);
        }
        return new MemoryRegion(MemoryPurpose.FOREIGN, 0, 0, -1, buffer, BufferUtil.address(buffer), buffer.capacity());
    }

    /**
     * A part of this region as a region of its own, which this one keeps owning: closing the part frees nothing, and
     * it must not be used once this one is closed.
     *
     * @param offset where it starts
     * @param length its bytes
     * @return the part
     */
    public MemoryRegion part(long offset, long length) {
        check(offset, length);
        return new MemoryRegion(MemoryPurpose.FOREIGN, 0, 0, -1, this, address + offset, length);
    }

    private static long map(long bytes, int flags, int fd, PageKind kind, MemoryPurpose purpose) {
        long mapped = LibC.mmap(0, bytes, LibC.PROT_READ | LibC.PROT_WRITE, flags, fd, 0);
        if (mapped == -1) {
            throw noMemory("mmap", bytes, kind, purpose, Native.getLastError());
        }
        return mapped;
    }

    private static OrbitKvException noMemory(String call, long bytes, PageKind kind, MemoryPurpose purpose, int errno) {
        String remedy = kind == PageKind.HUGETLB
                ? "reserve huge pages (vm.nr_hugepages) or ask for transparent ones"
                : "make the size smaller or free memory";
        return new OrbitKvException(
                ErrorCode.OUT_OF_MEMORY,
                call + " of " + bytes + " bytes of " + kind + " pages for " + purpose + " failed: " + Errno.text(errno)
                        + "; " + remedy);
    }

    private static void requirePositive(long bytes) {
        if (bytes < 1) {
            throw new OrbitKvException(ErrorCode.BAD_ARGUMENT, "a memory region needs at least 1 byte, got " + bytes);
        }
    }

    private static long roundUp(long value, long unit) {
        return (value + unit - 1) / unit * unit;
    }

    /** Bytes of the region; 0 once it is closed. */
    public long bytes() {
        return bytes;
    }

    /** What it is counted under. */
    public MemoryPurpose purpose() {
        return purpose;
    }

    /** The descriptor of a memfd, which the region owns; -1 for other regions. */
    public int fd() {
        return fd;
    }

    /**
     * The address of a range, for system calls and drivers that take one.
     *
     * @param offset where the range starts
     * @param length its bytes
     * @return its address; the caller keeps the region reachable and open while the address is in use
     */
    public long address(long offset, long length) {
        check(offset, length);
        return address + offset;
    }

    /**
     * Has the kernel find and clear pages now, which it else does at the first write to each, while that waits. What stands in
     * the range stays, whoever writes there meanwhile. Does nothing on kernels before 5.14, or where memory is short.
     *
     * @param length bytes from the start of the region
     * @param isEnded asked between pieces; the region must not be closed before this has returned
     */
    public void populate(long length, java.util.function.BooleanSupplier isEnded) {
        check(0, length);
        for (long done = 0; done < length && !isEnded.getAsBoolean(); done += POPULATED_BYTES) {
            long piece = Math.min(POPULATED_BYTES, length - done);
            if (LibC.madvise(address + done, piece, LibC.MADV_POPULATE_WRITE) < 0) {
                return;
            }
        }
    }

    /** Whether a range of memory lies within this region. */
    public boolean contains(long otherAddress, long length) {
        return otherAddress >= address && length >= 0 && otherAddress - address <= bytes - length;
    }

    /** Bytes of the region that lie on huge pages now, from /proc/self/smaps: slow, for reports. */
    public long hugeBytes() {
        return Smaps.hugeBytes(address, bytes);
    }

    /** What a memfd can be sealed against. */
    public enum Seal {
        /** Further seals. */
        SEAL(1),
        /** Shrinking, which would kill whoever has it mapped. */
        SHRINK(2),
        /** Growing. */
        GROW(4),
        /** New writable mappings; those that exist stay writable. */
        FUTURE_WRITE(16);

        private final int bit;

        Seal(int bit) {
            this.bit = bit;
        }
    }

    /**
     * Seals a memfd region for good.
     *
     * @param seals what against
     */
    public void seal(Seal... seals) {
        int bits = 0;
        for (Seal seal : seals) {
            bits |= seal.bit;
        }
        if (fd < 0 || LibC.fcntl(fd, LibC.F_ADD_SEALS, bits) < 0) {
            throw new OrbitKvException(
                    ErrorCode.SYSTEM_CALL,
                    "cannot seal " + this + ": " + (fd < 0 ? "it is not a memfd" : Errno.text(Native.getLastError())));
        }
    }

    /** The seals of a memfd as fcntl(2) tells them: a sum of 1 SEAL, 2 SHRINK, 4 GROW, 8 WRITE, 16 FUTURE_WRITE. */
    public int seals() {
        return LibC.fcntl(fd, LibC.F_GET_SEALS, 0);
    }

    private void check(long offset, long length) {
        // One test for all: a negative offset or length, an end past the region, a closed region (bytes is 0).
        if ((offset | length) < 0 || offset > bytes - length) {
            throw outOfBounds(offset, length);
        }
    }

    private OrbitKvException outOfBounds(long offset, long length) {
        return new OrbitKvException(
                ErrorCode.OUT_OF_BOUNDS,
                "access to " + length + " bytes at " + offset + " of " + this + (closed ? ", which is closed" : "")
                        + "; this is a bug of the caller");
    }

    /** Reads a byte. */
    public byte getByte(long offset) {
        check(offset, Byte.BYTES);
        return UnsafeApi.getByte(null, address + offset);
    }

    /** Writes a byte. */
    public void putByte(long offset, byte value) {
        check(offset, Byte.BYTES);
        UnsafeApi.putByte(null, address + offset, value);
    }

    /** Reads two bytes. */
    public short getShort(long offset) {
        check(offset, Short.BYTES);
        return UnsafeApi.getShort(null, address + offset);
    }

    /** Writes two bytes. */
    public void putShort(long offset, short value) {
        check(offset, Short.BYTES);
        UnsafeApi.putShort(null, address + offset, value);
    }

    /** Reads four bytes. */
    public int getInt(long offset) {
        check(offset, Integer.BYTES);
        return UnsafeApi.getInt(null, address + offset);
    }

    /** Writes four bytes. */
    public void putInt(long offset, int value) {
        check(offset, Integer.BYTES);
        UnsafeApi.putInt(null, address + offset, value);
    }

    /** Reads four bytes; later accesses of this thread stay after it. */
    public int getIntAcquire(long offset) {
        check(offset, Integer.BYTES);
        return UnsafeApi.getIntAcquire(null, address + offset);
    }

    /** Writes four bytes; earlier accesses of this thread stay before it. */
    public void putIntRelease(long offset, int value) {
        check(offset, Integer.BYTES);
        UnsafeApi.putIntRelease(null, address + offset, value);
    }

    /** Reads four bytes in the total order of volatile accesses. */
    public int getIntVolatile(long offset) {
        check(offset, Integer.BYTES);
        return UnsafeApi.getIntVolatile(null, address + offset);
    }

    /** Writes four bytes in the total order of volatile accesses. */
    public void putIntVolatile(long offset, int value) {
        check(offset, Integer.BYTES);
        UnsafeApi.putIntVolatile(null, address + offset, value);
    }

    /** Adds to four bytes atomically; the value before. */
    public int getAndAddInt(long offset, int delta) {
        check(offset, Integer.BYTES);
        return UnsafeApi.getAndAddInt(null, address + offset, delta);
    }

    /** Replaces four bytes if they are as expected; whether it did. */
    public boolean compareAndSetInt(long offset, int expected, int value) {
        check(offset, Integer.BYTES);
        return UnsafeApi.compareAndSetInt(null, address + offset, expected, value);
    }

    /** Reads eight bytes. */
    public long getLong(long offset) {
        check(offset, Long.BYTES);
        return UnsafeApi.getLong(null, address + offset);
    }

    /** Writes eight bytes. */
    public void putLong(long offset, long value) {
        check(offset, Long.BYTES);
        UnsafeApi.putLong(null, address + offset, value);
    }

    /**
     * Reads something of each of some cache lines, to have them near soon.
     *
     * @param offset where the first is read
     * @param lines how many
     * @return a number without meaning; the caller keeps it somewhere, lest the reads be optimised away
     */
    public long touch(long offset, int lines) {
        check(offset, (lines - 1L) * CACHE_LINE_BYTES + Long.BYTES);
        long read = 0;
        for (int line = 0; line < lines; line++) {
            read += UnsafeApi.getLong(null, address + offset + (long) line * CACHE_LINE_BYTES);
        }
        return read;
    }

    /** Reads eight bytes; later accesses of this thread stay after it. */
    public long getLongAcquire(long offset) {
        check(offset, Long.BYTES);
        return UnsafeApi.getLongAcquire(null, address + offset);
    }

    /** Writes eight bytes; earlier accesses of this thread stay before it. */
    public void putLongRelease(long offset, long value) {
        check(offset, Long.BYTES);
        UnsafeApi.putLongRelease(null, address + offset, value);
    }

    /** Reads eight bytes in the total order of volatile accesses. */
    public long getLongVolatile(long offset) {
        check(offset, Long.BYTES);
        return UnsafeApi.getLongVolatile(null, address + offset);
    }

    /** Writes eight bytes in the total order of volatile accesses. */
    public void putLongVolatile(long offset, long value) {
        check(offset, Long.BYTES);
        UnsafeApi.putLongVolatile(null, address + offset, value);
    }

    /** Replaces eight bytes if they are as expected; whether it did. */
    public boolean compareAndSetLong(long offset, long expected, long value) {
        check(offset, Long.BYTES);
        return UnsafeApi.compareAndSetLong(null, address + offset, expected, value);
    }

    /** Sets a range to one byte. */
    public void fill(long offset, long length, byte value) {
        check(offset, length);
        UnsafeApi.setMemory(address + offset, length, value);
    }

    /** Copies a range of another region into this one. */
    public void copyFrom(long offset, MemoryRegion source, long sourceOffset, long length) {
        check(offset, length);
        source.check(sourceOffset, length);
        UnsafeApi.copyMemory(source.address + sourceOffset, address + offset, length);
    }

    /** Copies a range of an array into this region. */
    public void copyFrom(long offset, byte[] source, int sourceOffset, int length) {
        check(offset, length);
        Objects.checkFromIndexSize(sourceOffset, length, source.length);
        UnsafeApi.copyMemory(source, ARRAY_BASE + sourceOffset, null, address + offset, length);
    }

    /** Copies a range of an array into this region, to an offset that is a multiple of 8: each eight bytes are written whole. */
    public void copyFrom(long offset, long[] source, int sourceIndex, int longs) {
        check(offset, (long) longs * Long.BYTES);
        Objects.checkFromIndexSize(sourceIndex, longs, source.length);
        long sourceOffset = LONG_ARRAY_BASE + (long) sourceIndex * Long.BYTES;
        UnsafeApi.copyMemory(source, sourceOffset, null, address + offset, (long) longs * Long.BYTES);
    }

    /** Copies a range of an array into this region, to an offset that is a multiple of 4: each four bytes are written whole. */
    public void copyFrom(long offset, int[] source, int sourceIndex, int ints) {
        check(offset, (long) ints * Integer.BYTES);
        Objects.checkFromIndexSize(sourceIndex, ints, source.length);
        long sourceOffset = INT_ARRAY_BASE + (long) sourceIndex * Integer.BYTES;
        UnsafeApi.copyMemory(source, sourceOffset, null, address + offset, (long) ints * Integer.BYTES);
    }

    /** Copies a range of this region into an array. */
    public void copyTo(long offset, byte[] target, int targetOffset, int length) {
        check(offset, length);
        Objects.checkFromIndexSize(targetOffset, length, target.length);
        UnsafeApi.copyMemory(null, address + offset, target, ARRAY_BASE + targetOffset, length);
    }

    /** Copies a range of this region, whose offset is a multiple of 8, into an array: each eight bytes are read whole. */
    public void copyTo(long offset, long[] target, int targetIndex, int longs) {
        check(offset, (long) longs * Long.BYTES);
        Objects.checkFromIndexSize(targetIndex, longs, target.length);
        long targetOffset = LONG_ARRAY_BASE + (long) targetIndex * Long.BYTES;
        UnsafeApi.copyMemory(null, address + offset, target, targetOffset, (long) longs * Long.BYTES);
    }

    /** Copies a range of this region, whose offset is a multiple of 4, into an array: each four bytes are read whole. */
    public void copyTo(long offset, int[] target, int targetIndex, int ints) {
        check(offset, (long) ints * Integer.BYTES);
        Objects.checkFromIndexSize(targetIndex, ints, target.length);
        long targetOffset = INT_ARRAY_BASE + (long) targetIndex * Integer.BYTES;
        UnsafeApi.copyMemory(null, address + offset, target, targetOffset, (long) ints * Integer.BYTES);
    }

    /** Lets an Agrona buffer look at a range; it must not be used once this region is closed. */
    public void wrap(MutableDirectBuffer view, long offset, int length) {
        check(offset, length);
        view.wrap(address + offset, length);
    }

    /** Whether two ranges hold the same bytes, compared eight at a time. */
    public boolean sameBytes(long offset, MemoryRegion other, long otherOffset, long length) {
        check(offset, length);
        other.check(otherOffset, length);
        long a = address + offset;
        long b = other.address + otherOffset;
        long i = 0;
        for (; i <= length - Long.BYTES; i += Long.BYTES) {
            if (UnsafeApi.getLong(a + i) != UnsafeApi.getLong(b + i)) {
                return false;
            }
        }
        for (; i < length; i++) {
            if (UnsafeApi.getByte(a + i) != UnsafeApi.getByte(b + i)) {
                return false;
            }
        }
        return true;
    }

    /** Frees the memory where this region owns it. Safe to call twice. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        bytes = 0;
        if (mappedBytes > 0) {
            LibC.munmap(mappedAddress, mappedBytes);
            purpose.add(-mappedBytes);
        }
        if (fd >= 0) {
            LibC.close(fd);
        }
    }

    @Override
    public String toString() {
        return "memory region " + purpose + " of " + bytes + " bytes"
                + (keptReachable == null ? "" : " (a view of somebody else's)");
    }
}
