package io.orbitkv.nativeio;

import com.sun.jna.Native;

/**
 * The libc calls we make, by their C names; nothing else in the project declares a native method.
 *
 * <p>Direct mapping, primitives only: addresses and {@code size_t} are {@code long}, which is exact on LP64 Linux and
 * allocates nothing per call. Signatures follow the Linux man-pages, section 2. Calls that fail return -1 and leave
 * errno in {@link Native#getLastError()}, which must be read at once.
 */
final class LibC {
    static final int PROT_READ = 1;
    static final int PROT_WRITE = 2;
    static final int MAP_SHARED = 1;
    static final int MAP_PRIVATE = 2;
    static final int MAP_ANONYMOUS = 0x20;
    static final int MAP_NORESERVE = 0x4000;
    static final int MAP_POPULATE = 0x8000;
    static final int MAP_HUGETLB = 0x40000;
    static final int MADV_HUGEPAGE = 14;
    static final int MADV_DONTFORK = 10;
    static final int MADV_POPULATE_WRITE = 23;
    static final int MFD_CLOEXEC = 1;
    static final int MFD_ALLOW_SEALING = 2;
    static final int MFD_HUGETLB = 4;

    static final int O_RDONLY = 0;
    static final int O_RDWR = 2;
    static final int O_CREAT = 0x40;
    static final int O_EXCL = 0x80;
    static final int O_CLOEXEC = 0x80000;

    /** These three differ by machine: asm-generic/fcntl.h on x86-64, arch/arm64/include/uapi/asm/fcntl.h on aarch64. */
    private static final boolean AARCH64 = "aarch64".equals(System.getProperty("os.arch"));

    static final int O_DIRECT = AARCH64 ? 0x10000 : 0x4000;
    static final int O_DIRECTORY = AARCH64 ? 0x4000 : 0x10000;
    static final int O_NOFOLLOW = AARCH64 ? 0x8000 : 0x20000;

    static final int F_GETFL = 3;
    static final int F_SETFL = 4;
    static final int SEEK_END = 2;

    static final int FALLOC_FL_KEEP_SIZE = 1;
    static final int FALLOC_FL_PUNCH_HOLE = 2;

    static final int AT_FDCWD = -100;
    static final int AT_SYMLINK_NOFOLLOW = 0x100;
    static final int STATX_BASIC_STATS = 0x7ff;

    static final int EFD_CLOEXEC = 0x80000;
    static final int EFD_NONBLOCK = 0x800;

    static final int RLIMIT_NOFILE = 7;
    static final int RLIMIT_MEMLOCK = 8;

    static final int AF_UNIX = 1;
    static final int SOCK_STREAM = 1;
    static final int SOCK_CLOEXEC = 0x80000;
    static final int SOL_SOCKET = 1;
    static final int SO_PEERCRED = 17;
    static final int SO_RCVTIMEO = 20;
    static final int SO_SNDTIMEO = 21;
    static final int SCM_RIGHTS = 1;
    static final int MSG_DONTWAIT = 0x40;
    static final int MSG_NOSIGNAL = 0x4000;
    static final int MSG_CMSG_CLOEXEC = 0x40000000;
    static final int SHUT_RDWR = 2;

    static final int F_ADD_SEALS = 1033;
    static final int F_GET_SEALS = 1034;

    static final int LOCK_EX = 2;
    static final int LOCK_NB = 4;

    static final int EPERM = 1;
    static final int ENOENT = 2;
    static final int EINTR = 4;
    static final int EIO = 5;
    static final int EBADF = 9;
    static final int EAGAIN = 11;
    static final int ENOMEM = 12;
    static final int EACCES = 13;
    static final int EBUSY = 16;
    static final int EEXIST = 17;
    static final int ENOTDIR = 20;
    static final int EISDIR = 21;
    static final int EINVAL = 22;
    static final int ENFILE = 23;
    static final int EMFILE = 24;
    static final int EFBIG = 27;
    static final int ENOSPC = 28;
    static final int EROFS = 30;
    static final int ENOSYS = 38;
    static final int ELOOP = 40;
    static final int ENODATA = 61;
    static final int ETIME = 62;
    static final int EPIPE = 32;
    static final int EOPNOTSUPP = 95;
    static final int EADDRINUSE = 98;
    static final int ECONNRESET = 104;
    static final int ECONNREFUSED = 111;
    static final int ECANCELED = 125;
    static final int EDQUOT = 122;

    static {
        if (Native.POINTER_SIZE != Long.BYTES || Native.SIZE_T_SIZE != Long.BYTES) {
            throw new UnsupportedOperationException("native-io needs a 64-bit (LP64) platform");
        }
        Native.register(LibC.class, "c");
    }

    private LibC() {}

