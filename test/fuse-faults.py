#!/usr/bin/python3
"""A pass-through file system that fails on demand: fuse-faults.py SOURCE MOUNT CONTROL

While CONTROL/eio exists, reads, writes and fsyncs of segment files answer EIO, while CONTROL/enospc exists writes answer ENOSPC;
stopped by SIGSTOP it hangs. Needs Debian's python3-fusepy.
"""
import errno
import os
import sys

from fusepy import FUSE, FuseOSError, Operations

DIRECT = getattr(os, "O_DIRECT", 0)  # our own buffers are not aligned


class PassThrough(Operations):
    def __init__(self, source, control):
        self.source = source
        self.control = control

    def real(self, path):
        return self.source + path

    def fail(self, path, *names):
        for name in names:
            if path.endswith(".seg") and os.path.exists(os.path.join(self.control, name)):
                raise FuseOSError(getattr(errno, name.upper()))

    def getattr(self, path, fh=None):
        stat = os.lstat(self.real(path))
        names = ("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks", "st_atime", "st_mtime", "st_ctime")
        return {name: getattr(stat, name) for name in names}

    def readdir(self, path, fh):
        return [".", ".."] + os.listdir(self.real(path))

    def statfs(self, path):
        stat = os.statvfs(self.real(path))
        return {name: getattr(stat, name) for name in ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_frsize", "f_files", "f_ffree")}

    def open(self, path, flags):
        return os.open(self.real(path), flags & ~DIRECT)

    def create(self, path, mode, fi=None):
        return os.open(self.real(path), os.O_RDWR | os.O_CREAT, mode)

    def read(self, path, size, offset, fh):
        self.fail(path, "eio")
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        self.fail(path, "eio", "enospc")
        return os.pwrite(fh, data, offset)

    def fsync(self, path, datasync, fh):
        self.fail(path, "eio")
        return os.fdatasync(fh)

    def truncate(self, path, length, fh=None):
        os.truncate(self.real(path), length)

    def release(self, path, fh):
        os.close(fh)

    def mkdir(self, path, mode):
        os.mkdir(self.real(path), mode)

    def rmdir(self, path):
        os.rmdir(self.real(path))

    def unlink(self, path):
        os.unlink(self.real(path))

    def rename(self, old, new):
        os.rename(self.real(old), self.real(new))

    def chmod(self, path, mode):
        os.chmod(self.real(path), mode)

    def utimens(self, path, times=None):
        os.utime(self.real(path), times)


if __name__ == "__main__":
    FUSE(PassThrough(sys.argv[1], sys.argv[3]), sys.argv[2], foreground=True, big_writes=True, max_write=131072)
