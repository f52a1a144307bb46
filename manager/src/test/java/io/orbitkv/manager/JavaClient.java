package io.orbitkv.manager;

import io.orbitkv.index.Family;
import io.orbitkv.manager.wire.BlocksListedDecoder;
import io.orbitkv.manager.wire.DoneEncoder;
import io.orbitkv.manager.wire.ErrorDecoder;
import io.orbitkv.manager.wire.EventsAnswerDecoder;
import io.orbitkv.manager.wire.EventsEncoder;
import io.orbitkv.manager.wire.FamilyOpenedDecoder;
import io.orbitkv.manager.wire.HelloEncoder;
import io.orbitkv.manager.wire.ListBlocksEncoder;
import io.orbitkv.manager.wire.LocateEncoder;
import io.orbitkv.manager.wire.LocatedDecoder;
import io.orbitkv.manager.wire.MessageHeaderDecoder;
import io.orbitkv.manager.wire.MessageHeaderEncoder;
import io.orbitkv.manager.wire.OpenFamilyEncoder;
import io.orbitkv.manager.wire.PlaceKind;
import io.orbitkv.manager.wire.QueryAnswerDecoder;
import io.orbitkv.manager.wire.QueryEncoder;
import io.orbitkv.manager.wire.Role;
import io.orbitkv.manager.wire.SaveAnswerDecoder;
import io.orbitkv.manager.wire.SaveBeginEncoder;
import io.orbitkv.manager.wire.SaveCommitEncoder;
import io.orbitkv.manager.wire.SaveGrantedDecoder;
import io.orbitkv.manager.wire.SyncAnswerDecoder;
import io.orbitkv.manager.wire.SyncEncoder;
import io.orbitkv.manager.wire.SyncStatus;
import io.orbitkv.manager.wire.WelcomeDecoder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.UnixSocket;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Set;
import org.agrona.concurrent.UnsafeBuffer;

/** A client in Java, as plain as can be: one request at a time, no deadline. One thread. */
final class JavaClient implements AutoCloseable {
    private static final int BUFFER_BYTES = 1 << 20;

    private final UnixSocket socket;
    private final MemoryRegion memory = MemoryRegion.anonymous(2L * BUFFER_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
    private final UnsafeBuffer out = new UnsafeBuffer(0, 0);
    private final UnsafeBuffer in = new UnsafeBuffer(0, 0);
    private final MessageHeaderEncoder header = new MessageHeaderEncoder();
    private final MessageHeaderDecoder answerHeader = new MessageHeaderDecoder();
    private final MemoryRegion arena;
    private final MemoryRegion generations;
    private final MemoryRegion staging;
    private final long epoch;
    private final int segmentBytes;
    private long opId;

    /** The lease of the last query. */
    private long lease;

    /** What the manager answered instead. */
    static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1L;
        final int code;

        Refused(int code, String message) {
            super(message);
            this.code = code;
        }
    }

    JavaClient(String path, String instance) {
        socket = UnixSocket.connect(path);
        if (socket == null) {
            throw new IllegalStateException("nobody listens on " + path);
        }
        memory.wrap(out, 0, BUFFER_BYTES);
        int end = new HelloEncoder()
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(++opId)
                .protocolMin(1)
                .protocolMax(9)
                .role(Role.TOOL)
                .wantsMemory((short) 1)
                .instance(instance)
                .client("java")
                .limit();
        memory.putInt(0, end - Wire.LENGTH_BYTES);
        if (!socket.send(memory, 0, end)) {
            opId = 0; // refused before it was read: why, stands in the answer
        }
        int[] descriptors = new int[3];
        int got = socket.receiveDescriptors(memory, BUFFER_BYTES, BUFFER_BYTES, descriptors);
        try {
            finish(got);
        } catch (RuntimeException e) {
            socket.close();
            memory.close();
            throw e;
        }
        WelcomeDecoder welcome = new WelcomeDecoder();
        welcome.wrapAndApplyHeader(in, Wire.LENGTH_BYTES, answerHeader);
        epoch = welcome.epoch();
        segmentBytes = (int) welcome.segmentBytes();
        arena = MemoryRegion.ofDescriptor(descriptors[0], welcome.arenaBytes(), false);
        generations = MemoryRegion.ofDescriptor(descriptors[1], welcome.generationsBytes(), false);
        staging = MemoryRegion.ofDescriptor(descriptors[2], welcome.stagingBytes(), true);
        for (int descriptor : descriptors) {
            UnixSocket.closeDescriptor(descriptor);
        }
    }

