package io.orbitkv.manager;

import io.orbitkv.manager.wire.AckEncoder;
import io.orbitkv.manager.wire.ErrorEncoder;
import io.orbitkv.manager.wire.FamilyOpenedEncoder;
import io.orbitkv.manager.wire.MessageHeaderEncoder;
import io.orbitkv.manager.wire.QueryAnswerEncoder;
import io.orbitkv.manager.wire.QueryStatus;
import io.orbitkv.manager.wire.SaveAnswerEncoder;
import io.orbitkv.manager.wire.StatsAnswerEncoder;
import io.orbitkv.manager.wire.SyncAnswerEncoder;
import io.orbitkv.manager.wire.SyncStatus;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.Lease;
import java.nio.charset.StandardCharsets;
import org.agrona.concurrent.UnsafeBuffer;

/** Writes answers into the frame that goes out; each returns where the frame ends. One thread. */
final class Replies {
    private static final int MESSAGE_BYTES_MAX = 4096;

    final MessageHeaderEncoder header = new MessageHeaderEncoder();
    private final UnsafeBuffer out;
    private final long epoch;
    private final AckEncoder ack = new AckEncoder();
    private final ErrorEncoder error = new ErrorEncoder();
    private final FamilyOpenedEncoder familyOpened = new FamilyOpenedEncoder();
    private final QueryAnswerEncoder queryAnswer = new QueryAnswerEncoder();
    private final SaveAnswerEncoder saveAnswer = new SaveAnswerEncoder();
    private final SyncAnswerEncoder syncAnswer = new SyncAnswerEncoder();
    private final StatsAnswerEncoder statsAnswer = new StatsAnswerEncoder();

    Replies(Frames frames, long epoch) {
        this.out = frames.out();
        this.epoch = epoch;
    }

    int ack(long opId) {
        return ack.wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header).opId(opId).limit();
    }

    int error(long opId, OrbitKvException why) {
        byte[] text = why.getMessage().getBytes(StandardCharsets.UTF_8);
        ErrorCode code = why.code();
        return error.wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(opId)
                .epoch(epoch)
                .code(code.number())
                .retryable((short) (code == ErrorCode.BUSY || code == ErrorCode.STOPPING ? 1 : 0))
                .putMessage(text, 0, Math.min(text.length, MESSAGE_BYTES_MAX))
                .limit();
    }

    int familyOpened(long opId, FamilyHandle family, int number) {
        byte[] id = family.family().id();
        familyOpened.wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header).opId(opId);
        for (int i = 0; i < id.length; i++) {
            familyOpened.familyId(i, (short) (id[i] & 0xFF));
        }
        return familyOpened
                .family(number)
                .shards(family.shards())
                .blockBytes(family.family().blockBytes())
                .limit();
    }

    int miss(long opId, long queryId) {
        return query(opId, queryId, QueryStatus.MISS, 0, 0, 0, 0, 0, 0);
    }

    int pending(long opId, long queryId, int retryMillis) {
        return query(opId, queryId, QueryStatus.PENDING, 0, 0, 0, 0, 0, retryMillis);
    }

    int ready(long opId, long queryId, long leaseId, Lease lease) {
        return query(
                opId,
                queryId,
                QueryStatus.READY,
                leaseId,
                lease.blocks(),
                lease.hostBlocks(),
                lease.nvmeBlocks(),
                (long) Math.ceil(lease.restoreMicros()),
                0);
    }

    private int query(
            long opId,
            long queryId,
            QueryStatus status,
            long leaseId,
            int blocks,
            int hostBlocks,
            int driveBlocks,
            long restoreMicros,
            int retryMillis) {
        queryAnswer
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(opId)
                .queryId(queryId)
                .leaseId(leaseId)
                .restoreMicros(restoreMicros)
                .blocks(blocks)
                .hostBlocks(hostBlocks)
                .driveBlocks(driveBlocks)
                .retryMillis(retryMillis)
                .status(status);
        queryAnswer.boundariesCount(0);
        return queryAnswer.limit();
    }

    int saved(long opId, SaveTotals totals) {
        return saveAnswer
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(opId)
                .position(totals.position)
                .presentBlocks(totals.present)
                .acceptedBlocks(totals.accepted)
                .admittedBlocks(totals.admitted)
                .droppedBlocks(totals.dropped)
                .reason((short) totals.reason.ordinal())
                .limit();
    }

    int synced(long opId, SyncStatus status) {
        return syncAnswer
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(opId)
                .status(status)
                .limit();
    }

    int stats(long opId, String json) {
        return statsAnswer
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(opId)
                .json(json)
                .limit();
    }
}
