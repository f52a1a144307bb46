package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.LeakCheck;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.OpeningKind;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: whatever happens to a file of a store that is closed, opening either refuses with a code, the file's name and a
 * remedy and changes nothing, or it opens with every undamaged block and no wrong byte.
 *
 * <p>Method: a store whose log has used, sealed and free segments; single bits are flipped at seeded places of each
 * structure in turn (and put back); every block is looked at after each opening. Replay with {@code -Dorbitkv.seed=N}.
 */
class DamageTest {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;
    private static final int PAGE = Damage.PAGE_BYTES;
    private static final int SEGMENT_BYTES = 64 * KIB;
    private static final int BLOCK_BYTES = 7_000;
    private static final int FLIPS = 6;

    private final Gen gen = new Gen(Seed.of(DamageTest.class));
    private final TestFolders folders = new TestFolders();
    private final List<Prompt> prompts = new ArrayList<>();
    private final List<Location> locations = new ArrayList<>();
    private Path pristine;
    private Path killed;
    private int blocksSaved;

    /** Where a bit is flipped, and what may come of it. */
    private enum Place {
        SEGMENT_HEADER(0, ErrorCode.OTHER_STORE, ErrorCode.OTHER_VERSION, ErrorCode.SEGMENT_HEADER),
        BATCH_HEADER(0),
        /** Of a segment that was open when the process was killed: what lies behind it in the segment goes with it. */
        OPEN_BATCH_HEADER(6),
        PAYLOAD(1),
        FOOTER(0),
        SNAPSHOT_INDEX(0),
        MARKER(0),
        LOCK(0),
        CATALOG(0, ErrorCode.CATALOG, ErrorCode.OTHER_VERSION);

        /** Most blocks that one flip may cost. */
        private final int lostMax;

        private final Set<ErrorCode> refusals;

        Place(int lostMax, ErrorCode... refusals) {
            this.lostMax = lostMax;
            this.refusals = EnumSet.noneOf(ErrorCode.class);
            this.refusals.addAll(List.of(refusals));
        }
    }

    private static StoreOptions options(Path folder) {
        return WholeStore.optionsIn(folder)
                .poolBytes(MIB)
                .capBytes(4 * MIB)
                .segmentBytes(SEGMENT_BYTES)
                .blockBytesLargest(8 * KIB)
                .scrubDriveBytesPerSecond(0); // it may find what a restore is to find
    }

