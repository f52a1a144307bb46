package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.WindowProbe;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: what a batch of the catalog committed is read back whole at the next opening, and a damaged file is refused with
 * a clear error: it never kills the JVM, and never shows another state than the last.
 *
 * <p>Method: random batches against a model, many openings; then every kind of damage to copies of the file, bit flips
 * at seeded places among them, with the outcome compared to the undamaged contents.
 */
final class CatalogTest {
    private static final long MAP_BYTES = 1 << 20;
    private static final int FLIPS = Integer.getInteger("orbitkv.flips", 300);
    private static final CatalogIdentity IDENTITY = new CatalogIdentity(
            Catalog.FORMAT_VERSION,
            0x0123456789ABCDEFL,
            0xFEDCBA9876543210L,
            1 << 20,
            14,
            16 << 20,
            1_700_000_000_000L);

    @TempDir
    Path folder;

    /** What the catalog has to hold. */
    private static final class Model {
        final Map<Long, NamespaceRow> namespaces = new TreeMap<>(Long::compareUnsigned);
        final Map<Integer, SegmentRow> segments = new TreeMap<>();
        final Map<String, QuarantineRow> quarantine = new HashMap<>();
        final long[] counters = new long[CatalogCounter.values().length];

        void check(CatalogContents contents) {
            assertEquals(IDENTITY, contents.identity());
            assertEquals(new ArrayList<>(namespaces.values()), contents.namespaces());
            assertEquals(new ArrayList<>(segments.values()), contents.segments());
            assertEquals(quarantine.size(), contents.quarantine().size());
            assertTrue(quarantine.values().containsAll(contents.quarantine()));
            for (CatalogCounter counter : CatalogCounter.values()) {
                assertEquals(counters[counter.ordinal()], contents.counter(counter), counter.name());
            }
        }
    }

    private static void change(Catalog.Batch batch, Model model, Gen gen) {
        switch (gen.below(5)) {
            case 0:
                long id64 = gen.below(40);
                byte[] id = new Gen(id64).bytes(NamespaceRow.ID_BYTES);
                NamespaceRow namespace = new NamespaceRow(id64, id, gen.nextInt(), gen.bytes(gen.size(0, 6000)));
                batch.putNamespace(namespace);
                model.namespaces.put(id64, namespace);
                break;
            case 1:
                int number = gen.below(300);
                SegmentRow segment = new SegmentRow(
                        number,
                        gen.nextLong(),
                        SegmentRow.State.values()[gen.below(4)],
                        gen.nextInt(),
                        gen.nextInt(),
                        gen.nextInt());
                batch.putSegment(segment);
                model.segments.put(number, segment);
                break;
            case 2:
                QuarantineRow place =
                        new QuarantineRow(gen.below(20), gen.below(5), gen.below(256), gen.nextLong(), gen.nextLong());
                batch.putQuarantine(place);
                model.quarantine.put(place.segment() + " " + place.useSequence() + " " + place.page(), place);
                break;
            case 3:
                if (!model.quarantine.isEmpty()) {
                    String first = model.quarantine.keySet().iterator().next();
                    batch.removeQuarantine(Objects.requireNonNull(model.quarantine.remove(first)));
                }
                break;
            default:
                CatalogCounter counter = CatalogCounter.values()[gen.below(CatalogCounter.values().length)];
                batch.addCounter(counter, 7);
                model.counters[counter.ordinal()] += 7;
        }
    }

    /** Makes a catalog in the test's folder with random contents. */
    private Model fill(Gen gen, int batches) {
        Model model = new Model();
        try (Catalog catalog = Catalog.create(folder.toString(), IDENTITY, MAP_BYTES, WindowProbe.NONE)) {
            for (int i = 0; i < batches; i++) {
                try (Catalog.Batch batch = catalog.begin()) {
                    for (int n = gen.between(1, 6); n > 0; n--) {
                        change(batch, model, gen);
                    }
                    assertEquals(catalog.transaction() + 1, batch.commit());
                }
            }
        }
        return model;
    }

