package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.recovery.BlockPlace;
import io.orbitkv.recovery.Inspection;
import io.orbitkv.recovery.OpeningOptions;
import io.orbitkv.recovery.Problem;
import io.orbitkv.recovery.Verify;
import io.orbitkv.recovery.VerifyReport;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.StoreOptions;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: bits that rot on the drive cost the blocks that they are in, and no other; verify finds every one and says where;
 * a repair leaves nothing to be found.
 * Method: a store of 700 blocks is stopped, 100 bits are flipped in the payloads of 100 blocks and 10 footers are damaged.
 */
class RotOnDiskTest {
    private static final int BLOCKS = 700;
    private static final int FLIPS = 100;
    private static final int FOOTERS = 10;
    private static final int SEGMENT_BYTES = 512 << 10;
    private static final int PAGE_BYTES = 4096;

    private Path data;
    private final Set<String> flippedPlaces = new HashSet<>();
    private final Set<String> flippedKeys = new HashSet<>();

    private StoreOptions options() {
        return StoreOptions.in(data)
                .driveTimeoutMillis(60_000)
                .poolBytes(4 << 20)
                .capBytes(32 << 20)
                .scrubHostBytesPerSecond(0)
                .scrubDriveBytesPerSecond(0)
                .segmentBytes(SEGMENT_BYTES)
                .promotionBytesMax(0);
    }

    /** With a whole index: a miss means that a block is gone, and the stop writes a snapshot. */
    private KvStore open() {
        KvStore store = KvStore.open(options());
        assertTrue(store.awaitWhole(60_000), () -> "the index is not whole: " + store.openReport());
        return store;
    }

    /** Fills a store, stops it, and lets it rot. */
    private void rot(boolean cleanStop) throws IOException {
        try (KvStore store = open()) {
            new NumberedBlocks(store, 0).save(0, BLOCKS);
        }
        List<BlockPlace> places = places();
        List<String> segments = new ArrayList<>(new TreeSet<>(places.stream()
                .map(place -> place.file() + "@" + (place.fileOffset() - (long) place.page() * PAGE_BYTES))
                .toList()));
        assertTrue(segments.size() >= FOOTERS, segments.toString());
        Random random = new Random(Seed.of(RotOnDiskTest.class));
        Collections.shuffle(places, random);
        for (BlockPlace place : places.subList(0, FLIPS)) {
            flip(place.file(), place.fileOffset() + random.nextInt(place.storedBytes()), random.nextInt(8));
            flippedPlaces.add(place.file() + "@" + place.fileOffset());
            flippedKeys.add(place.key());
        }
        Collections.shuffle(segments, random);
        for (String segment : segments.subList(0, FOOTERS)) {
            String[] words = segment.split("@");
            long last = Long.parseLong(words[1]) + SEGMENT_BYTES - PAGE_BYTES;
            flip(words[0], last + PAGE_BYTES - 32 + random.nextInt(28), random.nextInt(8));
            flippedPlaces.add(words[0] + "@" + last);
        }
        if (!cleanStop) {
            Files.delete(data.resolve("snapshot/MARKER")); // as a kill leaves it: the log is scanned
        }
    }

    /** Where every block lies. */
    private List<BlockPlace> places() {
        byte[] keys;
        try (KvStore store = open()) {
            NumberedBlocks blocks = new NumberedBlocks(store, 0);
            keys = new byte[BLOCKS * 32];
            for (int number = 0; number < BLOCKS; number++) {
                blocks.key(number).getBytes(0, keys, number * 32, 32);
            }
        }
        try (HostFolder folder = HostFolder.open(data)) {
            return Inspection.of(DataFolders.of(folder), OpeningOptions.of(0))
                    .explain(NumberedBlocks.family(0), new UnsafeBuffer(keys), BLOCKS)
                    .stream()
                    .map(answer -> answer.places().get(0))
                    .collect(Collectors.toCollection(ArrayList::new));
        }
    }