    @BeforeEach
    void makeAStore() throws InterruptedException {
        pristine = folders.make("pristine");
        Modelled.Model model = new Modelled.Model();
        try (KvStore store = WholeStore.open(options(pristine));
                Modelled modelled = open(store, model)) {
            for (int i = 0; i < 20; i++) {
                Prompt prompt = Prompt.random(gen, 4);
                prompts.add(prompt);
                modelled.saveAll(prompt, 0, 4);
                modelled.written(); // one batch each
            }
            blocksSaved = model.keys().size();
            assertEquals(0, store.stats().nvmeSegmentsReused());
            for (Prompt prompt : prompts) {
                for (int i = 0; i < prompt.blocks(); i++) {
                    locations.add(store.locate(modelled.shard, prompt.keys, Prompt.keyOffset(i)));
                }
            }
            // The files of a store that rests are what a kill would leave behind.
            assertEquals(SyncOutcome.REACHED, store.sync(store.acceptedPosition(), Level.DURABLE, 10_000));
            Thread.sleep(400);
            killed = folders.make("killed");
            Damage.copy(pristine, killed);
        }
    }

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private static Modelled open(KvStore store, Modelled.Model model) {
        return new Modelled(
                store, store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0), model, 4);
    }

    private Path copy(String name) {
        return copy(pristine, name);
    }

    private Path copy(Path of, String name) {
        Path folder = folders.make(name);
        Damage.copy(of, folder);
        return folder;
    }

    private static Path segments(Path folder) {
        return folder.resolve("segments").resolve("000000000000.seg");
    }

    /** After a stop and after a kill; each flip is alone. */
    @ParameterizedTest(name = "{0}")
    @EnumSource(Place.class)
    void aFlippedBitIsRefusedOrCostsNoMoreThanTheBlockItHit(Place place) {
        LeakCheck leaks = null;
        for (int flip = 0; flip < FLIPS; flip++) {
            boolean clean = place == Place.MARKER
                    || place == Place.SNAPSHOT_INDEX
                    || (gen.coin() && place != Place.OPEN_BATCH_HEADER);
            boolean sealed = place == Place.FOOTER || place == Place.BATCH_HEADER;
            Path folder = copy(clean || sealed ? pristine : killed, "flip");
            if (!clean && sealed) {
                TestFolders.remove(folder.resolve("snapshot").resolve("MARKER"));
            }
            Path file = file(folder, place);
            long at = offset(file, place);
            int bits = 1 << gen.below(8);
            Damage.flip(file, at, bits);
            openOrRefuse(folder, place, place + " at " + at + " bits " + bits + (clean ? " after a stop" : ""));
            TestFolders.remove(folder);
            leaks = flip == 0 ? LeakCheck.take() : leaks;
        }
        leaks.assertNothingLeaked();
    }

    private void openOrRefuse(Path folder, Place place, String what) {
        Map<String, String> before = Damage.contents(folder);
        try (KvStore store = WholeStore.open(options(folder))) {
            int found = lookAtAll(store);
            assertTrue(found >= blocksSaved - place.lostMax, () -> what + ": found " + found + " of " + blocksSaved);
            worksOn(store);
        } catch (OrbitKvException e) {
            assertTrue(place.refusals.contains(e.code()), () -> what + ": " + e);
            requireHelpful(e, folder);
            assertEquals(before, Damage.contents(folder), what + ": a refusal changes nothing");
        }
    }

    private static void requireHelpful(OrbitKvException refusal, Path folder) {
        String text = refusal.getMessage();
        assertTrue(text.startsWith(refusal.code().label()) && text.contains(folder.toString()), text);
        assertTrue(text.contains("; ") || text.contains(": use "), text);
    }

    /** Every block by itself, so that one hole hides nothing. */
    private int lookAtAll(KvStore store) {
        int found = 0;
        try (Modelled modelled = open(store, new Modelled.Model())) {
            for (Prompt prompt : prompts) {
                for (int i = 0; i < prompt.blocks(); i++) {
                    found += modelled.restore(prompt, i, 1, gen);
                }
            }
        }
        return found;
    }

    private void worksOn(KvStore store) {
        try (Modelled modelled = open(store, new Modelled.Model())) {
            Prompt prompt = Prompt.random(gen, 4);
            modelled.saveAll(prompt, 0, 4);
            modelled.written();
            assertEquals(4, modelled.restore(prompt, 0, 4, gen));
            for (Prompt old : prompts) { // what is lost can be saved again
                modelled.saveAll(old, 0, 4);
                assertEquals(4, modelled.restore(old, 0, 4, gen));
            }
        }
    }

    private static Path file(Path folder, Place place) {
        return switch (place) {
            case SEGMENT_HEADER, BATCH_HEADER, OPEN_BATCH_HEADER, PAYLOAD, FOOTER -> segments(folder);
            case SNAPSHOT_INDEX -> folder.resolve("snapshot").resolve("INDEX");
            case MARKER -> folder.resolve("snapshot").resolve("MARKER");
            case LOCK -> folder.resolve("LOCK");
            case CATALOG -> folder.resolve("catalog").resolve("data.mdb");
        };
    }

    /** A byte of a structure that is there; payload flips hit stored bytes, not padding. */
    private long offset(Path file, Place place) {
        return switch (place) {
            case SEGMENT_HEADER -> usedSegment() * SEGMENT_BYTES + (gen.coin() ? gen.below(64) : gen.below(PAGE));
            case BATCH_HEADER, OPEN_BATCH_HEADER ->
                usedSegment() * SEGMENT_BYTES + PAGE + (gen.coin() ? gen.below(64 + 4 * 104) : gen.below(PAGE));
            case PAYLOAD -> payloadAt(locations.get(gen.below(locations.size()))) + gen.below(BLOCK_BYTES);
            case FOOTER ->
                (usedSegment() + 1) * SEGMENT_BYTES - (gen.coin() ? 1 + gen.below(32) : PAGE - gen.below(64 + 4 * 104));
            case CATALOG -> gen.coin() ? gen.below(2 * PAGE) : gen.between(2L * PAGE, 12L * PAGE);
            default -> gen.below((int) Damage.bytes(file));
        };
    }

    private long usedSegment() {
        return locations.get(gen.below(locations.size())).segment();
    }

    private static long payloadAt(Location location) {
        return (long) location.segment() * SEGMENT_BYTES + (long) location.page() * PAGE;
    }

    @Test
    void aWrongByteInEveryPartOfAPayloadIsNeverHandedOut() {
        Path folder = copy("every");
        int damaged = 20;
        for (int i = 0; i < damaged; i++) { // the first byte, the last, and some between
            int at = i == 0 ? 0 : i == 1 ? BLOCK_BYTES - 1 : gen.below(BLOCK_BYTES);
            Damage.flip(segments(folder), payloadAt(locations.get(i * 3)) + at, 0x10);
        }
        for (int life = 0; life < 3; life++) {
            if (life == 2) { // a scan of the log must not bring back what is in quarantine
                TestFolders.remove(folder.resolve("snapshot").resolve("MARKER"));
            }
            try (KvStore store = WholeStore.open(options(folder))) {
                assertEquals(
                        life == 2 ? OpeningKind.KILL : OpeningKind.CLEAN,
                        store.openReport().kind());
                assertEquals(blocksSaved - damaged, lookAtAll(store));
                assertEquals(life == 0 ? damaged : 0, store.stats().corruptBlocks(), "life " + life);
            }
        }
    }

    @Test
    void filesThatWereCutOffAreRefusedOrRebuilt() {
        record Cut(Place place, int bytes) {}
        List<Cut> refused = List.of(
                new Cut(Place.PAYLOAD, 0),
                new Cut(Place.PAYLOAD, SEGMENT_BYTES),
                new Cut(Place.PAYLOAD, 5_000),
                new Cut(Place.CATALOG, 0),
                new Cut(Place.CATALOG, 100),
                new Cut(Place.CATALOG, 5 * PAGE));
        for (Cut cut : refused) {
            Path folder = copy("cut");
            Path file = file(folder, cut.place);
            Damage.truncate(file, cut.bytes);
            Map<String, String> before = Damage.contents(folder);
            Refusals.refused(
                    cut.place == Place.CATALOG ? ErrorCode.CATALOG : ErrorCode.SEGMENT_FILE,
                    () -> KvStore.open(options(folder)),
                    file.toString(),
                    cut.bytes + " bytes",
                    "; ");
            assertEquals(before, Damage.contents(folder));
        }
        for (Place place : List.of(Place.MARKER, Place.SNAPSHOT_INDEX, Place.LOCK)) {
            for (int bytes : new int[] {0, 100, 4095}) {
                Path folder = copy("cut");
                Damage.truncate(file(folder, place), bytes);
                try (KvStore store = WholeStore.open(options(folder))) {
                    assertEquals(blocksSaved, lookAtAll(store), place + " of " + bytes + " bytes");
                }
            }
        }
    }

    @Test
    void filesThatAreMissingAreRefusedOrRebuilt() {
        for (Place place : List.of(Place.PAYLOAD, Place.CATALOG)) {
            Path folder = copy("missing");
            Path file = file(folder, place);
            TestFolders.remove(file);
            Map<String, String> before = Damage.contents(folder);
            Refusals.refused(
                    place == Place.CATALOG ? ErrorCode.CATALOG : ErrorCode.SEGMENT_FILE,
                    () -> KvStore.open(options(folder)),
                    file.toString(),
                    "missing",
                    "; ");
            assertEquals(before, Damage.contents(folder));
        }
        for (Place place : List.of(Place.MARKER, Place.SNAPSHOT_INDEX, Place.LOCK)) {
            Path folder = copy("missing");
            TestFolders.remove(file(folder, place));
            try (KvStore store = WholeStore.open(options(folder))) {
                assertEquals(blocksSaved, lookAtAll(store), place + " is missing");
            }
        }
    }

    @Test
    void anotherVersionIsNamedAndLeftAlone() {
        Path folder = copy("version");
        Damage.patchPage(segments(folder), 3L * SEGMENT_BYTES, 8, 7);
        Map<String, String> before = Damage.contents(folder);
        Refusals.refused(
                ErrorCode.OTHER_VERSION,
                () -> KvStore.open(options(folder)),
                "segment 3",
                segments(folder).toString(),
                "version 7",
                "the program that wrote it",
                "Nothing was changed");
        assertEquals(before, Damage.contents(folder));
    }

    @Test
    void aSegmentFileOfAnotherStoreIsNamedAndLeftAlone() {
        Path other = folders.make("other");
        try (KvStore store = WholeStore.open(options(other));
                Modelled modelled = open(store, new Modelled.Model())) {
            modelled.saveAll(Prompt.random(gen, 4), 0, 4);
        }
        Path folder = copy("mixed");
        byte[] foreign = Damage.read(segments(other), 0, (int) Damage.bytes(segments(other)));
        Damage.write(segments(folder), 0, foreign);
        Map<String, String> before = Damage.contents(folder);
        Refusals.refused(
                ErrorCode.OTHER_STORE,
                () -> KvStore.open(options(folder)),
                segments(folder).toString(),
                "not of this store",
                "put this store's own file back",
                "Nothing was changed");
        assertEquals(before, Damage.contents(folder));
    }

    @Test
    void segmentsThatChangedPlacesAreNamedAndLeftAlone() {
        Path folder = copy("exchanged");
        byte[] one = Damage.read(segments(folder), SEGMENT_BYTES, SEGMENT_BYTES);
        byte[] two = Damage.read(segments(folder), 2L * SEGMENT_BYTES, SEGMENT_BYTES);
        Damage.write(segments(folder), SEGMENT_BYTES, two);
        Damage.write(segments(folder), 2L * SEGMENT_BYTES, one);
        Map<String, String> before = Damage.contents(folder);
        Refusals.refused(
                ErrorCode.SEGMENT_HEADER,
                () -> KvStore.open(options(folder)),
                segments(folder).toString(),
                "put each in its place");
        assertEquals(before, Damage.contents(folder));
    }
}
