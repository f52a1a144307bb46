package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.manager.wire.*;
import io.orbitkv.store.SaveResult.DropReason;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.MutableDirectBuffer;
import org.junit.jupiter.api.Test;

/**
 * Goal: the bytes of the protocol never change by accident, and Java and Python mean the same ones. Method: every message
 * with fixed values is compared with {@code golden/frames.txt}, which Python's tests read as well; requests in it were
 * written by Python, answers by Java.
 */
class GoldenFramesTest {
    private static final Path FILE = Path.of("src/test/resources/golden/frames.txt");
    private static final Path REASONS = Path.of("src/test/resources/golden/drop-reasons.txt");
    private static final long OP = 0x0102030405060708L;
    private static final long EPOCH = 0xF112131415161718L;
    private static final long HANDLE = 0x2122232425262728L;
    private static final byte[] KEYS = bytes(64, 3);
    private static final byte[] KEY = bytes(32, 100);

    private final MutableDirectBuffer buffer = new ExpandableArrayBuffer(4096);
    private final MessageHeaderEncoder header = new MessageHeaderEncoder();
    private final Map<String, String> frames = new LinkedHashMap<>();

    @Test
    void everyMessageHasTheBytesThatItAlwaysHad() throws IOException {
        requests();
        answers();
        Map<String, String> golden = new LinkedHashMap<>();
        for (String line : Files.readAllLines(FILE)) {
            if (!line.isBlank() && !line.startsWith("#")) {
                golden.put(line.split(" ")[0], line.split(" ")[1]);
            }
        }
        assertEquals(
                lines(golden),
                lines(frames),
                "a message changed: old clients would misread it; raise the protocol instead");
        assertTrue(golden.size() >= 31, golden.size() + " messages");
    }

    @Test
    void everyDropReasonHasTheNumberThatItAlwaysHad() throws IOException {
        List<String> now = new ArrayList<>();
        for (DropReason reason : DropReason.values()) {
            now.add(reason.ordinal() + " " + reason);
        }
        try (var lines = Files.lines(REASONS)) {
            assertEquals(
                    lines.filter(line -> !line.startsWith("#")).toList(),
                    now,
                    "Python reads these numbers by golden/drop-reasons.txt: add new ones at the end of both");
        }
    }

    private static String lines(Map<String, String> frames) {
        return frames.entrySet().stream()
                .map(frame -> frame.getKey() + " " + frame.getValue())
                .collect(Collectors.joining("\n"));
    }

