package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Payload;
import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.WindowProbe;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.agrona.concurrent.NanoClock;

/**
 * A log with a host tier before it and a model beside it: which block lies where, and what the log has told.
 *
 * <p>A block's key starts with its position, and its payload is a function of that and the seed.
 */
final class LogRig implements NvmeListener, AutoCloseable {
    static final int HOST_SEGMENTS = 32;

    /** A block that the log has written. */
    record Written(long position, int bytes, long extent, long use) {}

    final LogGeometry geometry;
    final HostTier host;
    final Generations generations;
    final NvmeTier log;
    final long seed;
    final Map<Long, Written> written = new HashMap<>();
    final Map<Long, Integer> offered = new HashMap<>();
    final List<String> segmentEvents = new ArrayList<>();
    final Map<Integer, SegmentState> segmentStates = new HashMap<>();
    private final BlockListing listing = new BlockListing();
    private final BlockChecksum checksum = new BlockChecksum();
    private final byte[] key = new byte[BlockListing.KEY_BYTES];
    long lastPosition;
    long lastWritten;
    final Map<Integer, Long> flushesAtMove = new HashMap<>();
    int moved;
    int outs;
    int backs;
    OrbitKvException failure;

    LogRig(
            DataFolder folder,
            LogGeometry geometry,
            LogState initial,
            int hostSegmentBytes,
            NanoClock clock,
            WindowProbe probe,
            NvmeOptions options,
            long seed) {
        this.geometry = geometry;
        this.seed = seed;
        this.lastPosition = initial.lastPosition();
        this.lastWritten = initial.lastPosition();
        this.host = new HostTier(
                (long) hostSegmentBytes * HOST_SEGMENTS,
                hostSegmentBytes,
                4,
                PageKind.SMALL,
                EvictionPolicy.SECOND_CHANCE);
        this.generations = new Generations(geometry.segments());
        this.log =
                new NvmeTier(DataFolders.of(folder), geometry, initial, generations, host, this, clock, probe, options);
    }

    /** Makes the segment files, as recovery does for a fresh folder. */
    static void createFiles(DataFolder folder, LogGeometry geometry) {
        folder.makeFolder(LogGeometry.FOLDER);
        for (int file = 0; file < geometry.files(); file++) {
            folder.create(LogGeometry.fileName(file), geometry.fileBytes(file)).close();
        }
        folder.syncFolder(LogGeometry.FOLDER);
        folder.syncFolder("");
    }

    /** Saves a block into host memory and offers it; false when host memory or queue is full. */
    boolean save(int lane, int bytes, Gen gen) {
        if (log.queueFree() == 0) {
            return false;
        }
        long extent = host.claim(lane, bytes);
        if (extent == Extent.NONE) {
            return false;
        }
        long position = ++lastPosition;
        long at = host.payloadOffset(extent);
        Payload.fill(host.memory(), at, bytes, position, seed);
        for (int i = 0; i < Long.BYTES; i++) {
            key[i] = (byte) (position >>> (i * Byte.SIZE));
        }
        host.listing(extent, listing).clear().key(key, 0);
        checksum.reset().update(key, 0, key.length).update(host.memory(), at, bytes);
        listing.birth(position).storedBytes(bytes).logicalBytes(bytes).checksum(checksum.value());
        if (gen != null && gen.coin()) {
            listing.parent(key, 0);
        }
        offered.put(position, bytes);
        log.offer(extent, position, lane);
        return true;
    }

    @Override
    public void onBatchWritten(long[] hostExtents, long[] nvmeExtents, int count) {
        BlockListing look = new BlockListing();
        assertTrue(count >= 1 && count <= BatchHeader.LISTINGS_MAX);
        long before = 0;
        for (int i = 0; i < count; i++) {
            host.listing(hostExtents[i], look);
            assertTrue(host.generations().isLive(hostExtents[i]), "a pinned host segment was reused");
            assertTrue(look.birth() > before, "blocks of a lane keep their order");
            before = look.birth();
            long use = log.useSequence(Extent.segment(nvmeExtents[i]));
            Written was = written.put(look.birth(), new Written(look.birth(), look.storedBytes(), nvmeExtents[i], use));
            assertNull(was, "written twice");
        }
    }

