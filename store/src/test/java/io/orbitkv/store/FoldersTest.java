package io.orbitkv.store;

import static io.orbitkv.store.Refusals.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Catalog;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.recovery.OpeningKind;
import io.orbitkv.recovery.OpeningOptions;
import io.orbitkv.recovery.Problem;
import io.orbitkv.recovery.Verify;
import io.orbitkv.recovery.VerifyReport;
import io.orbitkv.store.KvStoreTest.Prompts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntPredicate;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a store in two folders holds what it would hold in one, a folder that is lost takes its own blocks with it and
 * nothing else, what was cleared stays cleared whatever folder goes or comes back, and folders that don't belong together are
 * refused and stay as they were. Method: real folders, one of them removed, exchanged, copied or put back between lives.
 */
class FoldersTest {
    private static final int MIB = 1 << 20;
    private static final int CAP_BYTES = 32 * MIB;
    private static final int BLOCKS = 5;

    /** Some 10 MiB: all of it stays. */
    private static final int FEW = 30;

    /** Twice the cap. */
    private static final int MANY = 200;

    private final TestFolders folders = new TestFolders();

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private static StoreOptions options(Path first, Path... more) {
        return WholeStore.optionsIn(first, more)
                .poolBytes(8 * MIB)
                .capBytes(CAP_BYTES)
                .segmentBytes(MIB / 2)
                .lockWaitMillis(0);
    }

    private static void save(int prompts, StoreOptions options) {
        try (KvStore store = WholeStore.open(options);
                Prompts prompt = new Prompts(store, BLOCKS)) {
            for (int i = 0; i < prompts; i++) {
                prompt.save(i);
            }
            assertEquals(0, store.stats().droppedBlocks());
        }
    }

    private static int hits(KvStore store, int prompts) {
        int blocks = 0;
        try (Prompts prompt = new Prompts(store, BLOCKS)) {
            for (int i = 0; i < prompts; i++) {
                blocks += prompt.restore(i);
            }
        }
        return blocks;
    }

    /** The segment of each block, -1 where it isn't there. */
    private static List<Integer> segments(KvStore store, int prompts) {
        List<Integer> segments = new ArrayList<>();
        try (Prompts prompt = new Prompts(store, BLOCKS)) {
            for (int i = 0; i < prompts; i++) {
                UnsafeBuffer keys = prompt.keysOf(i);
                for (int block = 0; block < BLOCKS; block++) {
                    segments.add(store.locate(prompt.family.shard(0), keys, block * 32)
                            .segment());
                }
            }
        }
        return segments;
    }

    private static VerifyReport verify(Path... paths) {
        try (DataFolders opened =
                new DataFolders(Stream.of(paths).map(HostFolder::open).toList())) {
            return Verify.run(opened, OpeningOptions.of(0));
        }
    }

    @Test
    void twoFoldersHoldWhatOneOfTheirSumHolds() {
        Path one = folders.make("one");
        Path a = folders.make("a");
        Path b = folders.make("b");
        save(MANY, options(one));
        save(MANY, options(a, b));
        int ofOne;
        try (KvStore store = WholeStore.open(options(one))) {
            assertEquals(OpeningKind.CLEAN, store.openReport().kind());
            ofOne = hits(store, MANY);
        }
        try (KvStore store = WholeStore.open(options(a, b))) {
            assertEquals(OpeningKind.CLEAN, store.openReport().kind());
            List<Integer> segments = segments(store, MANY);
            long inA = segments.stream().filter(s -> s >= 0 && s % 2 == 0).count();
            long inB = segments.stream().filter(s -> s >= 0 && s % 2 == 1).count();
            int ofTwo = hits(store, MANY);
            assertTrue(ofTwo <= inA + inB, "more hits than blocks");
            // One catalog more of 1 MiB, and what that takes of whole segments.
            assertTrue(ofTwo <= ofOne && ofTwo > ofOne * 9 / 10, ofOne + " in one, " + ofTwo + " in two");
            assertTrue(Math.abs(inA - inB) <= ofTwo / 5, inA + " in one, " + inB + " in the other");
            assertTrue(store.stats().ownBytes() <= CAP_BYTES);
        }
        for (Path path : List.of(a, b)) {
            try (HostFolder opened = HostFolder.open(path)) {
                long bytes = opened.allocatedBytes("");
                assertTrue(bytes <= CAP_BYTES / 2 && bytes > CAP_BYTES / 2 * 9L / 10, path + " takes " + bytes);
            }
        }
        assertEquals(1, Catalog.read(one + "/catalog").identity().formatVersion(), "one folder has the first format");
        assertEquals(2, Catalog.read(b + "/catalog").identity().formatVersion());
        assertEquals(1, Catalog.read(b + "/catalog").identity().folder());
        VerifyReport report = verify(b, a);
        assertTrue(report.isClean() && report.snapshot(), report::toString);
    }

