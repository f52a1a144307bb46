package io.orbitkv.store;

import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.TimedReader;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.agrona.concurrent.ManyToManyConcurrentArrayQueue;

/** The pool of workspaces: as many as calls ever ran at once, at most a bound. */
final class Workspaces implements AutoCloseable {
    /** More calls at once than this wait for each other: each holds up to a staging buffer. */
    static final int WORKSPACES_MAX = 64;

    /** With more at rest, restores leave drives alone: one doesn't answer, and each of them holds memory. */
    static final int RETIRED_MAX = 16;

    /** All that can be there: those at work may all come to rest at once, on one drive after the other, and be replaced. */
    private static final int IDLE_MAX = (DataFolders.FOLDERS_MAX + 1) * (WORKSPACES_MAX + RETIRED_MAX);

    private final int queryBlocksMax;
    private final int stagingBytes;
    private final int drives;
    private final Supplier<TimedReader> readers;
    private final ManyToManyConcurrentArrayQueue<Workspace> idle = new ManyToManyConcurrentArrayQueue<>(IDLE_MAX);
    private final List<Workspace> all = new ArrayList<>();
    private final List<Workspace> retired = new ArrayList<>();

    /** Size of {@link #retired}, for those who mustn't wait for its lock. */
    private volatile int retiredCount;

    Workspaces(int queryBlocksMax, int stagingBytes, int drives, Supplier<TimedReader> readers) {
        this.readers = readers;
        this.drives = drives;
        this.queryBlocksMax = queryBlocksMax;
        this.stagingBytes = stagingBytes;
    }

    Workspace take() {
        while (true) {
            Workspace workspace = idle.poll();
            if (workspace != null) {
                return workspace;
            }
            workspace = make();
            if (workspace != null) {
                return workspace;
            }
            Thread.onSpinWait();
        }
    }

    private Workspace make() {
        synchronized (all) {
            if (all.size() - retired.size() >= WORKSPACES_MAX) {
                return null;
            }
            Workspace workspace = new Workspace(queryBlocksMax, stagingBytes, drives, readers.get());
            all.add(workspace);
            return workspace;
        }
    }

    void giveBack(Workspace workspace) {
        idle.offer(workspace); // never full: it holds all workspaces there are
    }

    /** Keeps a workspace out of use while a drive may still write into it. */
    void retire(Workspace workspace) {
        synchronized (all) {
            retired.add(workspace);
            retiredCount = retired.size();
        }
    }

    /** Takes retired workspaces back whose reads have ended; the caller gives their pins back first. */
    void reuseDrained(Consumer<Workspace> unpin) {
        synchronized (all) {
            for (int i = retired.size() - 1; i >= 0; i--) {
                Workspace workspace = retired.get(i);
                if (workspace.isDrained()) {
                    retired.remove(i);
                    retiredCount = retired.size();
                    unpin.accept(workspace);
                    giveBack(workspace);
                }
            }
        }
    }

    /** Whether no drive may write into any of them. */
    boolean areDrained() {
        synchronized (all) {
            return retired.stream().allMatch(Workspace::isDrained);
        }
    }

    boolean hasRetired() {
        return retiredCount > 0;
    }

    /**
     * Whether so many restores gave up on a drive that serves that no more should ask it. One that is out of service is not
     * asked anyway, and must not keep restores from the others.
     */
    boolean isDriveLate() {
        if (retiredCount < RETIRED_MAX) {
            return false;
        }
        synchronized (all) {
            int late = 0;
            for (Workspace workspace : retired) {
                late += workspace.isAwaitedOfServingDrive() ? 1 : 0;
            }
            return late >= RETIRED_MAX;
        }
    }

    /**
     * Whether a read that a restore gave up on may still land where blocks are to go: it would overwrite what another
     * restore has put there and proved.
     */
    boolean mayBeWritten(Blocks destination, int count, int blockBytes) {
        if (retiredCount == 0 || destination.region() == null) {
            return false;
        }
        synchronized (all) {
            int ranges = destination.isBackToBack() ? Math.min(count, 1) : count;
            long rangeBytes = destination.isBackToBack() ? (long) count * blockBytes : blockBytes;
            for (Workspace workspace : retired) {
                for (int i = 0; i < ranges; i++) {
                    if (workspace.readsInto(destination.address(i, rangeBytes, blockBytes), rangeBytes)) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    @Override
    public void close() {
        synchronized (all) {
            for (Workspace workspace : all) {
                workspace.close();
            }
        }
    }
}
