package io.orbitkv.manager;

import io.orbitkv.manager.wire.ByeDecoder;
import io.orbitkv.manager.wire.CancelDecoder;
import io.orbitkv.manager.wire.ClearDecoder;
import io.orbitkv.manager.wire.DoneDecoder;
import io.orbitkv.manager.wire.EventsDecoder;
import io.orbitkv.manager.wire.HelloDecoder;
import io.orbitkv.manager.wire.ListBlocksDecoder;
import io.orbitkv.manager.wire.LocateDecoder;
import io.orbitkv.manager.wire.OpenFamilyDecoder;
import io.orbitkv.manager.wire.PingDecoder;
import io.orbitkv.manager.wire.PollDecoder;
import io.orbitkv.manager.wire.PrefetchDecoder;
import io.orbitkv.manager.wire.QueryDecoder;
import io.orbitkv.manager.wire.ReleaseDecoder;
import io.orbitkv.manager.wire.RenewDecoder;
import io.orbitkv.manager.wire.SaveAbortDecoder;
import io.orbitkv.manager.wire.SaveBeginDecoder;
import io.orbitkv.manager.wire.SaveCommitDecoder;
import io.orbitkv.manager.wire.StatsDecoder;
import io.orbitkv.manager.wire.SyncDecoder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;

/** Finds the one who answers a message. One thread. */
final class Requests {
    /** An answer that takes descriptors with it; its end stands at {@link #welcomeEnd}. */
    static final int GREETED = -1;

    private final Frames frames;
    private final Session session;
    private final long epoch;
    private final ControlRequests control;
    private final QueryRequests queries;
    private final LeaseRequests leases;
    private final SaveRequests saves;
    private boolean ended;

    Requests(Manager manager, Session session, Frames frames, Replies replies) {
        this.frames = frames;
        this.session = session;
        this.epoch = manager.epoch();
        this.control = new ControlRequests(manager, session, frames, replies);
        this.queries = new QueryRequests(manager, session, frames, replies);
        this.leases = new LeaseRequests(manager, session, frames, replies);
        this.saves = new SaveRequests(manager, session, frames, replies);
    }

    int answer(int template, int blockLength, int version) {
        require(version >= 1, "version 0 is none");
        if (template == HelloDecoder.TEMPLATE_ID) {
            return control.hello(length(blockLength, HelloDecoder.BLOCK_LENGTH), version);
        }
        if (!session.isGreeted()) {
            throw new OrbitKvException(ErrorCode.NOT_GREETED, "message " + template + " came before hello");
        }
        return switch (template) {
            case OpenFamilyDecoder.TEMPLATE_ID ->
                control.openFamily(greeted(blockLength, OpenFamilyDecoder.BLOCK_LENGTH), version);
            case QueryDecoder.TEMPLATE_ID -> queries.query(greeted(blockLength, QueryDecoder.BLOCK_LENGTH), version);
            case PollDecoder.TEMPLATE_ID -> queries.poll(greeted(blockLength, PollDecoder.BLOCK_LENGTH), version);
            case PrefetchDecoder.TEMPLATE_ID ->
                queries.prefetch(greeted(blockLength, PrefetchDecoder.BLOCK_LENGTH), version);
            case CancelDecoder.TEMPLATE_ID -> queries.cancel(greeted(blockLength, CancelDecoder.BLOCK_LENGTH), version);
            case LocateDecoder.TEMPLATE_ID -> leases.locate(greeted(blockLength, LocateDecoder.BLOCK_LENGTH), version);
            case DoneDecoder.TEMPLATE_ID -> leases.done(greeted(blockLength, DoneDecoder.BLOCK_LENGTH), version);
            case RenewDecoder.TEMPLATE_ID -> leases.renew(greeted(blockLength, RenewDecoder.BLOCK_LENGTH), version);
            case ReleaseDecoder.TEMPLATE_ID ->
                leases.release(greeted(blockLength, ReleaseDecoder.BLOCK_LENGTH), version);
            case SaveBeginDecoder.TEMPLATE_ID ->
                saves.begin(greeted(blockLength, SaveBeginDecoder.BLOCK_LENGTH), version);
            case SaveCommitDecoder.TEMPLATE_ID ->
                saves.commit(greeted(blockLength, SaveCommitDecoder.BLOCK_LENGTH), version);
            case SaveAbortDecoder.TEMPLATE_ID ->
                saves.abort(greeted(blockLength, SaveAbortDecoder.BLOCK_LENGTH), version);
            case ClearDecoder.TEMPLATE_ID -> control.clear(greeted(blockLength, ClearDecoder.BLOCK_LENGTH), version);
            case SyncDecoder.TEMPLATE_ID -> control.sync(greeted(blockLength, SyncDecoder.BLOCK_LENGTH), version);
            case StatsDecoder.TEMPLATE_ID -> control.stats(greeted(blockLength, StatsDecoder.BLOCK_LENGTH), version);
            case EventsDecoder.TEMPLATE_ID -> control.events(greeted(blockLength, EventsDecoder.BLOCK_LENGTH), version);
            case ListBlocksDecoder.TEMPLATE_ID ->
                control.listBlocks(greeted(blockLength, ListBlocksDecoder.BLOCK_LENGTH), version);
            case PingDecoder.TEMPLATE_ID -> control.ping(greeted(blockLength, PingDecoder.BLOCK_LENGTH), version);
            case ByeDecoder.TEMPLATE_ID -> {
                ended = true;
                yield control.ping(greeted(blockLength, ByeDecoder.BLOCK_LENGTH), version);
            }
            default -> throw Wire.badFrame("there is no request " + template);
        };
    }

    /** A message of another life would act on something else than its sender means. */
    private int greeted(int blockLength, int known) {
        length(blockLength, known);
        long theirs = frames.in().getLong(Wire.MESSAGE + Long.BYTES);
        if (theirs != epoch) {
            throw new OrbitKvException(
                    ErrorCode.STALE_EPOCH,
                    "the handle is of epoch " + Long.toHexString(theirs) + ", this is " + Long.toHexString(epoch)
                            + "; connect again");
        }
        return blockLength;
    }

    private static int length(int blockLength, int known) {
        require(blockLength >= known, "its fixed part has " + blockLength + " bytes, this version's has " + known);
        return blockLength;
    }

    private static void require(boolean good, String why) {
        if (!good) {
            throw Wire.badFrame(why);
        }
    }

    int welcomeEnd() {
        return control.welcomeEnd();
    }

    boolean hasEnded() {
        return ended;
    }

    void end() {
        queries.end();
    }
}