    @Override
    public boolean isWanted(BlockListing block, long extent) {
        return written.get(block.birth()).extent() == extent;
    }

    @Override
    public void onBlockMoved(BlockListing block, long from, long to) {
        Written was = written.get(block.birth());
        assertEquals(was.extent(), from, "moved from where it did not lie");
        assertTrue(generations.isLive(from), "given up before its copy was written");
        assertEquals(was.bytes(), block.storedBytes());
        written.put(block.birth(), new Written(was.position(), was.bytes(), to, log.useSequence(Extent.segment(to))));
        flushesAtMove.put(Extent.segment(from), log.counters().flushes());
        moved++;
    }

    @Override
    public void onSegment(
            int segment, long useSequence, SegmentState state, int blocks, int payloadPages, int overheadPages) {
        segmentEvents.add(segment + ":" + useSequence + ":" + state);
        SegmentState was = segmentStates.getOrDefault(segment, SegmentState.FREE);
        if (state == SegmentState.FREE) {
            long flushes = flushesAtMove.getOrDefault(segment, -1L);
            assertTrue(
                    outs > 0 || log.counters().flushes() > flushes,
                    "given up before the copies of its blocks were flushed");
            flushesAtMove.remove(segment);
        }
        boolean follows = switch (state) {
            case FREE -> outs > 0 || was != SegmentState.OPEN;
            case OPEN -> was == SegmentState.FREE;
            case SEALED -> was == SegmentState.OPEN;
            case DURABLE -> was == SegmentState.SEALED;
            case ABSENT -> false; // the log itself never says so
        };
        assertTrue(follows, segment + " went from " + was + " to " + state);
        segmentStates.put(segment, state);
        if (state == SegmentState.SEALED || state == SegmentState.DURABLE) {
            assertTrue(blocks > 0);
            assertEquals(geometry.segmentPages(), payloadPages + overheadPages);
        }
    }

    @Override
    public void onPositions(long writtenPosition, long durable) {
        assertTrue(durable <= writtenPosition);
        assertTrue(writtenPosition >= lastWritten);
        for (long position = lastWritten + 1; position <= writtenPosition; position++) {
            assertTrue(
                    outs > 0 || written.containsKey(position),
                    "position " + position + " is counted and was not written");
        }
        lastWritten = writtenPosition;
    }

    @Override
    public void onOut(int drive, OrbitKvException reason) {
        assertEquals(outs, backs, "out twice");
        outs++;
        assertEquals(ErrorCode.DRIVE, reason.code());
    }

    @Override
    public void onBack(int drive) {
        backs++;
        assertEquals(outs, backs, "back, and was not out");
    }

    @Override
    public void onFailure(OrbitKvException reason) {
        assertNull(failure, "failed twice");
        failure = reason;
    }

    /** Whether memory holds the payload of a block that was read. */
    boolean isRight(Written block, MemoryRegion region, long offset) {
        return Payload.firstDifference(region, offset, block.bytes(), block.position(), seed) == Payload.NO_DIFFERENCE;
    }

    /** Reads one block now; whether it was read. The batch is the caller's, and not in use. */
    boolean read(Written block, ReadBatch batch, MemoryRegion target) {
        batch.clear();
        batch.add(block.extent(), block.bytes(), target, 0);
        return log.submit(batch) && batch.await(Long.MAX_VALUE / 2) && batch.result(0) == ReadResult.DONE;
    }

    /** Steps until everything that was offered is settled. */
    void drain() {
        for (int step = 0; log.queueDepth() > 0; step++) {
            assertTrue(step < 1_000_000, () -> "the log makes no progress: " + log.queueDepth() + " blocks wait");
            step();
        }
    }

    void step() {
        if (log.doWork() == 0) {
            log.await(1_000_000);
        }
    }

    void stop() {
        for (int step = 0; !log.stop(); step++) {
            assertTrue(step < 1_000_000, "the log does not stop");
            log.await(1_000_000_000);
        }
        log.onClose();
    }

    @Override
    public void close() {
        log.close();
        host.close();
        generations.close();
    }
}