    /** mmap(2): the address, or -1 with errno. */
    static native long mmap(long address, long bytes, int protection, int flags, int fd, long fileOffset);

    /** munmap(2): 0, or -1 with errno. */
    static native int munmap(long address, long bytes);

    /** madvise(2): 0, or -1 with errno. */
    static native int madvise(long address, long bytes, int advice);

    /** mlock(2): 0, or -1 with errno. */
    static native int mlock(long address, long bytes);

    /** memfd_create(2): a descriptor, or -1 with errno. */
    static native int memfd_create(String name, int flags);

    /** ftruncate(2): 0, or -1 with errno. */
    static native int ftruncate(int fd, long bytes);

    /** fcntl(2) with an int argument: depends on the command, or -1 with errno. */
    static native int fcntl(int fd, int command, int argument);

    /** open(2): a descriptor, or -1 with errno. */
    static native int open(String path, int flags, int mode);

    /** close(2): 0, or -1 with errno. */
    static native int close(int fd);

    /** flock(2): 0, or -1 with errno (EAGAIN when somebody else holds it and LOCK_NB is set). */
    static native int flock(int fd, int operation);

    /** fallocate(2): 0, or -1 with errno. */
    static native int fallocate(int fd, int mode, long fileOffset, long bytes);

    /** lseek(2): the new position, or -1 with errno. */
    static native long lseek(int fd, long fileOffset, int whence);

    /** statx(2) into 256 bytes: 0, or -1 with errno. */
    static native int statx(int folderFd, String path, int flags, int mask, byte[] into);

    /** getrlimit(2) into 16 bytes, soft limit first: 0, or -1 with errno. */
    static native int getrlimit(int resource, byte[] into);

    /** pread(2): bytes read, 0 at end of file, or -1 with errno. */
    static native long pread(int fd, long address, long bytes, long fileOffset);

    /** pwrite(2): bytes written, or -1 with errno. */
    static native long pwrite(int fd, long address, long bytes, long fileOffset);

    /** fdatasync(2): 0, or -1 with errno. After EIO the file's pages are lost: never retry, fail the segment. */
    static native int fdatasync(int fd);

    /** fsync(2): 0, or -1 with errno. */
    static native int fsync(int fd);

    /** eventfd(2): a descriptor, or -1 with errno. */
    static native int eventfd(int initial, int flags);

    /** pipe2(2) into the descriptors of the reading and the writing end: 0, or -1 with errno. */
    static native int pipe2(int[] ends, int flags);

    /** eventfd_write(3): 0, or -1 with errno. */
    static native int eventfd_write(int fd, long value);

    /** read(2): bytes read, or -1 with errno. */
    static native long read(int fd, long address, long bytes);

    /** write(2): bytes written, or -1 with errno. */
    static native long write(int fd, long address, long bytes);

    /** socket(2): a descriptor, or -1 with errno. */
    static native int socket(int domain, int type, int protocol);

    /** bind(2) to a sockaddr at an address: 0, or -1 with errno. */
    static native int bind(int fd, long sockaddr, int bytes);

    /** connect(2) to a sockaddr at an address: 0, or -1 with errno. */
    static native int connect(int fd, long sockaddr, int bytes);

    /** listen(2): 0, or -1 with errno. */
    static native int listen(int fd, int backlog);

    /** accept4(2); the peer's address is not asked for: a descriptor, or -1 with errno. */
    static native int accept4(int fd, long sockaddr, long bytes, int flags);

    /** getsockopt(2): 0, or -1 with errno. */
    static native int getsockopt(int fd, int level, int name, byte[] value, int[] bytes);

    /** setsockopt(2): 0, or -1 with errno. */
    static native int setsockopt(int fd, int level, int name, byte[] value, int bytes);

    /** send(2): bytes sent, or -1 with errno. */
    static native long send(int fd, long address, long bytes, int flags);

    /** recv(2): bytes received, 0 at the end, or -1 with errno. */
    static native long recv(int fd, long address, long bytes, int flags);

    /** sendmsg(2) of a msghdr at an address: bytes sent, or -1 with errno. */
    static native long sendmsg(int fd, long msghdr, int flags);

    /** recvmsg(2) into a msghdr at an address: bytes received, 0 at the end, or -1 with errno. */
    static native long recvmsg(int fd, long msghdr, int flags);

    /** shutdown(2): 0, or -1 with errno. */
    static native int shutdown(int fd, int how);

    /** chmod(2): 0, or -1 with errno. */
    static native int chmod(String path, int mode);

    /** geteuid(2): never fails. */
    static native int geteuid();

    /** syscall(2) with up to six arguments: depends on the number, or -1 with errno. */
    static native long syscall(long number, long a, long b, long c, long d, long e, long f);
}