    private void requests() {
        frame(
                "Hello",
                new HelloEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .protocolMin(1)
                        .protocolMax(1)
                        .role(Role.WORKER)
                        .wantsMemory((short) 1)
                        .instance("engine-0")
                        .client("test/1")
                        .limit());
        frame(
                "OpenFamily",
                new OpenFamilyEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .putFamily(KEYS, 0, KEYS.length)
                        .limit());
        frame(
                "Query",
                new QueryEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .queryId(HANDLE)
                        .family(7)
                        .mayPend((short) 1)
                        .putKeys(KEYS, 0, KEYS.length)
                        .limit());
        frame(
                "Poll",
                new PollEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .queryId(HANDLE)
                        .limit());
        frame(
                "Locate",
                new LocateEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .leaseId(HANDLE)
                        .landingOffset(8192)
                        .landingBytes(65536)
                        .shard(2)
                        .from(3)
                        .count(4)
                        .limit());
        frame(
                "Done",
                new DoneEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .leaseId(HANDLE)
                        .shard(2)
                        .restoredBlocks(3)
                        .overtakenBlocks(1)
                        .limit());
        SaveBeginEncoder begin = new SaveBeginEncoder().wrapAndApplyHeader(buffer, 4, header);
        begin.opId(OP).epoch(EPOCH);
        for (int i = 0; i < KEY.length; i++) {
            begin.parent(i, KEY[i]);
        }
        frame(
                "SaveBegin",
                begin.family(7)
                        .shard(2)
                        .hasParent((short) 1)
                        .putKeys(KEYS, 0, KEYS.length)
                        .limit());
        SaveCommitEncoder commit = new SaveCommitEncoder()
                .wrapAndApplyHeader(buffer, 4, header)
                .opId(OP)
                .epoch(EPOCH)
                .saveId(HANDLE);
        commit.placesCount(2).next().offset(4096).next().offset(12288);
        frame("SaveCommit", commit.limit());
        frame(
                "SaveAbort",
                new SaveAbortEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .saveId(HANDLE)
                        .limit());
        RenewEncoder renew = new RenewEncoder()
                .wrapAndApplyHeader(buffer, 4, header)
                .opId(OP)
                .epoch(EPOCH);
        renew.leasesCount(2).next().leaseId(5).next().leaseId(HANDLE);
        frame("Renew", renew.limit());
        ReleaseEncoder release = new ReleaseEncoder()
                .wrapAndApplyHeader(buffer, 4, header)
                .opId(OP)
                .epoch(EPOCH);
        release.leasesCount(2).next().leaseId(5).next().leaseId(HANDLE);
        frame("Release", release.limit());
        frame(
                "Prefetch",
                new PrefetchEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .queryId(HANDLE)
                        .family(7)
                        .putKeys(KEYS, 0, KEYS.length)
                        .limit());
        frame(
                "Cancel",
                new CancelEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .queryId(HANDLE)
                        .limit());
        frame(
                "Clear",
                new ClearEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .family(7)
                        .limit());
        frame(
                "Sync",
                new SyncEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .position(99)
                        .timeoutMillis(250)
                        .level(Durability.DURABLE)
                        .limit());
        frame(
                "Stats",
                new StatsEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .limit());
        frame(
                "Events",
                new EventsEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .fromSequence(17)
                        .waitMillis(250)
                        .limit());
        frame(
                "ListBlocks",
                new ListBlocksEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .cursor(HANDLE)
                        .limit());
        frame(
                "Ping",
                new PingEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .limit());
        frame(
                "Bye",
                new ByeEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .limit());
    }

