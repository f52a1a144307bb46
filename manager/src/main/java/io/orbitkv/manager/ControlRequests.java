package io.orbitkv.manager;

import io.orbitkv.index.Family;
import io.orbitkv.manager.wire.BlocksListedEncoder;
import io.orbitkv.manager.wire.ClearDecoder;
import io.orbitkv.manager.wire.EventKind;
import io.orbitkv.manager.wire.EventsAnswerEncoder;
import io.orbitkv.manager.wire.EventsDecoder;
import io.orbitkv.manager.wire.HelloDecoder;
import io.orbitkv.manager.wire.ListBlocksDecoder;
import io.orbitkv.manager.wire.OpenFamilyDecoder;
import io.orbitkv.manager.wire.SyncDecoder;
import io.orbitkv.manager.wire.SyncStatus;
import io.orbitkv.manager.wire.WelcomeEncoder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.Level;
import org.agrona.concurrent.UnsafeBuffer;

/** Answers what is not about single blocks: hello, families, clear, sync, stats, events. One thread. */
final class ControlRequests {
    private static final int FAMILIES_MAX = 256;
    private static final int NAME_BYTES_MAX = 256;

    /** A client that wants to wait longer asks again. */
    private static final long WAIT_MILLIS_MAX = 1_000;

    private static final int EVENTS_MAX = 4096;

    private final Manager manager;
    private final Session session;
    private final Frames frames;
    private final Replies replies;
    private final HelloDecoder hello = new HelloDecoder();
    private final OpenFamilyDecoder openFamily = new OpenFamilyDecoder();
    private final ClearDecoder clear = new ClearDecoder();
    private final SyncDecoder sync = new SyncDecoder();
    private final EventsDecoder events = new EventsDecoder();
    private final ListBlocksDecoder listBlocks = new ListBlocksDecoder();
    private final WelcomeEncoder welcome = new WelcomeEncoder();
    private final EventsAnswerEncoder eventsAnswer = new EventsAnswerEncoder();
    private final BlocksListedEncoder blocksListed = new BlocksListedEncoder();
    private final UnsafeBuffer bytes = new UnsafeBuffer(0, 0);

    /** What the log is read into, before it is known how many events there are. */
    private EventsSeen seen;

    private BlocksSeen blocks;

    private int welcomeEnd;

    ControlRequests(Manager manager, Session session, Frames frames, Replies replies) {
        this.manager = manager;
        this.session = session;
        this.frames = frames;
        this.replies = replies;
    }

    int hello(int blockLength, int version) {
        hello.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        if (session.isGreeted()) {
            throw new OrbitKvException(ErrorCode.NOT_GREETED, "this session was greeted already");
        }
        if (hello.protocolMin() > Wire.PROTOCOL || hello.protocolMax() < Wire.PROTOCOL) {
            throw new OrbitKvException(
                    ErrorCode.WIRE_VERSION,
                    "the client speaks protocol " + hello.protocolMin() + " to " + hello.protocolMax()
                            + ", this manager " + Wire.PROTOCOL + "; use a client of the manager's version");
        }
        hello.role(); // refuses what is none
        boolean wantsMemory = hello.wantsMemory() != 0;
        if (hello.instanceLength() < 1 || hello.instanceLength() > NAME_BYTES_MAX) {
            throw Wire.badFrame("an instance has a name of 1 to " + NAME_BYTES_MAX + " bytes");
        }
        String name = hello.instance();
        session.greet(manager.leases().join(name), wantsMemory);
        welcomeEnd = welcome.wrapAndApplyHeader(frames.out(), Wire.LENGTH_BYTES, replies.header)
                .opId(hello.opId())
                .epoch(manager.epoch())
                .sessionId(session.id())
                .arenaBytes(wantsMemory ? manager.arena().pool().bytes() : 0)
                .generationsBytes(wantsMemory ? manager.arena().generations().bytes() : 0)
                .stagingBytes(wantsMemory ? session.staging().bytes() : 0)
                .segmentBytes(manager.arena().segmentBytes())
                .segments(manager.arena().segments())
                .leaseMillis(manager.options().store().leaseMillis())
                .frameBytesMax(Wire.FRAME_BYTES_MAX)
                .blocksMax(Wire.BLOCKS_MAX)
                .leasesMax(manager.options().leasesMax())
                .protocol(Wire.PROTOCOL)
                .limit();
        return wantsMemory ? Requests.GREETED : welcomeEnd;
    }

