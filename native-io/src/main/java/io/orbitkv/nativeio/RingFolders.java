package io.orbitkv.nativeio;

import java.util.List;
import java.util.stream.Collectors;

/** The folders whose files one ring serves: mostly one, several where a store is spread over drives. */
final class RingFolders {
    private final HostFolder[] folders;

    RingFolders(List<HostFolder> folders) {
        this.folders = folders.toArray(new HostFolder[0]);
    }

    static RingFolders of(HostFolder folder) {
        return new RingFolders(List.of(folder));
    }

    int count() {
        return folders.length;
    }

    /** The descriptor that holds the lock of a folder, -1 when it is not locked. */
    int lockFd(int folder) {
        return folders[folder].lockFd();
    }

    /** The file as one of these folders' own; anything else is a bug of the caller. */
    DirectFile own(StorageFile file) {
        if (file instanceof DirectFile direct && indexOf(direct.folder()) >= 0) {
            return direct;
        }
        throw new OrbitKvException(
                ErrorCode.BAD_ARGUMENT, "a ring of " + this + " cannot serve " + file + ": use files of its folders");
    }

    /** A number that no other open file of these folders has, until numbers start again. */
    int number(DirectFile file) {
        return (file.number() * folders.length + indexOf(file.folder())) & Integer.MAX_VALUE;
    }

    private int indexOf(HostFolder folder) {
        for (int i = 0; i < folders.length; i++) {
            if (folders[i] == folder) {
                return i;
            }
        }
        return -1;
    }

    /** How many descriptors of these folders were closed so far. */
    long descriptorsClosed() {
        long closed = 0;
        for (HostFolder folder : folders) {
            closed += folder.descriptorsClosed();
        }
        return closed;
    }

    void ringOpened(UringRing ring) {
        for (HostFolder folder : folders) {
            folder.ringOpened(ring);
        }
    }

    void ringClosed(UringRing ring) {
        for (HostFolder folder : folders) {
            folder.ringClosed(ring);
        }
    }

    @Override
    public String toString() {
        return List.of(folders).stream().map(HostFolder::toString).collect(Collectors.joining(", "));
    }
}