    private void answers() {
        frame(
                "Welcome",
                new WelcomeEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .sessionId(3)
                        .arenaBytes(1L << 40)
                        .generationsBytes(4096)
                        .stagingBytes(64 << 20)
                        .segmentBytes(1 << 20)
                        .segments(1 << 20)
                        .leaseMillis(30_000)
                        .frameBytesMax(1 << 20)
                        .blocksMax(16_384)
                        .leasesMax(1024)
                        .protocol(1)
                        .limit());
        FamilyOpenedEncoder opened =
                new FamilyOpenedEncoder().wrapAndApplyHeader(buffer, 4, header).opId(OP);
        for (int i = 0; i < KEY.length; i++) {
            opened.familyId(i, KEY[i]);
        }
        frame("FamilyOpened", opened.family(7).shards(8).blockBytes(65536).limit());
        QueryAnswerEncoder answer = new QueryAnswerEncoder()
                .wrapAndApplyHeader(buffer, 4, header)
                .opId(OP)
                .queryId(HANDLE)
                .leaseId(6)
                .restoreMicros(1234)
                .blocks(64)
                .hostBlocks(60)
                .driveBlocks(4)
                .retryMillis(5)
                .status(QueryStatus.READY);
        answer.boundariesCount(0);
        frame("QueryAnswer", answer.limit());
        LocatedEncoder located =
                new LocatedEncoder().wrapAndApplyHeader(buffer, 4, header).opId(OP);
        LocatedEncoder.PlacesEncoder places = located.placesCount(2);
        places.next()
                .offset(4096)
                .segment(9)
                .generation(5)
                .checksum(0xDEADBEEFL)
                .kind(PlaceKind.ARENA);
        places.next().offset(8192).segment(0).generation(0).checksum(0).kind(PlaceKind.LANDED);
        frame("Located", located.limit());
        frame(
                "SaveGranted",
                new SaveGrantedEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .saveId(HANDLE)
                        .wantedBlocks(2)
                        .putWanted(new byte[] {0b101}, 0, 1)
                        .limit());
        frame(
                "SaveAnswer",
                new SaveAnswerEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .position(77)
                        .presentBlocks(1)
                        .acceptedBlocks(2)
                        .admittedBlocks(2)
                        .droppedBlocks(3)
                        .reason((short) 1)
                        .limit());
        LeaseCodesEncoder codes =
                new LeaseCodesEncoder().wrapAndApplyHeader(buffer, 4, header).opId(OP);
        codes.leasesCount(2).next().leaseId(5).code(0).next().leaseId(HANDLE).code(1009);
        frame("LeaseCodes", codes.limit());
        frame(
                "SyncAnswer",
                new SyncAnswerEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .status(SyncStatus.TIMED_OUT)
                        .limit());
        frame(
                "StatsAnswer",
                new StatsAnswerEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .json("{\"a\":1}")
                        .limit());
        EventsAnswerEncoder events = new EventsAnswerEncoder()
                .wrapAndApplyHeader(buffer, 4, header)
                .opId(OP)
                .epoch(EPOCH)
                .firstSequence(17);
        EventsAnswerEncoder.EventsEncoder each = events.eventsCount(1).next();
        each.sequence(18).shard(2).kind(EventKind.STORED);
        for (int i = 0; i < KEY.length; i++) {
            each.familyId(i, KEY[i]).key(i, KEYS[i]);
        }
        frame("EventsAnswer", events.limit());
        BlocksListedEncoder listed = new BlocksListedEncoder()
                .wrapAndApplyHeader(buffer, 4, header)
                .opId(OP)
                .epoch(EPOCH)
                .nextCursor(HANDLE);
        BlocksListedEncoder.BlocksEncoder block = listed.blocksCount(2);
        for (int row = 0; row < 2; row++) {
            block.next().shard(2 + row);
            for (int i = 0; i < KEY.length; i++) {
                block.familyId(i, KEY[i]);
            }
            for (int i = 0; i < Wire.HEAD_BYTES; i++) {
                block.head(i, KEYS[row * Wire.KEY_BYTES + i]);
            }
        }
        frame("BlocksListed", listed.limit());
        events.wrapAndApplyHeader(buffer, 4, header).opId(OP).epoch(EPOCH).firstSequence(17);
        each = events.eventsCount(2).next();
        each.sequence(18).shard(2).kind(EventKind.REMOVED);
        for (int i = 0; i < KEY.length; i++) {
            each.familyId(i, KEY[i]).key(i, i < Wire.HEAD_BYTES ? KEYS[i] : 0);
        }
        each.next().sequence(19).shard(0).kind(EventKind.CLEARED);
        for (int i = 0; i < KEY.length; i++) {
            each.familyId(i, KEY[i]).key(i, (short) 0);
        }
        frame("EventsAnswerRemoved", events.limit());
        frame(
                "Ack",
                new AckEncoder().wrapAndApplyHeader(buffer, 4, header).opId(OP).limit());
        frame(
                "Error",
                new ErrorEncoder()
                        .wrapAndApplyHeader(buffer, 4, header)
                        .opId(OP)
                        .epoch(EPOCH)
                        .code(1004)
                        .retryable((short) 0)
                        .message("OKV-1004: stale")
                        .limit());
    }

    private void frame(String name, int end) {
        buffer.putInt(0, end - Wire.LENGTH_BYTES);
        byte[] bytes = new byte[end];
        buffer.getBytes(0, bytes);
        frames.put(name, HexFormat.of().formatHex(bytes));
    }

    private static byte[] bytes(int count, int first) {
        byte[] bytes = new byte[count];
        for (int i = 0; i < count; i++) {
            bytes[i] = (byte) (first + i);
        }
        return bytes;
    }

    /** Writes what answers look like now, for a new one: {@code java ... GoldenFramesTest}. */
    public static void main(String[] arguments) throws IOException {
        GoldenFramesTest test = new GoldenFramesTest();
        test.answers();
        List<String> lines = new ArrayList<>(Files.readAllLines(FILE));
        test.frames.forEach((name, hex) -> lines.add(name + " " + hex));
        Files.write(FILE, lines);
    }
}
