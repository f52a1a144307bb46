package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * One run of a demo: starts the child, collects what it says, kills it between two frames, starts another one on the
 * same folder, and asks it for every block that the first had called written.
 */
final class Demo {
    private static final int KEY_BYTES = WrittenBlocks.KEY_BYTES;

    private static final int LOST_SHOWN_MAX = 10;

    private final DemoOptions options;
    private final List<Path> folders;
    private final Workload workload;
    private final int killAfter;
    private final Terminal terminal = Terminal.onStderr();
    private final byte[] key = new byte[KEY_BYTES];

    final Series series = new Series();
    final WrittenBlocks written = new WrittenBlocks();
    final Phase before;
    final Phase after;
    int askedBlocks;
    long lostWritten;
    long reusedSince;
    long wrongAfterKill;
    long restartNanos;
    long diskPeakBytes;
    long diskSamples;
    long elapsedNanos;
    private long killedNanos;
    private int lastRequest = -1;

    /**
     * Prepares a run.
     *
     * @param killAfter requests after which the child is killed, 1 to requests - 1
     */
    Demo(DemoOptions options, List<Path> folders, Workload workload, int killAfter) {
        this.options = options;
        this.folders = folders;
        this.workload = workload;
        this.killAfter = killAfter;
        before = new Phase((int) options.blockBytes);
        after = new Phase((int) options.blockBytes);
    }

    /** Runs it; the fields hold the outcome. */
    void run() {
        long began = System.nanoTime();
        try (FolderSampler sampler = new FolderSampler(folders)) {
            runUntilKilled();
            runAgain();
            sampler.close();
            diskPeakBytes = sampler.peakBytes();
            diskSamples = sampler.samples();
        } finally {
            terminal.clear();
        }
        elapsedNanos = System.nanoTime() - began;
    }

    private void runUntilKilled() {
        long began = System.nanoTime();
        try (ChildJvm child = ChildJvm.start(arguments(0, false))) {
            while (before.requests < killAfter) {
                if (frame(child, before) == Frames.DONE) {
                    throw new OrbitKvException(ErrorCode.BUG, "the child ended before it was to be killed");
                }
            }
            child.kill(); // it is some requests ahead by now, in the middle of one
            killedNanos = System.nanoTime();
            drain(child);
            child.await();
        }
        before.wallNanos = System.nanoTime() - began;
        series.markKill();
        note("killed with SIGKILL after " + before.requests + " requests; " + written.blocks()
                + " blocks were acknowledged as written; starting again");
    }

    /** What the child had said before it died counts: the pipe outlives it. Its last frame may be cut off. */
    private void drain(ChildJvm child) {
        try {
            while (true) {
                read(child.frames(), child.frames().readByte(), before);
            }
        } catch (EOFException e) {
            // the end of what it said
        } catch (IOException e) {
            throw child.died(e);
        }
    }

    private void runAgain() {
        long began = System.nanoTime();
        try (ChildJvm child = ChildJvm.start(arguments(lastRequest + 1, true))) {
            expect(child, Frames.OPENED, after);
            restartNanos = System.nanoTime() - killedNanos;
            askedBlocks = written.blocks(); // what the second process writes is its own matter
            ask(child);
            note("restarted: " + after.kind + ", " + after.blocksIndexed + " blocks indexed in "
                    + after.openNanos / 1_000_000 + " ms; of " + askedBlocks + " acknowledged blocks "
                    + (askedBlocks - reusedSince - lostWritten) + " found, " + reusedSince
                    + " reused since, " + lostWritten + " lost");
            int kind;
            do {
                kind = frame(child, after);
            } while (kind != Frames.DONE);
            int exitCode = child.await();
            if (exitCode != 0) {
                throw child.died(null);
            }
        }
        after.wallNanos = System.nanoTime() - began;
    }

    private List<String> arguments(int from, boolean check) {
        List<String> arguments = new ArrayList<>(List.of("demo-child", "--from=" + from));
        arguments.addAll(options.arguments(folders));
        if (check) {
            arguments.add("--check");
        }
        return arguments;
    }

