package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;

/**
 * One run of a demo or a replay: starts the child that owns the store, collects what it says, ends or kills it between two
 * frames, starts another one on the same folders, and asks it for every block that the first had called written.
 *
 * <p>After a kill a child of its own answers: it restores every block, which changes what the store thinks is used, and is
 * killed in turn; the child that goes on finds the store as the first kill left it.
 */
final class Replay {
    /** How the store ends on the way. */
    enum Restart {
        /** It does not. */
        NONE,
        /** It is closed. */
        CLEAN,
        /** Its process is killed with SIGKILL. */
        KILL
    }

    private static final int KEY_BYTES = WrittenBlocks.KEY_BYTES;
    private static final int LOST_SHOWN_MAX = 10;

    private final ChildOptions options;
    private final Workload workload;
    private final Terminal terminal = Terminal.onStderr();
    private final BitSet finished = new BitSet();
    private final byte[] key = new byte[KEY_BYTES];

    final Restart restart;
    final int restartAfter;
    final Series series = new Series();
    final WrittenBlocks written = new WrittenBlocks();

    /** What happened before the restart: all of it where there is none. */
    final Phase before;

    /** What happened after the restart. */
    final Phase after;

    /** The opening that the restart is judged by, the first one after it. */
    final Phase restarted;

    int askedBlocks;
    long lostWritten;
    long reusedSince;
    long damagedAtRestart;
    long wrongAtRestart;
    long restartNanos;
    long unreachableBytes = -1;
    long diskPeakBytes;
    long diskSamples;
    long elapsedNanos;
    private long endedNanos;

    /**
     * Prepares a run.
     *
     * @param restart how the store ends on the way
     * @param restartAfter requests after which it does, 1 to requests - 1
     */
    Replay(ChildOptions options, Workload workload, Restart restart, int restartAfter) {
        this.options = options;
        this.workload = workload;
        this.restart = restart;
        this.restartAfter = restartAfter;
        before = new Phase(options.blockBytes);
        after = new Phase(options.blockBytes);
        restarted = restart == Restart.CLEAN ? after : new Phase(options.blockBytes);
    }

    /** Runs it; the fields hold the outcome. */
    void run() {
        long began = System.nanoTime();
        try (FolderSampler sampler = new FolderSampler(options.data)) {
            switch (restart) {
                case NONE -> life(before, workload.requests(), ReplayChild.Check.NONE);
                case CLEAN -> runThroughStop();
                case KILL -> runThroughKill();
            }
            sampler.close();
            diskPeakBytes = sampler.peakBytes();
            diskSamples = sampler.samples();
        } finally {
            terminal.clear();
        }
        elapsedNanos = System.nanoTime() - began;
    }

    private void runThroughStop() {
        life(before, restartAfter, ReplayChild.Check.NONE);
        endedNanos = System.nanoTime();
        series.markRestart();
        note("stopped cleanly after " + before.requests + " requests; starting again");
        life(after, workload.requests(), ReplayChild.Check.PLACES);
    }

    private void runThroughKill() {
        runUntilKilled();
        check();
        life(after, workload.requests(), ReplayChild.Check.NONE);
    }

