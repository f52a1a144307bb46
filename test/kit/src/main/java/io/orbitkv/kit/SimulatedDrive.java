package io.orbitkv.kit;

import io.orbitkv.nativeio.MemoryRegion;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/**
 * The drive behind {@link SimulatedFolder}s: what outlives a process, and a machine that loses power.
 *
 * <p>Every choice comes from one generator, so that a single-threaded run is a function of its seed. All state of the
 * drive, its files and rings is guarded by the drive's monitor.
 */
final class SimulatedDrive {
    /** Pages kept for reuse, 16 MiB: enough that flushes of a crash test feed its writes. */
    static final int SPARE_PAGES_MAX = 4096;

    /** Size of the drive unless the test says otherwise. */
    static final long CAPACITY_BYTES = 1L << 40;

    private static final long NEVER = Long.MAX_VALUE;
    private static final int FIRST_PID = 1000;

    final Gen gen;
    final Path realFolder;
    final SimulatedClock clock;
    final Faults faults;
    final History history = new History();
    final Names names = new Names();
    final CrashWindows probe = new CrashWindows(this);
    final ArrayDeque<byte[]> spare = new ArrayDeque<>();
    final byte[] scratch = new byte[MemoryRegion.PAGE_BYTES];
    long capacityBytes = CAPACITY_BYTES;
    final Map<String, SimulatedFolder> lockHolders = new HashMap<>();

    /** Folders beside the first one, by their real folders. */
    private final Map<Path, String> tops = new LinkedHashMap<>();

    private final List<FileContent> contents = new ArrayList<>();
    private final List<SimulatedFolder> processes = new ArrayList<>();
    private final long seed;
    private int boots;
    private int processesMade;
    private int filesMade;
    private long operations;
    private long crashAtOperation = NEVER;
    private boolean crashed;
    private boolean notesHarms;

    SimulatedDrive(long seed, Path realFolder, SimulatedClock clock) {
        this.seed = seed;
        this.gen = new Gen(seed);
        this.faults = new Faults(~seed);
        this.realFolder = realFolder;
        this.clock = clock;
    }

    SimulatedFolder newProcess() {
        contents.forEach(FileContent::forgetFailedFlush);
        if (lockHolders.isEmpty()) {
            probe.forget();
        }
        return new SimulatedFolder(this);
    }

    /** A process has come: its pid. */
    int newPid() {
        return FIRST_PID + processesMade++;
    }

    /** A process has opened a folder. */
    void join(SimulatedFolder process) {
        processes.add(process);
    }

    /** The name of the folder that a real folder stands for; made, durably, when it is asked for first. */
    String topOf(Path otherRealFolder) {
        return tops.computeIfAbsent(otherRealFolder, made -> {
            String top = "beside-" + (tops.size() + 1);
            names.makeFolder(top);
            names.sync("");
            return top;
        });
    }

    Collection<String> tops() {
        return tops.values();
    }

    String bootId() {
        long high = Gen.mix(seed + 2L * boots);
        return new UUID(high, Gen.mix(high + 1)).toString();
    }

    long operations() {
        return operations;
    }

    void crashAfter(long count) {
        if (count < 1) {
            throw new IllegalArgumentException("the crash is at an operation to come, got " + count);
        }
        crashAtOperation = operations + count;
    }

    boolean isCrashed() {
        return crashed;
    }

    /** Counts an operation; true when it is the one that the machine dies in. */
    boolean countOperation() {
        operations++;
        return operations == crashAtOperation;
    }

    /** Counts an operation that leaves nothing half done. */
    void step() {
        if (countOperation()) {
            throw crash();
        }
    }

    SimulatedCrash crash() {
        crashed = true;
        probe.crash();
        record(History.Operation.CRASH, 0, 0, 0, 0, operations);
        return crashError();
    }

    SimulatedCrash crashError() {
        return new SimulatedCrash("the simulated machine died at operation " + operations + " of seed " + seed);
    }

    void record(History.Operation operation, int file, long offset, int bytes, int checksum, long result) {
        history.add(operation, file, offset, bytes, checksum, result, clock.nanoTime());
    }

    FileContent newContent(long bytes) {
        FileContent content = new FileContent(++filesMade, bytes, spare, faults);
        content.noteHarms(notesHarms);
        contents.add(content);
        return content;
    }

    /** A bit of some page that was written once flips, if the drive is of that kind. */
    void rot() {
        if (!faults.strikes(Fault.ROT_AT_REST)) {
            return;
        }
        Gen choice = faults.gen(Fault.ROT_AT_REST);
        FileContent content = contents.get(choice.below(contents.size()));
        content.rot(choice);
    }

    void noteHarms(boolean notes) {
        notesHarms = notes;
        contents.forEach(content -> content.noteHarms(notes));
    }

    long freeBytes() {
        Set<FileContent> linked = names.linked();
        long used = 0;
        for (FileContent content : contents) {
            used += content.handles > 0 || linked.contains(content) ? content.allocatedBytes() : 0;
        }
        return Math.max(0, capacityBytes - used);
    }

    /** All machines die; what was not flushed or synced survives by chance. */
    void losePower() {
        record(History.Operation.POWER_LOSS, 0, 0, 0, 0, operations);
        boots += faults.isBootIdKept() ? 0 : 1;
        PowerLoss loss = PowerLoss.draw(gen);
        for (FileContent content : contents) {
            content.losePower(loss, gen);
        }
        names.losePower(gen);
        for (SimulatedFolder process : processes) {
            process.die();
        }
        restart();
    }

    /** One process dies; what it had completed stays. */
    void kill(SimulatedFolder process) {
        record(History.Operation.KILL, process.pid(), 0, 0, 0, operations);
        for (SimulatedFolder folder : processes) {
            if (folder.isOfMachine(process)) {
                for (FileContent content : contents) {
                    content.kill(folder, gen);
                }
                folder.die();
            }
        }
        restart();
    }

    private void restart() {
        crashed = false;
        crashAtOperation = NEVER;
        probe.forget();
        lockHolders.values().removeIf(SimulatedFolder::isDead);
        processes.removeIf(SimulatedFolder::isDead);
        forgetUnlinked();
    }

    /** Names that an unlink has not durably taken away keep their content, for a power loss brings them back. */
    void forgetUnlinked() {
        Set<FileContent> reachable = names.linkedNowOrAfterPowerLoss();
        contents.removeIf(content -> content.handles == 0 && !reachable.contains(content));
    }
}