    @ParameterizedTest(name = "folder {0} is lost")
    @ValueSource(ints = {0, 1})
    void aLostFolderTakesItsOwnBlocksOnly(int lost) {
        Path[] both = {folders.make("a"), folders.make("b")};
        save(FEW, options(both[0], both[1]));
        List<Integer> before;
        try (KvStore store = WholeStore.open(options(both[0], both[1]))) {
            before = segments(store, FEW);
        }
        assertFalse(before.contains(-1));
        TestFolders.remove(both[lost]);
        VerifyReport told = verify(both);
        assertEquals(
                List.of(ErrorCode.FOLDER_SET),
                told.problems().stream().map(Problem::code).toList());
        assertTrue(told.problems().get(0).file().equals(both[lost].toString()), told::toString);
        try (KvStore store = WholeStore.open(options(both[1], both[0]))) {
            assertEquals(List.of(both[lost].toString()), store.openReport().lostFolders());
            requireKept(before, segments(store, FEW), segment -> segment % 2 != lost);
            assertTrue(store.stats().ownBytes() <= CAP_BYTES);
            try (Prompts prompt = new Prompts(store, BLOCKS)) { // it goes on, in both folders
                for (int i = 0; i < FEW; i++) {
                    prompt.save(i);
                    assertEquals(BLOCKS, prompt.restore(i));
                }
            }
        }
        assertTrue(verify(both).isClean());
        try (KvStore store = WholeStore.open(options(both[0], both[1]))) {
            assertEquals(OpeningKind.CLEAN, store.openReport().kind());
            assertEquals(List.of(), store.openReport().lostFolders());
            assertEquals(FEW * BLOCKS, hits(store, FEW));
        }
    }

    private static void requireKept(List<Integer> before, List<Integer> after, IntPredicate kept) {
        for (int i = 0; i < before.size(); i++) {
            int expected = kept.test(before.get(i)) ? before.get(i) : -1;
            assertEquals(expected, after.get(i), "segment of block " + i + ", which was in " + before.get(i));
        }
    }

    @Test
    void theOrderOfFoldersDoesNotMatter() {
        Path a = folders.make("a");
        Path b = folders.make("b");
        Path c = folders.make("c");
        save(FEW, options(a, b, c));
        for (StoreOptions swapped : List.of(options(c, a, b), options(b, a, c))) {
            try (KvStore store = WholeStore.open(swapped)) {
                assertEquals(OpeningKind.CLEAN, store.openReport().kind());
                assertEquals(FEW * BLOCKS, hits(store, FEW));
            }
        }
    }

