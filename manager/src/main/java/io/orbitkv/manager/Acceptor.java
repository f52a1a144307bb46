package io.orbitkv.manager;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PeerCredentials;
import io.orbitkv.nativeio.UnixSocket;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Takes connections of this user's processes, on its own thread. */
final class Acceptor implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(Acceptor.class);

    /** A client that does not read its answers for so long is gone. */
    private static final long SEND_MILLIS_MAX = 5_000;

    private static final long PAUSE_NANOS = 10_000_000;

    private final Manager manager;
    private final UnixSocket socket;
    private long nextId = 1;

    Acceptor(Manager manager, UnixSocket socket) {
        this.manager = manager;
        this.socket = socket;
    }

    @Override
    public void run() {
        while (true) {
            try {
                UnixSocket peer = socket.accept();
                if (peer == null) {
                    break;
                }
                take(peer);
            } catch (OrbitKvException e) {
                manager.limits().warn(LOG, "a connection was not taken: " + e.getMessage());
                LockSupport.parkNanos(PAUSE_NANOS); // out of descriptors or memory: others have to give some back
            }
        }
        socket.close();
    }

    private void take(UnixSocket peer) {
        boolean taken = false;
        try {
            peer.timeouts(SEND_MILLIS_MAX, 0);
            PeerCredentials who = peer.peer();
            int own = PeerCredentials.ownUid();
            if (who.uid() != own) {
                refuse(
                        peer,
                        new OrbitKvException(
                                ErrorCode.FOREIGN_USER,
                                "the manager serves user " + own + ", the peer is user " + who.uid()));
                return;
            }
            taken = manager.begin(peer, nextId++);
            if (taken) {
                manager.counters().sessionsAccepted.increment();
            } else {
                refuse(
                        peer,
                        new OrbitKvException(
                                manager.isStopping() ? ErrorCode.STOPPING : ErrorCode.BUSY,
                                "the manager takes " + manager.options().sessionsMax() + " sessions"));
            }
        } finally {
            if (!taken) {
                peer.close();
            }
        }
    }

    private void refuse(UnixSocket peer, OrbitKvException why) {
        manager.counters().sessionsRefused.increment();
        manager.limits().warn(LOG, "a connection was refused: " + why.getMessage());
        try (Frames frames = new Frames(peer)) {
            frames.send(new Replies(frames, manager.epoch()).error(0, why));
        }
    }

    void shutdown() {
        socket.shutdown();
    }
}
