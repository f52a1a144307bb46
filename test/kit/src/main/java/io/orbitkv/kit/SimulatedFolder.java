package io.orbitkv.kit;

import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.nativeio.WindowProbe;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * A data folder on a simulated drive, as one process sees it. The drive lives in memory and behaves worst where the
 * contract allows it: transfers end out of order, and a power loss drops, tears and reorders what was not flushed.
 *
 * <pre>
 * SimulatedFolder folder = new SimulatedFolder(seed, realFolder);
 * folder.crashAfter(gen.between(1, 2_000));
 * try {
 *     workOn(folder);                      // ends with SimulatedCrash
 * } catch (SimulatedCrash expected) {
 *     folder.powerLoss();                  // or kill()
 * }
 * SimulatedFolder after = folder.reopen(); // the next process, on what has survived
 * </pre>
 *
 * <p>The catalog does its own file access below {@link #path()}: sub-folders are made there as well, and what lies
 * there is listed, counted (by file length) and removed with the rest, but knows no crash: close the catalog before
 * reopening.
 *
 * <p>Safe from any thread; a run is a function of its seed only if one thread does everything. Rings never sleep: an
 * agent on a thread of its own spins through simulated time, so step agents with an invoker instead.
 */
public final class SimulatedFolder implements DataFolder {
    private final SimulatedDrive drive;
    private final RealNames real;
    private final Path realFolder;
    private final int pid;

    /** The folder on the drive that stands for this one; empty for the drive's own top, which the first folder is. */
    private final String top;

    private final List<SimulatedFile> openFiles = new ArrayList<>();
    private boolean dead;
    private boolean closed;

    /**
     * An empty drive with a clock of its own.
     *
     * @param seed decides everything that the drive may choose
     * @param realFolder an existing folder for the catalog
     */
    public SimulatedFolder(long seed, Path realFolder) {
        this(seed, realFolder, new SimulatedClock());
    }

    /** An empty drive on a given clock; see {@link #SimulatedFolder(long, Path)}. */
    public SimulatedFolder(long seed, Path realFolder, SimulatedClock clock) {
        this(new SimulatedDrive(seed, realFolder, clock));
    }

    SimulatedFolder(SimulatedDrive drive) {
        this(drive, drive.realFolder, "", drive.newPid());
    }

    private SimulatedFolder(SimulatedDrive drive, Path realFolder, String top, int pid) {
        this.drive = drive;
        this.real = new RealNames(realFolder);
        this.realFolder = realFolder;
        this.top = top;
        this.pid = pid;
        drive.join(this);
    }

    /**
     * Another folder of the same machine, opened by the same process: they share the drive, its faults and its crashes, and
     * die together. Folders that are named by the same real folder hold the same files.
     *
     * @param otherRealFolder an existing folder for its catalog
     * @return the folder
     */
    public SimulatedFolder beside(Path otherRealFolder) {
        synchronized (drive) {
            requireAlive();
            return new SimulatedFolder(drive, otherRealFolder, drive.topOf(otherRealFolder), pid);
        }
    }

    /** Somebody removes everything in the folder, for good, while no store has it open. */
    public void erase() {
        synchronized (drive) {
            requireAlive();
            drive.names.erase(top, drive.tops());
            drive.forgetUnlinked();
            real.erase();
        }
    }

    /** The name of something in this folder as the drive knows it. */
    private String at(String name) {
        return top.isEmpty() || name.isEmpty() ? top + name : top + "/" + name;
    }

    boolean isOfMachine(SimulatedFolder other) {
        return drive == other.drive && pid == other.pid;
    }

    // ---- the machine ----

    /** The clock that the drive's latencies move. */
    public SimulatedClock clock() {
        return drive.clock;
    }

    /** What goes wrong on the drive. */
    public Faults faults() {
        return drive.faults;
    }

    /** What the drive was asked and answered since it was made, over all its processes. */
    public History history() {
        return drive.history;
    }

    /** Sets the size of the drive, which is 1 TiB at first. */
    public void capacityBytes(long bytes) {
        synchronized (drive) {
            drive.capacityBytes = bytes;
        }
    }

    /** Operations of the drive so far: everything it was asked, and every completion of a ring. */
    public long operations() {
        synchronized (drive) {
            return drive.operations();
        }
    }

    /**
     * Lets the machine die in an operation to come: it and all after it throw {@link SimulatedCrash}, until
     * {@link #powerLoss()} or {@link #kill()} says what kind of death it was.
     *
     * @param operations 1 is the very next one
     */
    public void crashAfter(long operations) {
        synchronized (drive) {
            drive.crashAfter(operations);
        }
    }

    /** Whether the crash point was reached and nobody has said yet what kind of death it was. */
    public boolean isCrashed() {
        synchronized (drive) {
            return drive.isCrashed();
        }
    }

    /**
     * The machine loses power: writes that no flush covers, and changes of names that no sync covers, are lost, applied
     * or torn by chance; the boot id changes; every folder, file and ring of the drive is dead.
     */
    public void powerLoss() {
        synchronized (drive) {
            drive.losePower();
        }
    }

    /**
     * This process dies and the machine lives on: what was completed stays, of each write in flight nothing, all or
     * some sectors are there; the boot id stays, the lock is free, this folder with its files and rings is dead.
     */
    public void kill() {
        synchronized (drive) {
            drive.kill(this);
        }
    }

    /** Another process opens the folder; that the lock is held while this one lives is for {@link #lock} to find. */
    public SimulatedFolder reopen() {
        synchronized (drive) {
            return drive.newProcess();
        }
    }

    /**
     * A probe to hand to the store: entering and leaving a window are operations in which the machine may die, which
     * also keeps the catalog, whose file is real, from committing after the crash.
     */
    public WindowProbe probe() {
        return drive.probe;
    }

    /** The windows that were open when the machine died last; while it lives, those that are open now. */
    public Set<CrashWindow> crashedIn() {
        synchronized (drive) {
            return drive.isCrashed() ? drive.probe.openAtCrash() : drive.probe.open();
        }
    }

    /** How often each window was entered since the drive was made. */
    public Map<CrashWindow, Long> windowsEntered() {
        synchronized (drive) {
            return drive.probe.entered();
        }
    }

    /**
     * Lets {@link #harms} tell of pages that were written well since, too: a recovery may write again what it misread.
     *
     * @param notes whether to begin, with what is harmed now, if that has not begun; or to end
     */
    public void noteHarms(boolean notes) {
        synchronized (drive) {
            drive.noteHarms(notes);
        }
    }

    /** Pages of a file that the drive has harmed and nobody has written well since; none where there is no such file. */
    public List<Harm> harms(String name) {
        synchronized (drive) {
            FileContent content = drive.names.file(at(name));
            return content == null ? List.of() : content.harms();
        }
    }

    int pid() {
        return pid;
    }

    boolean isDead() {
        return dead;
    }

    void die() {
        dead = true;
        for (SimulatedFile file : openFiles) {
            file.content().handles--;
        }
        openFiles.clear();
    }

    /** Whether this process can do nothing any more: close calls of an unwinding test pass silently. */
    boolean isGone() {
        return dead || drive.isCrashed();
    }

    void requireAlive() {
        if (isGone()) {
            throw drive.crashError();
        }
        if (closed) {
            throw new OrbitKvException(ErrorCode.CLOSED, "the simulated folder " + path() + " is closed");
        }
    }

    private void begin(History.Operation operation, String name, long bytes) {
        requireAlive();
        drive.step();
        int checksum = drive.history.checksum(at(name));
        drive.record(operation, 0, bytes, 0, checksum, 0);
    }

    // ---- the folder ----

    @Override
    public String path() {
        return realFolder.toString();
    }

    @Override
    public String bootId() {
        synchronized (drive) {
            return drive.bootId();
        }
    }

    /** The lock file is one page of zeros when it is new. A holder is always alive here, so there is no waiting. */
    @Override
    public void lock(String name, long waitNanos) {
        synchronized (drive) {
            begin(History.Operation.LOCK, name, 0);
            if (drive.lockHolders.get(top) == this) {
                throw new OrbitKvException(
                        ErrorCode.BUG, "this process already took the lock of " + path() + "; lock a folder once");
            }
            if (drive.lockHolders.containsKey(top)) {
                throw new OrbitKvException(
                        ErrorCode.FOLDER_IN_USE,
                        "the folder " + path() + " is held by process " + drive.lockHolders.get(top).pid
                                + "; stop that process or choose another folder");
            }
            drive.lockHolders.put(top, this);
            if (!drive.names.exists(at(name))) {
                drive.names.create(at(name), drive.newContent(MemoryRegion.PAGE_BYTES));
            }
        }
    }

    @Override
    public void makeFolder(String name) {
        synchronized (drive) {
            begin(History.Operation.MAKE_FOLDER, name, 0);
            requireParent(name);
            if (!drive.names.exists(at(name))) {
                drive.names.makeFolder(at(name));
            } else if (!drive.names.isFolder(at(name))) {
                throw new OrbitKvException(ErrorCode.FOLDER_UNUSABLE, "not a folder but a file: " + name);
            }
            real.makeFolder(name);
        }
    }

    @Override
    public List<String> list(String name) {
        synchronized (drive) {
            requireAlive();
            TreeSet<String> all = new TreeSet<>(drive.names.list(at(name)));
            all.addAll(real.list(name));
            if (top.isEmpty() && name.isEmpty()) {
                all.removeAll(drive.tops());
            }
            return List.copyOf(all);
        }
    }

    @Override
    public boolean exists(String name) {
        synchronized (drive) {
            requireAlive();
            return drive.names.exists(at(name)) || real.exists(name);
        }
    }

    @Override
    public StorageFile create(String name, long bytes) {
        synchronized (drive) {
            begin(History.Operation.CREATE, name, bytes);
            if (bytes <= 0 || bytes % MemoryRegion.PAGE_BYTES != 0) {
                throw new OrbitKvException(
                        ErrorCode.MISALIGNED, "length of " + name + " is not a multiple of the page: " + bytes);
            }
            requireParent(name);
            if (exists(name)) {
                throw new OrbitKvException(
                        ErrorCode.FOLDER_UNUSABLE,
                        "cannot create " + name + ": it exists; remove it or open it instead");
            }
            if (drive.freeBytes() < bytes || drive.faults.strikes(Fault.NO_SPACE)) {
                throw new OrbitKvException(
                        ErrorCode.NO_SPACE,
                        "no space for " + bytes + " bytes of " + name + "; free some or lower the cap");
            }
            FileContent content = drive.newContent(bytes);
            drive.names.create(at(name), content);
            return opened(name, content, true);
        }
    }

    @Override
    public void extend(String name, long bytes) {
        synchronized (drive) {
            begin(History.Operation.EXTEND, name, bytes);
            requireParent(name);
            FileContent content = drive.names.file(at(name));
            if (content == null) {
                content = drive.newContent(0);
                drive.names.create(at(name), content);
            }
            content.extend(bytes);
        }
    }

    @Override
    public StorageFile open(String name, boolean writable) {
        synchronized (drive) {
            begin(History.Operation.OPEN, name, 0);
            FileContent content = drive.names.file(at(name));
            if (content == null) {
                throw new OrbitKvException(ErrorCode.FOLDER_UNUSABLE, "cannot open " + name + ": no such file");
            }
            return opened(name, content, writable);
        }
    }

    private SimulatedFile opened(String name, FileContent content, boolean writable) {
        SimulatedFile file = new SimulatedFile(drive, this, name, content, writable);
        content.handles++;
        openFiles.add(file);
        return file;
    }

    void closed(SimulatedFile file) {
        openFiles.remove(file);
        file.content().handles--;
    }

    @Override
    public void rename(String from, String to) {
        synchronized (drive) {
            begin(History.Operation.RENAME, from + " " + to, 0);
            requireParent(to);
            if (drive.names.file(at(from)) != null) {
                drive.names.rename(at(from), at(to));
            } else if (!real.rename(from, to)) {
                throw new OrbitKvException(
                        ErrorCode.FOLDER_UNUSABLE, "cannot rename " + from + " to " + to + ": no such file");
            }
        }
    }

    @Override
    public void unlink(String name) {
        synchronized (drive) {
            begin(History.Operation.UNLINK, name, 0);
            if (drive.names.file(at(name)) != null) {
                drive.names.unlink(at(name));
            } else {
                real.unlink(name);
            }
        }
    }

    @Override
    public void syncFolder(String name) {
        synchronized (drive) {
            begin(History.Operation.SYNC_FOLDER, name, 0);
            drive.names.sync(at(name));
            drive.forgetUnlinked();
        }
    }

    @Override
    public long allocatedBytes(String name) {
        synchronized (drive) {
            requireAlive();
            long bytes = drive.names.bytes(at(name)) + real.bytes(name);
            if (top.isEmpty() && name.isEmpty()) {
                for (String other : drive.tops()) {
                    bytes -= drive.names.bytes(other);
                }
            }
            return bytes;
        }
    }

    @Override
    public long freeBytes() {
        synchronized (drive) {
            requireAlive();
            return drive.freeBytes();
        }
    }

    @Override
    public IoRing newRing(int depth, List<DataFolder> beside) {
        synchronized (drive) {
            requireAlive();
            return new SimulatedRing(drive, this, depth);
        }
    }

    @Override
    public void close() {
        synchronized (drive) {
            if (closed || isGone()) {
                return;
            }
            closed = true;
            while (!openFiles.isEmpty()) {
                openFiles.get(openFiles.size() - 1).close();
            }
            if (drive.lockHolders.get(top) == this) {
                drive.lockHolders.remove(top);
            }
        }
    }

    private void requireParent(String name) {
        if (!drive.names.isFolder(Names.folderOf(at(name)))) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE,
                    "cannot make " + name + ": its folder is missing; call makeFolder first");
        }
    }
}