    @Test
    void whatWasCommittedIsReadBack() throws IOException {
        Gen gen = new Gen(Seed.of(CatalogTest.class));
        Model model = fill(gen, 5);
        for (int life = 0; life < 30; life++) {
            try (Catalog catalog = Catalog.open(folder.toString(), WindowProbe.NONE)) {
                model.check(catalog.atOpening());
                for (int i = gen.below(6); i > 0; i--) {
                    try (Catalog.Batch batch = catalog.begin()) {
                        for (int n = gen.between(1, 12); n > 0; n--) {
                            change(batch, model, gen);
                        }
                        batch.commit();
                    }
                }
                try (Catalog.Batch dropped = catalog.begin()) {
                    dropped.setCounter(CatalogCounter.EPOCH, -1);
                }
                assertEquals(model.counters[CatalogCounter.EPOCH.ordinal()], catalog.counter(CatalogCounter.EPOCH));
                model.check(Catalog.read(folder.toString())); // beside the open one
            }
        }
        Path file = folder.resolve("data.mdb");
        assertEquals(MAP_BYTES, Files.size(file));
        try (HostFolder host = HostFolder.open(folder)) {
            assertTrue(host.allocatedBytes("data.mdb") >= MAP_BYTES, "all blocks are taken");
        }
    }

    @Test
    void aCommitIsACrashWindow() {
        List<String> seen = new ArrayList<>();
        WindowProbe probe = new WindowProbe() {
            @Override
            public void enter(CrashWindow window) {
                seen.add("enter " + window);
            }

            @Override
            public void leave(CrashWindow window) {
                seen.add("leave " + window);
            }
        };
        Catalog.create(folder.toString(), IDENTITY, MAP_BYTES, probe).close();
        assertEquals(List.of("enter CATALOG_COMMIT", "leave CATALOG_COMMIT"), seen);
    }

    @Test
    void aFullCatalogSaysSoAndKeepsWhatItHad() {
        Model model = fill(new Gen(1), 3);
        try (Catalog catalog = Catalog.open(folder.toString(), WindowProbe.NONE)) {
            OrbitKvException full = assertThrows(OrbitKvException.class, () -> {
                for (int round = 0; round < 1000; round++) {
                    try (Catalog.Batch batch = catalog.begin()) {
                        for (int i = 0; i < 100; i++) {
                            batch.putQuarantine(new QuarantineRow(round, 1 << 20, i, 2, 3));
                        }
                        batch.commit();
                        for (int i = 0; i < 100; i++) {
                            QuarantineRow row = new QuarantineRow(round, 1 << 20, i, 2, 3);
                            model.quarantine.put(round + " " + (1 << 20) + " " + i, row);
                        }
                    }
                }
            });
            assertEquals(ErrorCode.CATALOG_FULL, full.code());
            assertTrue(full.getMessage().contains("data.mdb"), full.getMessage());
            model.check(Catalog.read(folder.toString()));
        }
        model.check(Catalog.read(folder.toString()));
    }

    @Test
    void twoNamespacesWithOneShortIdAreRefused() {
        fill(new Gen(2), 1);
        try (Catalog catalog = Catalog.open(folder.toString(), WindowProbe.NONE);
                Catalog.Batch batch = catalog.begin()) {
            batch.putNamespace(new NamespaceRow(99, new byte[32], 1, new byte[3]));
            batch.putNamespace(new NamespaceRow(99, new byte[32], 2, new byte[4]));
            byte[] other = new byte[32];
            other[31] = 1;
            OrbitKvException e = assertThrows(
                    OrbitKvException.class, () -> batch.putNamespace(new NamespaceRow(99, other, 1, new byte[0])));
            assertEquals(ErrorCode.BAD_FAMILY, e.code());
        }
    }

    @Test
    void missingTruncatedAndForeignFilesAreRefused() throws IOException {
        refused("is missing");
        fill(new Gen(3), 20);
        Path file = folder.resolve("data.mdb");
        byte[] good = Files.readAllBytes(file);
        for (int length : new int[] {0, 1, 4095, 4096, 8192, 12288, (int) MAP_BYTES - 4096, (int) MAP_BYTES - 1}) {
            Files.write(file, java.util.Arrays.copyOf(good, length));
            refused("cut off");
        }
        Files.write(file, "this is no catalog".repeat(60_000).getBytes(StandardCharsets.US_ASCII));
        refused("data.mdb");
        Files.write(file, new byte[(int) MAP_BYTES]);
        refused("meta page");
        byte[] random = new Gen(4).bytes((int) MAP_BYTES);
        Files.write(file, random);
        refused("meta page");
        assertTrue(java.util.Arrays.equals(random, Files.readAllBytes(file)), "a refused file is not changed");
        Files.write(file, good);
        Catalog.open(folder.toString(), WindowProbe.NONE).close();
    }