    long epoch() {
        return epoch;
    }

    int open(Family family) {
        byte[] encoded = family.encoded();
        call(new OpenFamilyEncoder()
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(++opId)
                .epoch(epoch)
                .putFamily(encoded, 0, encoded.length)
                .limit());
        FamilyOpenedDecoder opened = new FamilyOpenedDecoder();
        opened.wrapAndApplyHeader(in, Wire.LENGTH_BYTES, answerHeader);
        return (int) opened.family();
    }

    /** Saves blocks of a prompt's start; how many were taken in. Synced to the drive. */
    int save(int family, byte[] keys, byte[] blocks, int blockBytes) {
        call(new SaveBeginEncoder()
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(++opId)
                .epoch(epoch)
                .family(family)
                .shard(0)
                .hasParent((short) 0)
                .putKeys(keys, 0, keys.length)
                .limit());
        SaveGrantedDecoder granted = new SaveGrantedDecoder();
        granted.wrapAndApplyHeader(in, Wire.LENGTH_BYTES, answerHeader);
        byte[] wanted = new byte[granted.wantedLength()];
        int count = (int) granted.wantedBlocks();
        long save = granted.saveId();
        granted.getWanted(wanted, 0, wanted.length);
        if (count == 0) {
            return 0;
        }
        SaveCommitEncoder commit = new SaveCommitEncoder()
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(++opId)
                .epoch(epoch)
                .saveId(save);
        SaveCommitEncoder.PlacesEncoder places = commit.placesCount(count);
        long at = 0;
        for (int block = 0; block < keys.length / Wire.KEY_BYTES; block++) {
            if ((wanted[block / 8] >> block % 8 & 1) != 0) {
                staging.copyFrom(at, blocks, block * blockBytes, blockBytes);
                places.next().offset(at);
                at += blockBytes;
            }
        }
        call(commit.limit());
        SaveAnswerDecoder answer = new SaveAnswerDecoder();
        answer.wrapAndApplyHeader(in, Wire.LENGTH_BYTES, answerHeader);
        int accepted = (int) answer.acceptedBlocks();
        sync(answer.position());
        return accepted;
    }

    private void sync(long position) {
        SyncStatus status;
        do {
            call(new SyncEncoder()
                    .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                    .opId(++opId)
                    .epoch(epoch)
                    .position(position)
                    .timeoutMillis(500)
                    .level(io.orbitkv.manager.wire.Durability.WRITTEN)
                    .limit());
            SyncAnswerDecoder answer = new SyncAnswerDecoder();
            answer.wrapAndApplyHeader(in, Wire.LENGTH_BYTES, answerHeader);
            status = answer.status();
        } while (status == SyncStatus.TIMED_OUT);
    }

    /** Leases the longest stored start of some blocks; how many. */
    int query(int family, byte[] keys, long queryId) {
        call(new QueryEncoder()
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(++opId)
                .epoch(epoch)
                .queryId(queryId)
                .family(family)
                .mayPend((short) 0)
                .putKeys(keys, 0, keys.length)
                .limit());
        QueryAnswerDecoder found = new QueryAnswerDecoder();
        found.wrapAndApplyHeader(in, Wire.LENGTH_BYTES, answerHeader);
        lease = found.leaseId();
        return (int) found.blocks();
    }

    /** Restores the longest stored start of some blocks; what is there. */
    byte[] restore(int family, byte[] keys, int blockBytes) {
        int blocks = query(family, keys, 1);
        if (blocks == 0) {
            return new byte[0];
        }
        call(new LocateEncoder()
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(++opId)
                .epoch(epoch)
                .leaseId(lease)
                .landingOffset(0)
                .landingBytes(staging.bytes())
                .shard(0)
                .from(0)
                .count(blocks)
                .limit());
        LocatedDecoder located = new LocatedDecoder();
        located.wrapAndApplyHeader(in, Wire.LENGTH_BYTES, answerHeader);
        byte[] bytes = new byte[blocks * blockBytes];
        int block = 0;
        for (LocatedDecoder.PlacesDecoder place : located.places()) {
            if (place.kind() == PlaceKind.ARENA) {
                long at = place.segment() * segmentBytes + place.offset();
                arena.copyTo(at, bytes, block * blockBytes, blockBytes);
                if (generations.getIntAcquire(place.segment() * Integer.BYTES) != place.generation()) {
                    break;
                }
            } else if (place.kind() == PlaceKind.LANDED) {
                staging.copyTo(place.offset(), bytes, block * blockBytes, blockBytes);
            } else {
                break;
            }
            block++;
        }
        done(lease, block);
        return Arrays.copyOf(bytes, block * blockBytes);
    }