    @Test
    void foldersThatDoNotBelongTogetherAreRefusedAndStay() throws IOException {
        Path a = folders.make("a");
        Path b = folders.make("b");
        Path other = folders.make("other");
        Path otherB = folders.make("other-b");
        Path empty = folders.make("empty");
        Path link = folders.make("links").resolve("link-to-a");
        Files.createSymbolicLink(link, a);
        save(FEW, options(a, b));
        save(1, options(other, otherB));
        Path copy = folders.make("copy");
        Damage.copy(a, copy);
        Map<String, String> before = Damage.contents(a);
        Map<String, String> beforeB = Damage.contents(b);
        String once = "give each folder once";
        refused(ErrorCode.BAD_ARGUMENT, () -> KvStore.open(options(a, a)), a.toString(), once);
        refused(ErrorCode.BAD_ARGUMENT, () -> KvStore.open(options(a, link)), a.toString(), once);
        refused(ErrorCode.BAD_ARGUMENT, () -> KvStore.open(options(a, a.resolve("in"))), "lies in the other");
        refused(ErrorCode.OTHER_STORE, () -> KvStore.open(options(a, otherB)), a.toString(), otherB.toString());
        refused(ErrorCode.OTHER_GEOMETRY, () -> KvStore.open(options(a)), "2 data folders", "1 is given");
        refused(ErrorCode.OTHER_GEOMETRY, () -> KvStore.open(options(b)), "2 data folders", "1 is given");
        refused(ErrorCode.OTHER_GEOMETRY, () -> KvStore.open(options(a, b, empty)), "2 data folders", "3 are given");
        refused(ErrorCode.FOLDER_SET, () -> KvStore.open(options(a, copy)), "both folder 0", copy.toString());
        Files.deleteIfExists(a.resolve("in"));
        assertEquals(withoutLock(before), withoutLock(Damage.contents(a)));
        assertEquals(withoutLock(beforeB), withoutLock(Damage.contents(b)));
        try (KvStore store = WholeStore.open(options(a, b))) {
            assertEquals(OpeningKind.CLEAN, store.openReport().kind());
            refused(ErrorCode.FOLDER_IN_USE, () -> KvStore.open(options(b, empty)), b.toString());
            VerifyReport beside = verify(b, a);
            assertTrue(beside.note().contains("in use"), beside::note);
        }
    }

    /** The pid in the lock page may be another one's. */
    private static Map<String, String> withoutLock(Map<String, String> contents) {
        contents.remove("LOCK");
        return contents;
    }

    @Test
    void aFolderThatMissedALifeIsRefusedSoThatWhatWasClearedStaysCleared() throws IOException {
        Path a = folders.make("a");
        Path b = folders.make("b");
        save(FEW, options(a, b));
        Path copy = folders.make("copy");
        Damage.copy(b, copy);
        try (KvStore store = WholeStore.open(options(a, b));
                Prompts prompt = new Prompts(store, BLOCKS)) {
            store.clear(prompt.family);
        }
        TestFolders.remove(b);
        Damage.copy(copy, b);
        refused(ErrorCode.FOLDER_SET, () -> KvStore.open(options(a, b)), b.toString(), "was not there", "empty it");
        refused(ErrorCode.FOLDER_SET, () -> verify(b, a), b.toString());
        TestFolders.remove(
                a); // and without the one that knows, there is no telling: whoever copies folders back takes that
        Files.createDirectory(a);
        TestFolders.remove(b);
        Damage.copy(copy, b);
        try (KvStore store = WholeStore.open(options(a, b))) {
            assertEquals(List.of(a.toString()), store.openReport().lostFolders());
        }
    }

    @ParameterizedTest(name = "folder {0} is lost")
    @ValueSource(ints = {0, 1})
    void whatWasClearedStaysClearedWhenAFolderIsLost(int lost) {
        Path[] both = {folders.make("a"), folders.make("b")};
        save(FEW, options(both[0], both[1]));
        try (KvStore store = WholeStore.open(options(both[0], both[1]));
                Prompts prompt = new Prompts(store, BLOCKS)) {
            store.clear(prompt.family);
        }
        TestFolders.remove(both[lost]);
        try (KvStore store = WholeStore.open(options(both[0], both[1]))) {
            assertEquals(0, hits(store, FEW));
        }
    }

    @Test
    void aDamagedCatalogIsRefusedAndNamed() throws IOException {
        Path a = folders.make("a");
        Path b = folders.make("b");
        save(FEW, options(a, b));
        Path catalog = b.resolve("catalog/data.mdb");
        byte[] bytes = Files.readAllBytes(catalog);
        bytes[40] ^= 1;
        bytes[4096 + 40] ^= 1;
        Files.write(catalog, bytes);
        refused(ErrorCode.CATALOG, () -> KvStore.open(options(a, b)), catalog.toString());
        assertFalse(verify(a, b).isClean());
        TestFolders.remove(b); // the remedy: its blocks only are gone
        try (KvStore store = WholeStore.open(options(a, b))) {
            assertTrue(segments(store, FEW).stream().anyMatch(segment -> segment >= 0));
        }
    }
}
