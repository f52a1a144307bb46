package io.orbitkv.manager;

import io.orbitkv.manager.wire.MessageHeaderDecoder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.UnixSocket;
import io.orbitkv.store.FamilyHandle;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One client's connection: it answers its requests in order, on its own thread, and ends with the connection. What it had,
 * leases, saves that were begun and staging memory, ends with it.
 */
final class Session implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(Session.class);

    private final Manager manager;
    private final UnixSocket socket;
    private final long id;
    private final Frames frames;
    private final MessageHeaderDecoder header = new MessageHeaderDecoder();
    private final Replies replies;
    private final Requests requests;
    private final List<FamilyHandle> families = new ArrayList<>();
    private Instance instance;
    private MemoryRegion staging;

    /** Leases that it holds. Guarded by {@link LeaseTable}. */
    int leases;

    /** Whether a request is being worked on. */
    private volatile boolean working;

    Session(Manager manager, UnixSocket socket, long id) {
        this.manager = manager;
        this.socket = socket;
        this.id = id;
        this.frames = new Frames(socket);
        this.replies = new Replies(frames, manager.epoch());
        this.requests = new Requests(manager, this, frames, replies);
    }

    long id() {
        return id;
    }

    Instance instance() {
        return instance;
    }

    boolean isGreeted() {
        return instance != null;
    }

    void greet(Instance of, boolean wantsMemory) {
        instance = of;
        if (wantsMemory) {
            staging = MemoryRegion.memfd(
                    "orbitkv-staging", manager.options().stagingBytes(), PageKind.SMALL, MemoryPurpose.SESSION);
            // A client that shrank it would kill the manager, which has it mapped.
            staging.seal(MemoryRegion.Seal.SHRINK, MemoryRegion.Seal.GROW, MemoryRegion.Seal.SEAL);
        }
    }

    /** Its memory for handing blocks over; null where it wanted none. */
    MemoryRegion staging() {
        return staging;
    }

    /** The number of a family in this session. */
    int number(FamilyHandle family, int familiesMax) {
        int number = families.indexOf(family);
        if (number >= 0) {
            return number;
        }
        if (families.size() == familiesMax) {
            throw new OrbitKvException(
                    ErrorCode.BUSY, "a session opens " + familiesMax + " families at most; connect again for more");
        }
        families.add(family);
        return families.size() - 1;
    }

    FamilyHandle family(long number) {
        if (number < 0 || number >= families.size()) {
            throw new OrbitKvException(
                    ErrorCode.UNKNOWN_FAMILY,
                    "this session has opened " + families.size() + " families, asked for number " + number
                            + "; open it first");
        }
        return families.get((int) number);
    }

    boolean isWorking() {
        return working;
    }

    /** Ends the connection; the session ends soon after. Any thread. */
    void shutdown() {
        socket.shutdown();
    }

    @Override
    public void run() {
        try {
            serve();
        } catch (OrbitKvException e) {
            manager.counters().badFrames.increment();
            manager.limits().warn(LOG, "session " + id + " ends: " + e.getMessage());
        } catch (RuntimeException e) {
            manager.limits().error(LOG, "session " + id + " ends", e);
        } finally {
            end();
        }
    }

    private void serve() {
        boolean goesOn = true;
        while (goesOn && frames.receive()) {
            working = true;
            long began = System.nanoTime();
            goesOn = answer();
            working = false;
            manager.counters().requests.increment();
            manager.counters().requestNanos.add(System.nanoTime() - began);
        }
    }

    /** Works on one request and replies; whether the connection goes on. */
    private boolean answer() {
        header.wrap(frames.in(), Wire.LENGTH_BYTES);
        int end = frames.in().capacity();
        long opId = end >= Wire.MESSAGE + Long.BYTES ? frames.in().getLong(Wire.MESSAGE) : 0;
        int replyEnd;
        try {
            if (header.schemaId() != MessageHeaderDecoder.SCHEMA_ID) {
                throw Wire.badFrame("schema " + header.schemaId() + " is not this protocol's");
            }
            replyEnd = requests.answer(header.templateId(), header.blockLength(), header.version());
        } catch (OrbitKvException e) {
            replyEnd = refuse(opId, e);
        } catch (IndexOutOfBoundsException | IllegalArgumentException | IllegalStateException e) {
            replyEnd = refuse(
                    opId, Wire.badFrame("message " + header.templateId() + " contradicts itself: " + e.getMessage()));
        }
        boolean sent = replyEnd == Requests.GREETED
                ? frames.send(
                        requests.welcomeEnd(),
                        manager.arena().pool().fd(),
                        manager.arena().generations().fd(),
                        staging.fd())
                : frames.send(replyEnd);
        return sent && !requests.hasEnded();
    }

    private int refuse(long opId, OrbitKvException error) {
        manager.counters().refused(error.code());
        if (error.code().category() == ErrorCode.Category.BUG) {
            manager.limits().error(LOG, "session " + id, error);
        }
        return replies.error(opId, error);
    }

    /** Gives everything back; called once, by its own thread or where it got none. */
    void end() {
        if (instance != null) {
            manager.leases().leave(this, instance);
        }
        requests.end();
        frames.close();
        if (staging != null) {
            staging.close();
        }
        socket.close();
        manager.ended(this);
    }
}