    private void refused(String part) {
        refused(part, part);
    }

    private void refused(String part, String what) {
        OrbitKvException e = assertThrows(
                OrbitKvException.class,
                () -> Catalog.open(folder.toString(), WindowProbe.NONE).close(),
                what);
        assertEquals(ErrorCode.CATALOG, e.code(), e.getMessage());
        assertTrue(e.getMessage().contains(part), e.getMessage());
        assertTrue(e.getMessage().contains(folder.toString()), e.getMessage());
    }

    @Test
    void anotherVersionIsRefusedAsSuch() {
        CatalogIdentity other = new CatalogIdentity(3, 1, 2, 1 << 20, 14, 16 << 20, 0);
        Catalog.create(folder.toString(), other, MAP_BYTES, WindowProbe.NONE).close();
        OrbitKvException e =
                assertThrows(OrbitKvException.class, () -> Catalog.open(folder.toString(), WindowProbe.NONE));
        assertEquals(ErrorCode.OTHER_VERSION, e.code());
    }

    /** A bit of every byte of both meta pages' fields, and hundreds of bits anywhere in the pages that are in use. */
    @Test
    void aFlippedBitIsFoundOrMeansNothing() throws IOException {
        Gen gen = new Gen(Seed.of(CatalogTest.class));
        Model model = fill(gen, 60);
        Path file = folder.resolve("data.mdb");
        byte[] good = Files.readAllBytes(file);
        int lastUsed = good.length - 1;
        while (good[lastUsed] == 0) {
            lastUsed--;
        }
        List<Integer> bits = new ArrayList<>();
        for (int meta = 0; meta < 2; meta++) {
            for (int at = 0; at < 16 + 136; at++) {
                bits.add((meta * 4096 + at) * 8 + gen.below(8));
            }
        }
        for (int i = 0; i < FLIPS; i++) {
            bits.add(gen.between(0, (lastUsed + 1) * 8 - 1));
        }
        int found = 0;
        for (int bit : bits) {
            byte[] bad = good.clone();
            bad[bit / 8] ^= (byte) (1 << bit % 8);
            Files.write(file, bad);
            try {
                // What is still taken must be the last state, and LMDB must be able to work on it.
                model.check(Catalog.read(folder.toString()));
                try (Catalog catalog = Catalog.open(folder.toString(), WindowProbe.NONE);
                        Catalog.Batch batch = catalog.begin()) {
                    batch.addCounter(CatalogCounter.KILLS, 1);
                    batch.commit();
                }
                model.counters[CatalogCounter.KILLS.ordinal()]++;
                model.check(Catalog.read(folder.toString()));
                model.counters[CatalogCounter.KILLS.ordinal()]--;
            } catch (OrbitKvException e) {
                assertEquals(ErrorCode.CATALOG, e.code(), "bit " + bit);
                found++;
            }
        }
        assertTrue(found > bits.size() / 10, found + " of " + bits.size());
        // Fields of the meta pages must be found; of the last page its upper bytes, since one some pages further on is
        // as
        // good as the right one.
        for (int at : new int[] {16, 20, 24, 32, 40, 44, 46, 88, 92, 94, 96, 104, 112, 120, 128, 139, 144}) {
            for (int meta = 0; meta < 2; meta++) {
                byte[] bad = good.clone();
                bad[meta * 4096 + at] ^= 4;
                Files.write(file, bad);
                refused("data.mdb", "meta page " + meta + " offset " + at);
            }
        }
    }

    @Test
    void closedCatalogsAndEndedBatchesAreRefused() {
        Catalog catalog = Catalog.create(folder.toString(), IDENTITY, MAP_BYTES, WindowProbe.NONE);
        Catalog.Batch batch = catalog.begin();
        batch.commit();
        assertEquals(
                ErrorCode.BUG,
                assertThrows(OrbitKvException.class, () -> batch.setCounter(CatalogCounter.EPOCH, 1))
                        .code());
        batch.close();
        catalog.close();
        catalog.close();
        assertEquals(
                ErrorCode.CLOSED,
                assertThrows(OrbitKvException.class, catalog::begin).code());
        assertFalse(Catalog.exists(folder.resolve("elsewhere").toString()));
    }
}
