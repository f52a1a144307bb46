package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.WindowProbe;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: of the catalogs of two folders each is whole by itself but for the other's segments; one that a death kept the last
 * commit from is brought up; one that missed more, or went another way, is found out. Method: commits that end between the two
 * files, and files that are copied away and put back.
 */
class CatalogCopiesTest {
    private static final long MAP_BYTES = 1 << 20;
    private static final CatalogIdentity IDENTITY =
            new CatalogIdentity(Catalog.FORMAT_VERSION_FOLDERS, 1, 2, 1 << 20, 14, 32 << 20, 1_700_000_000_000L, 2, 0);
    private static final QuarantineRow PLACE = new QuarantineRow(3, 7, 2, 1, 1);

    @TempDir
    Path temp;

    private List<String> folders;

    @BeforeEach
    void make() {
        folders =
                List.of(temp.resolve("first").toString(), temp.resolve("second").toString());
        try (Catalog catalog = Catalog.create(folders.get(0), IDENTITY, MAP_BYTES, WindowProbe.NONE)) {
            catalog.add(1, folders.get(1), MAP_BYTES);
            commit(catalog, 1);
        }
    }

    private static void commit(Catalog catalog, int epoch) {
        try (Catalog.Batch batch = catalog.begin()) {
            batch.putNamespace(new NamespaceRow(5, new Gen(5).bytes(NamespaceRow.ID_BYTES), epoch, new byte[3]));
            batch.addCounter(CatalogCounter.CLEARS, 1);
            batch.putSegment(new SegmentRow(2, 7, SegmentRow.State.SEALED, 1, 2, 3));
            batch.putSegment(new SegmentRow(3, 7 + epoch, SegmentRow.State.SEALED, 1, 2, 3));
            batch.putQuarantine(PLACE);
            batch.commit();
        }
    }

    private CatalogCopies read() {
        return new CatalogCopies(folders.stream().map(Catalog::read).toList());
    }

    private static int epoch(CatalogContents contents) {
        return contents.namespaces().get(0).epoch();
    }

    @Test
    void eachFileHoldsItsSegmentsAndAllElse() {
        CatalogCopies copies = read();
        for (int i = 0; i < 2; i++) {
            assertEquals(IDENTITY.inFolder(i), copies.of(i).identity());
            assertEquals(1, copies.of(i).segments().size());
            assertEquals(2 + i, copies.of(i).segments().get(0).segment());
            assertEquals(1, epoch(copies.of(i)));
            assertEquals(1, copies.of(i).counter(CatalogCounter.CLEARS));
            assertTrue(copies.isInStep(i));
            assertFalse(copies.isBehind(i));
        }
        assertEquals(2, copies.together().segments().size());
        assertEquals(List.of(PLACE), copies.together().quarantine());
        assertEquals(1, copies.together().transaction());
    }

    /** Dies between the commits to the two files. */
    private static final class DiesBetween implements WindowProbe {
        private int commits = -1;

        @Override
        public void enter(CrashWindow window) {
            if (commits >= 0 && ++commits == 2) {
                throw new IllegalStateException("died");
            }
        }

        @Override
        public void leave(CrashWindow window) {}
    }

    private void commitHalf(int epoch) {
        DiesBetween probe = new DiesBetween();
        try (Catalog catalog = Catalog.open(folders, read(), probe)) {
            probe.commits = 0;
            assertThrows(IllegalStateException.class, () -> commit(catalog, epoch));
            OrbitKvException refused = assertThrows(OrbitKvException.class, catalog::begin);
            assertEquals(ErrorCode.CATALOG, refused.code());
            assertTrue(refused.getMessage().contains(folders.get(1)), refused.getMessage());
        }
    }

    @Test
    void aFileThatLacksTheLastCommitIsBroughtUp() {
        commitHalf(2);
        CatalogCopies copies = read();
        assertTrue(copies.isInStep(1) && copies.isBehind(1) && !copies.isBehind(0));
        assertEquals(2, epoch(copies.together()));
        assertEquals(1, epoch(copies.of(1)));
        try (Catalog catalog = Catalog.open(folders, copies, WindowProbe.NONE)) {
            catalog.level();
        }
        copies = read();
        assertFalse(copies.isBehind(1));
        assertEquals(2, epoch(copies.of(1)));
        assertEquals(copies.of(0).counters(), copies.of(1).counters());
        // What only its own file says of a segment is not known elsewhere: the log tells.
        assertEquals(8, copies.of(1).segments().get(0).useSequence());
    }

    @Test
    void aFileThatMissedMoreIsFoundOut() throws IOException {
        Path second = Path.of(folders.get(1), "data.mdb");
        byte[] old = Files.readAllBytes(second);
        for (int epoch = 2; epoch < 4; epoch++) {
            try (Catalog catalog = Catalog.open(folders, read(), WindowProbe.NONE)) {
                commit(catalog, epoch);
            }
        }
        byte[] now = Files.readAllBytes(second);
        Files.write(second, old);
        assertFalse(read().isInStep(1));
        assertTrue(read().isInStep(0));
        Files.write(second, now);
        assertTrue(read().isInStep(1));
    }

    /** Both files went on without the other one, and have come equally far. */
    @Test
    void filesThatWentDifferentWaysAreFoundOut() throws IOException {
        Path[] files = {Path.of(folders.get(0), "data.mdb"), Path.of(folders.get(1), "data.mdb")};
        byte[][] apart = new byte[2][];
        byte[][] start = {Files.readAllBytes(files[0]), Files.readAllBytes(files[1])};
        for (int kept = 0; kept < 2; kept++) {
            Files.write(files[0], start[0]);
            Files.write(files[1], start[1]);
            Files.delete(files[1 - kept]);
            CatalogContents[] read = new CatalogContents[2];
            read[kept] = Catalog.read(folders.get(kept));
            try (Catalog catalog = Catalog.open(folders, new CatalogCopies(Arrays.asList(read)), WindowProbe.NONE)) {
                catalog.add(1 - kept, folders.get(1 - kept), MAP_BYTES);
                commit(catalog, 2);
            }
            assertEquals(2, epoch(Catalog.read(folders.get(1 - kept))), "a file that was added has all commits");
            apart[kept] = Files.readAllBytes(files[kept]);
        }
        Files.write(files[0], apart[0]);
        Files.write(files[1], apart[1]);
        CatalogCopies copies = read();
        assertEquals(copies.of(0).counter(CatalogCounter.COMMITS), copies.of(1).counter(CatalogCounter.COMMITS));
        assertTrue(Stream.of(0, 1).anyMatch(number -> !copies.isInStep(number)));
    }
}