    private void runUntilKilled() {
        long began = System.nanoTime();
        try (ChildJvm child = ChildJvm.start(arguments(workload.requests(), ReplayChild.Check.NONE))) {
            while (before.requests < restartAfter) {
                if (frame(child, before) == Frames.DONE) {
                    throw new OrbitKvException(ErrorCode.BUG, "the child ended before it was to be killed");
                }
            }
            child.kill(); // it is some requests ahead by now, in the middle of one
            endedNanos = System.nanoTime();
            drain(child);
            child.await();
        }
        before.wallNanos = System.nanoTime() - began;
        series.markRestart();
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

    /** Has every acknowledged block restored by a child that is killed afterwards. */
    private void check() {
        try (ChildJvm child = ChildJvm.start(arguments(workload.requests(), ReplayChild.Check.BYTES))) {
            expect(child, Frames.OPENED, restarted);
            restartNanos = System.nanoTime() - endedNanos;
            ask(child);
            child.kill();
            child.await();
        }
        noteAnswers();
    }

    /** Runs a child from the first request that is not finished to a stop. */
    private void life(Phase phase, int until, ReplayChild.Check check) {
        long began = System.nanoTime();
        try (ChildJvm child = ChildJvm.start(arguments(until, check))) {
            expect(child, Frames.OPENED, phase);
            if (check != ReplayChild.Check.NONE) {
                restartNanos = System.nanoTime() - endedNanos;
                ask(child);
                noteAnswers();
            }
            int kind;
            do {
                kind = frame(child, phase);
            } while (kind != Frames.DONE);
            int exitCode = child.await();
            if (exitCode != 0) {
                throw child.died(null);
            }
        }
        phase.wallNanos = System.nanoTime() - began;
    }

    private List<String> arguments(int until, ReplayChild.Check check) {
        int from = finished.length();
        List<String> arguments = new ArrayList<>(List.of("replay-child"));
        arguments.addAll(options.arguments());
        arguments.addAll(List.of("--from=" + from, "--until=" + until, "--check=" + check));
        if (finished.cardinality() < from) { // workers had begun these and were killed before they had ended them
            BitSet open = (BitSet) finished.clone();
            open.flip(0, from);
            arguments.add("--again=" + open.stream().mapToObj(Integer::toString).collect(Collectors.joining(",")));
        }
        return arguments;
    }

    /** Asks for every acknowledged block; the questions go out on a thread of their own, since both pipes are small. */
    private void ask(ChildJvm child) {
        askedBlocks = written.blocks();
        Thread questions = new Thread(() -> writeQuestions(child), "replay-questions");
        questions.setDaemon(true);
        questions.start();
        try {
            for (int block = 0; block < askedBlocks; ) {
                DataInputStream frames = child.frames();
                int kind = frames.readByte();
                if (kind == Frames.FAILED) {
                    read(frames, kind, restarted);
                }
                if (kind != Frames.ANSWERS) {
                    throw unexpected(kind);
                }
                for (int left = frames.readInt(); left > 0; left--) {
                    judge(block++, frames.readByte(), frames.readLong());
                }
                if (terminal.isDue()) {
                    terminal.show("asked for " + block + " of " + askedBlocks + " acknowledged blocks");
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

    /** A written block may be gone only where its segment was put to another use since, or its bytes were damaged. */
    private void judge(int block, int state, long useSequenceNow) {
        switch (state) {
            case Frames.FOUND -> {}
            case Frames.WRONG -> wrongAtRestart++;
            case Frames.DAMAGED_BLOCK -> damagedAtRestart++;
            default -> {
                if (useSequenceNow > written.useSequence(block)) {
                    reusedSince++;
                } else if (written.isDamaged(block)) {
                    damagedAtRestart++;
                } else if (lostWritten++ < LOST_SHOWN_MAX) {
                    note("lost: key "
                            + HexFormat.of().formatHex(written.keys(), block * KEY_BYTES, (block + 1) * KEY_BYTES)
                            + ", acknowledged in segment " + written.segment(block) + " with use-sequence "
                            + written.useSequence(block) + ", which is at " + useSequenceNow);
                }
            }
        }
    }

    /** Both phases together. */
    Phase total() {
        return new Phase(options.blockBytes).add(before).add(after);
    }

    /** Restored blocks with wrong bytes, those of the check after a kill included. */
    long wrongBlocks() {
        return before.wrong + after.wrong + wrongAtRestart;
    }

    /** Acknowledged blocks that were found in place, whole. */
    long foundBlocks() {
        return askedBlocks - reusedSince - lostWritten - damagedAtRestart;
    }

    private void noteAnswers() {
        note("restarted: " + restarted.kind + ", " + restarted.blocksIndexed + " blocks indexed in "
                + restarted.wholeNanos / 1_000_000 + " ms; of " + askedBlocks + " acknowledged blocks "
                + foundBlocks() + " found, " + reusedSince
                + " reused since, " + (damagedAtRestart > 0 ? damagedAtRestart + " damaged, " : "") + lostWritten
                + " lost");
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
                    "%srequest %d of %d, hit rate %.1f %% (host %d, nvme %d blocks), %s saved",
                    restart == Restart.NONE ? "" : phase == before ? "before the restart: " : "after the restart: ",
                    finished.cardinality(),
                    workload.requests(),
                    100 * phase.hitRate(),
                    phase.hostHits,
                    phase.nvmeHits,
                    Sizes.text(phase.savedBytes())));
        }
    }

    private void read(DataInputStream in, int kind, Phase phase) throws IOException {
        switch (kind) {
            case Frames.OPENED -> phase.readOpened(in);
            case Frames.REQUEST -> readRequest(in, phase);
            case Frames.COUNTERS -> phase.readCounters(in);
            case Frames.WRITTEN -> {
                in.readFully(key);
                int segment = in.readInt();
                written.put(key, 0, segment, in.readLong());
            }
            case Frames.DAMAGED -> {
                in.readFully(key);
                written.damaged(key, 0);
            }
            case Frames.GONE -> phase.gone++;
            case Frames.UNREACHABLE -> unreachableBytes = in.readLong();
            case Frames.DONE -> {}
            case Frames.FAILED -> throw failure(in.readUTF(), in.readUTF());
            default -> throw unexpected(kind);
        }
    }

    private void readRequest(DataInputStream in, Phase phase) throws IOException {
        RequestOutcome outcome = phase.readRequest(in, options.blockTokens);
        finished.set(outcome.request);
        series.add(
                outcome.blocks,
                outcome.hostHits,
                outcome.nvmeHits,
                outcome.queryNanos,
                outcome.restoreNanos,
                outcome.saveNanos);
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
