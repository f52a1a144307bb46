package io.orbitkv.store;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.agrona.concurrent.ManyToManyConcurrentArrayQueue;

/** The pool of workspaces: as many as calls ever ran at once, at most a bound. */
final class Workspaces implements AutoCloseable {
    /** More calls at once than this wait for each other: each holds up to a staging buffer. */
    static final int WORKSPACES_MAX = 64;

    private final int queryBlocksMax;
    private final int stagingBytes;
    private final ManyToManyConcurrentArrayQueue<Workspace> idle = new ManyToManyConcurrentArrayQueue<>(WORKSPACES_MAX);
    private final List<Workspace> all = new ArrayList<>();
    private final List<Workspace> retired = new ArrayList<>();

    Workspaces(int queryBlocksMax, int stagingBytes) {
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
            if (all.size() == WORKSPACES_MAX) {
                return null;
            }
            Workspace workspace = new Workspace(queryBlocksMax, stagingBytes);
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
        }
    }

    /** Takes retired workspaces back whose reads have ended; the caller gives their pins back first. */
    void reuseDrained(Consumer<Workspace> unpin) {
        synchronized (all) {
            for (int i = retired.size() - 1; i >= 0; i--) {
                Workspace workspace = retired.get(i);
                if (workspace.isDrained()) {
                    retired.remove(i);
                    unpin.accept(workspace);
                    giveBack(workspace);
                }
            }
        }
    }

    boolean hasRetired() {
        synchronized (all) {
            return !retired.isEmpty();
        }
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
