package io.orbitkv.nativeio;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The files that a ring's kernel side knows already (fixed files), which saves the kernel a look-up a transfer.
 *
 * <pre>
 * first     the lock file of each folder: the kernel keeps the lock until a killed process's transfers have ended
 * one more  the writing end of a pipe: its reader sees the end when the kernel has freed the ring
 * the rest  data files, each at a place that follows from its number; where two meet, the later one is not registered
 * </pre>
 *
 * <p>A registered file stays open in the kernel, so that one that is closed and unused is taken out at the owner's next turn.
 */
final class UringFiles {
    private static final Logger LOG = LoggerFactory.getLogger(UringFiles.class);

    static final int NONE = -1;

    private final Uring ring;
    private final RingFolders folder;
    private final int pipePlace;
    private final int firstDataPlace;
    private final DirectFile[] files;
    private int registered;
    private long closesSeen;

    /** Registers an empty table; a small limit on open files leaves room for the locks only. */
    UringFiles(Uring ring, RingFolders folder) {
        this.ring = ring;
        this.folder = folder;
        this.pipePlace = folder.count();
        this.firstDataPlace = pipePlace + 1;
        int places = Uring.FILES_MAX;
        int result = ring.registerFiles(places);
        if (result < 0) {
            places = folder.count();
            result = ring.registerFiles(places);
        }
        if (result < 0) {
            LOG.warn(
                    "{}: io_uring registers no files: {}. After a kill -9 the folder's lock may be free before the last "
                            + "transfers have ended",
                    folder,
                    Errno.text(-result));
            places = 0;
        }
        files = new DirectFile[places];
    }

    /** Puts the lock files into the table; called when the ring starts. */
    void keepLock() {
        for (int place = 0; place < folder.count(); place++) {
            keepLock(place, folder.lockFd(place));
        }
    }

    private void keepLock(int place, int lockFd) {
        if (files.length > place && lockFd >= 0) {
            int result = ring.setFile(place, lockFd);
            if (result < 0) {
                LOG.warn(
                        "{}: io_uring did not take the lock file: {}. After a kill -9 the lock may be free before the "
                                + "last transfers have ended",
                        folder,
                        Errno.text(-result));
            }
        }
    }

    /**
     * Puts one end of a pipe into the table, where the ring alone keeps it open.
     *
     * @return the descriptor of the other end, or {@link #NONE}
     */
    int keepPipe() {
        int[] ends = new int[2];
        if (files.length <= pipePlace || LibC.pipe2(ends, LibC.O_CLOEXEC) < 0) {
            return NONE;
        }
        int result = ring.setFile(pipePlace, ends[1]);
        LibC.close(ends[1]);
        if (result < 0) {
            LibC.close(ends[0]);
            return NONE;
        }
        return ends[0];
    }

    /** The place of a file, registered now if need be, or {@link #NONE}: use its descriptor then. */
    int placeFor(DirectFile file) {
        int dataPlaces = files.length - firstDataPlace;
        if (dataPlaces <= 0) {
            return NONE;
        }
        int place = firstDataPlace + folder.number(file) % dataPlaces;
        DirectFile now = files[place];
        if (now == file) {
            return place;
        }
        if (now != null || ring.setFile(place, file.fd()) < 0) {
            return NONE;
        }
        files[place] = file;
        registered++;
        return place;
    }

    /** Takes out what is gone, which no transfer uses any more; a read where nothing is. */
    void dropGone() {
        long closes = folder.descriptorsClosed();
        if (closes == closesSeen) {
            return;
        }
        closesSeen = closes;
        for (int place = firstDataPlace; place < files.length && registered > 0; place++) {
            if (files[place] != null && files[place].isGone()) {
                ring.setFile(place, -1);
                files[place] = null;
                registered--;
            }
        }
    }
}