    int welcomeEnd() {
        return welcomeEnd;
    }

    int openFamily(int blockLength, int version) {
        openFamily.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        openFamily.wrapFamily(bytes);
        byte[] encoded = new byte[bytes.capacity()];
        bytes.getBytes(0, encoded);
        FamilyHandle family = manager.store().openFamily(Family.decode(encoded));
        return replies.familyOpened(openFamily.opId(), family, session.number(family, FAMILIES_MAX));
    }

    int clear(int blockLength, int version) {
        clear.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        FamilyHandle family = session.family(clear.family());
        manager.store().clear(family);
        return replies.ack(clear.opId());
    }

    int sync(int blockLength, int version) {
        sync.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        Level level = sync.level() == io.orbitkv.manager.wire.Durability.DURABLE ? Level.DURABLE : Level.WRITTEN;
        SyncStatus status =
                switch (manager.store().sync(sync.position(), level, Math.min(sync.timeoutMillis(), WAIT_MILLIS_MAX))) {
                    case REACHED -> SyncStatus.REACHED;
                    case TIMED_OUT -> SyncStatus.TIMED_OUT;
                    default -> SyncStatus.FAILED;
                };
        return replies.synced(sync.opId(), status);
    }

    int stats(int blockLength, int version) {
        return replies.stats(frames.in().getLong(Wire.MESSAGE), manager.statsJson());
    }

    int ping(int blockLength, int version) {
        return replies.ack(frames.in().getLong(Wire.MESSAGE));
    }

    int events(int blockLength, int version) {
        events.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        long first;
        try {
            if (seen == null) {
                seen = new EventsSeen(EVENTS_MAX);
            }
            long wait = Math.min(events.waitMillis(), WAIT_MILLIS_MAX);
            first = manager.events().read(events.fromSequence(), wait, EVENTS_MAX, seen);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new OrbitKvException(ErrorCode.STOPPING, "the manager is stopping", e);
        }
        eventsAnswer
                .wrapAndApplyHeader(frames.out(), Wire.LENGTH_BYTES, replies.header)
                .opId(events.opId())
                .epoch(manager.epoch())
                .firstSequence(first);
        EventsAnswerEncoder.EventsEncoder each = eventsAnswer.eventsCount(seen.count());
        for (int i = 0; i < seen.count(); i++) {
            each.next().sequence(seen.sequence(i)).shard(seen.shard(i));
            each.kind(kindOf(seen.kind(i)));
            for (int b = 0; b < Wire.KEY_BYTES; b++) {
                each.familyId(b, (short) (seen.familyId(i)[b] & 0xFF));
                each.key(b, seen.keyByte(i, b));
            }
        }
        return eventsAnswer.limit();
    }

    private static EventKind kindOf(EventLog.Kind kind) {
        return switch (kind) {
            case STORED -> EventKind.STORED;
            case REMOVED -> EventKind.REMOVED;
            case CLEARED -> EventKind.CLEARED;
        };
    }

    /** Whoever lists blocks wants to hear what changes meanwhile. */
    int listBlocks(int blockLength, int version) {
        listBlocks.wrap(frames.in(), Wire.MESSAGE, blockLength, version);
        manager.events().listen();
        blocks = blocks == null ? new BlocksSeen() : blocks.clear();
        long cursor = listBlocks.cursor();
        for (int step = 0; step < BlocksSeen.STEPS_MAX && blocks.hasRoom(); step++) {
            cursor = manager.store().visitBlocks(cursor, blocks);
            if (cursor == 0) {
                break;
            }
        }
        blocksListed
                .wrapAndApplyHeader(frames.out(), Wire.LENGTH_BYTES, replies.header)
                .opId(listBlocks.opId())
                .epoch(manager.epoch())
                .nextCursor(cursor);
        BlocksListedEncoder.BlocksEncoder each = blocksListed.blocksCount(blocks.count());
        for (int i = 0; i < blocks.count(); i++) {
            each.next().shard(blocks.shard(i));
            for (int b = 0; b < Wire.KEY_BYTES; b++) {
                each.familyId(b, (short) (blocks.familyId(i)[b] & 0xFF));
            }
            for (int b = 0; b < Wire.HEAD_BYTES; b++) {
                each.head(b, blocks.headByte(i, b));
            }
        }
        return blocksListed.limit();
    }
}
