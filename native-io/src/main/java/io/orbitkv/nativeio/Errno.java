package io.orbitkv.nativeio;

import java.util.Map;

/** Names of the errno values that we meet, as errno(3) gives them. */
final class Errno {
    private static final Map<Integer, String> NAMES = Map.ofEntries(
            Map.entry(LibC.EPERM, "EPERM (operation not permitted)"),
            Map.entry(LibC.ENOENT, "ENOENT (no such file or folder)"),
            Map.entry(LibC.EINTR, "EINTR (interrupted)"),
            Map.entry(LibC.EIO, "EIO (input/output error)"),
            Map.entry(LibC.EBADF, "EBADF (the file is closed)"),
            Map.entry(LibC.EAGAIN, "EAGAIN (try again)"),
            Map.entry(LibC.ENOMEM, "ENOMEM (no memory, or the limit on locked memory)"),
            Map.entry(LibC.EACCES, "EACCES (permission denied)"),
            Map.entry(LibC.EBUSY, "EBUSY (busy)"),
            Map.entry(LibC.EEXIST, "EEXIST (exists already)"),
            Map.entry(LibC.ENOTDIR, "ENOTDIR (not a folder)"),
            Map.entry(LibC.EISDIR, "EISDIR (is a folder)"),
            Map.entry(LibC.EINVAL, "EINVAL (invalid argument)"),
            Map.entry(LibC.EMFILE, "EMFILE (too many open files)"),
            Map.entry(LibC.EFBIG, "EFBIG (past the end of the file)"),
            Map.entry(LibC.ENOSPC, "ENOSPC (no space left on the drive)"),
            Map.entry(LibC.EROFS, "EROFS (read-only file system)"),
            Map.entry(LibC.ENOSYS, "ENOSYS (the kernel lacks the call, or a container forbids it)"),
            Map.entry(LibC.ELOOP, "ELOOP (is a symbolic link)"),
            Map.entry(LibC.ENODATA, "ENODATA (past the end of the file)"),
            Map.entry(LibC.ETIME, "ETIME (timer expired)"),
            Map.entry(LibC.EOPNOTSUPP, "EOPNOTSUPP (not supported)"),
            Map.entry(LibC.EDQUOT, "EDQUOT (disk quota exceeded)"),
            Map.entry(LibC.ECANCELED, "ECANCELED (cancelled)"));

    private Errno() {}

    static String text(int errno) {
        return NAMES.getOrDefault(errno, "errno " + errno);
    }
}