    /** Asks for every acknowledged block; the questions go out on a thread of their own, since both pipes are small. */
    private void ask(ChildJvm child) {
        Thread questions = new Thread(() -> writeQuestions(child), "demo-questions");
        questions.setDaemon(true);
        questions.start();
        try {
            for (int block = 0; block < askedBlocks; ) {
                DataInputStream frames = child.frames();
                int kind = frames.readByte();
                if (kind != Frames.ANSWERS) {
                    throw unexpected(kind);
                }
                for (int left = frames.readInt(); left > 0; left--) {
                    judge(block++, frames.readByte(), frames.readLong());
                }
            }
            questions.join();
        } catch (IOException e) {
            throw child.died(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new OrbitKvException(ErrorCode.CHILD_PROCESS, "interrupted while asking the child process", e);
        }
    }

    private void writeQuestions(ChildJvm child) {
        try {
            DataOutputStream out = new DataOutputStream(new BufferedOutputStream(child.input(), 1 << 16));
            out.writeInt(askedBlocks);
            for (int block = 0; block < askedBlocks; block++) {
                out.write(written.keys(), block * KEY_BYTES, KEY_BYTES);
                out.writeInt(written.segment(block));
            }
            out.flush();
        } catch (IOException e) {
            // The child is gone; the reader of its answers finds out and says why.
        }
    }

    /** A written block may be gone only where its segment was put to another use since. */
    private void judge(int block, int state, long useSequenceNow) {
        switch (state) {
            case Frames.FOUND -> {}
            case Frames.WRONG -> wrongAfterKill++;
            default -> {
                if (useSequenceNow > written.useSequence(block)) {
                    reusedSince++;
                } else {
                    if (lostWritten++ < LOST_SHOWN_MAX) {
                        note("lost: key "
                                + HexFormat.of().formatHex(written.keys(), block * KEY_BYTES, (block + 1) * KEY_BYTES)
                                + ", acknowledged in segment " + written.segment(block) + " with use-sequence "
                                + written.useSequence(block) + ", which is at " + useSequenceNow);
                    }
                }
            }
        }
    }

    private void expect(ChildJvm child, int expected, Phase phase) {
        int kind = frame(child, phase);
        if (kind != expected) {
            throw unexpected(kind);
        }
    }

    private static OrbitKvException unexpected(int kind) {
        return new OrbitKvException(ErrorCode.BUG, "the child said something unexpected: a frame of kind " + kind);
    }

    private int frame(ChildJvm child, Phase phase) {
        try {
            int kind = child.frames().readByte();
            read(child.frames(), kind, phase);
            if (kind == Frames.REQUEST) {
                credit(child, phase);
            }
            return kind;
        } catch (IOException e) {
            throw child.died(e);
        }
    }

    private void credit(ChildJvm child, Phase phase) throws IOException {
        if (phase.requests % Frames.CREDIT_REQUESTS == 0) {
            try {
                child.input().write(1);
                child.input().flush();
            } catch (IOException e) {
                // It may just have ended after its last request: its remaining frames tell.
            }
        }
        if (terminal.isDue()) {
            terminal.show(String.format(
                    "%s the kill: request %d of %d, hit rate %.1f %% (host %d, nvme %d blocks), %s saved",
                    phase == before ? "before" : "after",
                    lastRequest + 1,
                    workload.requests(),
                    100 * phase.hitRate(),
                    phase.hostHits,
                    phase.nvmeHits,
                    Sizes.text(phase.savedBytes())));
        }
    }

    private void read(DataInputStream in, int kind, Phase phase) throws IOException {
        switch (kind) {
            case Frames.OPENED -> {
                phase.kind = in.readUTF();
                phase.openNanos = in.readLong();
                phase.firstQueryNanos = in.readLong();
                phase.blocksIndexed = in.readLong();
            }
            case Frames.REQUEST -> readRequest(in, phase);
            case Frames.WRITTEN -> {
                in.readFully(key);
                in.readLong(); // its position, which has passed
                int segment = in.readInt();
                written.put(key, 0, segment, in.readLong());
            }
            case Frames.GONE -> phase.gone++;
            case Frames.DONE -> {}
            case Frames.FAILED -> throw failure(in.readUTF(), in.readUTF());
            default -> throw unexpected(kind);
        }
    }

    private void readRequest(DataInputStream in, Phase phase) throws IOException {
        int request = in.readInt();
        int blocks = in.readInt();
        int host = in.readInt();
        int nvme = in.readInt();
        int wrong = in.readInt();
        int saved = in.readInt();
        int dropped = in.readInt();
        int missed = in.readInt();
        long queryNanos = in.readLong();
        long restoreNanos = in.readLong();
        long saveNanos = in.readLong();
        long nvmeBytes = in.readLong();
        long driveBytes = in.readLong(); // the frame is whole only now: nothing of it counted until here
        lastRequest = request;
        phase.requests++;
        phase.blocks += blocks;
        phase.hostHits += host;
        phase.nvmeHits += nvme;
        phase.wrong += wrong;
        phase.saved += saved;
        phase.dropped += dropped;
        phase.shortBlocks += missed;
        phase.restoreNanosSum += restoreNanos;
        phase.saveNanosSum += saveNanos;
        phase.nvmeHitBytes = nvmeBytes;
        phase.driveReadBytes = driveBytes;
        Phase.record(phase.queryNanos, queryNanos);
        if (host + nvme > 0) {
            Phase.record(phase.restoreNanos, restoreNanos);
        }
        if (saved > 0) {
            Phase.record(phase.saveNanos, saveNanos);
        }
        series.add(blocks, host, nvme, queryNanos, restoreNanos, saveNanos);
    }

    private static OrbitKvException failure(String code, String message) {
        String label = ErrorCode.valueOf(code).label() + ": ";
        return new OrbitKvException(
                ErrorCode.valueOf(code), message.startsWith(label) ? message.substring(label.length()) : message);
    }

    private void note(String text) {
        terminal.clear();
        System.err.println(text);
    }
}