    private void flip(String file, long at, int bit) throws IOException {
        try (FileChannel channel =
                FileChannel.open(data.resolve(file), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer one = ByteBuffer.allocate(1);
            channel.read(one, at);
            one.put(0, (byte) (one.get(0) ^ 1 << bit));
            channel.write(one.flip(), at);
            channel.force(true);
        }
    }

    private int requireOnlyFlippedMiss(KvStore store) {
        NumberedBlocks blocks = new NumberedBlocks(store, 0);
        int missing = 0;
        for (int number = 0; number < BLOCKS; number++) {
            String key = java.util.HexFormat.of().formatHex(blocks.key(number).byteArray());
            NumberedBlocks.Found found = blocks.look(number);
            boolean flipped = flippedKeys.contains(key);
            assertEquals(
                    flipped ? NumberedBlocks.Found.NOTHING : NumberedBlocks.Found.ITS_BYTES, found, "block " + number);
            missing += flipped ? 1 : 0;
        }
        return missing;
    }

    private long wrongBlocksCounted() {
        try (HostFolder folder = HostFolder.open(data)) {
            return Inspection.of(DataFolders.of(folder), OpeningOptions.of(0))
                    .store(false)
                    .counters()
                    .get("wrong_blocks");
        }
    }

    private VerifyReport verify() {
        try (HostFolder folder = HostFolder.open(data)) {
            return Verify.run(folder, OpeningOptions.of(0));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aHundredFlippedBitsCostAHundredBlocksAndTenFootersNothing(boolean cleanStop) throws IOException {
        try (TestFolders folders = new TestFolders()) {
            data = folders.make("rot").resolve("data");
            rot(cleanStop);
            requireAllFound(verify());
            try (KvStore store = open()) {
                assertEquals(FLIPS, requireOnlyFlippedMiss(store));
                assertEquals(FLIPS, store.stats().corruptBlocks());
            }
            assertEquals(FLIPS, wrongBlocksCounted());
            try (KvStore store = open()) {
                assertEquals(FLIPS, requireOnlyFlippedMiss(store));
                assertEquals(0, store.stats().corruptBlocks(), "found anew although they are in quarantine");
            }
            assertEquals(FLIPS, wrongBlocksCounted());
        }
    }

    private void requireAllFound(VerifyReport report) {
        Map<String, Problem> found = new HashMap<>();
        report.problems().forEach(problem -> found.put(problem.file() + "@" + problem.offset(), problem));
        assertEquals(flippedPlaces, found.keySet());
        assertEquals(FLIPS + FOOTERS, report.problemsFound());
        assertEquals(FLIPS, report.wrongBlocks());
        long footers = report.problems().stream()
                .filter(problem -> problem.code() == ErrorCode.FOOTER)
                .count();
        assertEquals(FOOTERS, footers);
    }

    @Test
    void aRepairLeavesNothingToBeFoundAndCostsNoOtherBlock() throws IOException {
        try (TestFolders folders = new TestFolders()) {
            data = folders.make("repair").resolve("data");
            rot(true);
            List<String> steps = new ArrayList<>();
            try (HostFolder folder = HostFolder.open(data)) {
                VerifyReport report = Verify.repair(DataFolders.of(folder), OpeningOptions.of(0), steps::addAll);
                assertEquals(FLIPS + FOOTERS, report.repaired());
                assertTrue(report.isMended());
            }
            assertTrue(steps.size() > 1, steps.toString());
            VerifyReport after = verify();
            assertTrue(after.isClean(), () -> after.problems().toString());
            assertEquals(FLIPS, after.quarantinedBlocks());
            assertEquals(FLIPS, wrongBlocksCounted());
            try (KvStore store = open()) {
                assertEquals(FLIPS, requireOnlyFlippedMiss(store));
                assertEquals(0, store.stats().corruptBlocks());
            }
        }
    }
}