    /** Takes events from a sequence on into a set of the heads of keys; the sequence of the first there can be, and the next. */
    long[] events(long from, Set<String> heads) {
        call(new EventsEncoder()
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(++opId)
                .epoch(epoch)
                .fromSequence(from)
                .waitMillis(0)
                .limit());
        EventsAnswerDecoder answer = new EventsAnswerDecoder();
        answer.wrapAndApplyHeader(in, Wire.LENGTH_BYTES, answerHeader);
        long first = answer.firstSequence();
        long next = first;
        byte[] head = new byte[Wire.HEAD_BYTES];
        for (EventsAnswerDecoder.EventsDecoder event : answer.events()) {
            next = event.sequence() + 1;
            for (int i = 0; i < head.length; i++) {
                head[i] = (byte) event.key(i);
            }
            String name = HexFormat.of().formatHex(head);
            switch (event.kind()) {
                case STORED -> heads.add(name);
                case REMOVED -> heads.remove(name);
                default -> heads.clear();
            }
        }
        return new long[] {first, next};
    }

    /** Adds the heads of the keys of all blocks that are stored. */
    void listBlocks(Set<String> heads) {
        long cursor = 0;
        byte[] head = new byte[Wire.HEAD_BYTES];
        do {
            call(new ListBlocksEncoder()
                    .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                    .opId(++opId)
                    .epoch(epoch)
                    .cursor(cursor)
                    .limit());
            BlocksListedDecoder listed = new BlocksListedDecoder();
            listed.wrapAndApplyHeader(in, Wire.LENGTH_BYTES, answerHeader);
            cursor = listed.nextCursor();
            for (BlocksListedDecoder.BlocksDecoder block : listed.blocks()) {
                for (int i = 0; i < head.length; i++) {
                    head[i] = (byte) block.head(i);
                }
                heads.add(HexFormat.of().formatHex(head));
            }
        } while (cursor != 0);
    }

    void done(long leaseId, int blocks) {
        call(new DoneEncoder()
                .wrapAndApplyHeader(out, Wire.LENGTH_BYTES, header)
                .opId(++opId)
                .epoch(epoch)
                .leaseId(leaseId)
                .shard(0)
                .restoredBlocks(blocks)
                .overtakenBlocks(0)
                .limit());
    }

    private void call(int end) {
        send(end);
        finish(0);
    }

    private void send(int end) {
        memory.putInt(0, end - Wire.LENGTH_BYTES);
        if (!socket.send(memory, 0, end)) {
            throw new IllegalStateException("the manager is gone");
        }
    }

    /** Receives the rest of an answer. */
    private void finish(int already) {
        int have = already;
        while (have < Wire.LENGTH_BYTES || have < Wire.LENGTH_BYTES + memory.getInt(BUFFER_BYTES)) {
            int got = socket.receive(memory, BUFFER_BYTES + have, BUFFER_BYTES - have);
            if (got <= 0) {
                throw new IllegalStateException("the manager is gone");
            }
            have += got;
        }
        memory.wrap(in, BUFFER_BYTES, have);
        answerHeader.wrap(in, Wire.LENGTH_BYTES);
        if (answerHeader.templateId() == ErrorDecoder.TEMPLATE_ID) {
            ErrorDecoder error = new ErrorDecoder();
            error.wrapAndApplyHeader(in, Wire.LENGTH_BYTES, answerHeader);
            throw new Refused(error.code(), error.message());
        }
    }

    @Override
    public void close() {
        socket.shutdown();
        socket.close();
        memory.close();
        arena.close();
        generations.close();
        staging.close();
    }
}
