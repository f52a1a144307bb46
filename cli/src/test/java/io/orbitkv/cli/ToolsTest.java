package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogIdentity;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.StoreOptions;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: the tools for operators say what is so, change only what they say, and end with the exit code of their outcome,
 * whatever they are pointed at.
 * Method: a store that put has filled, damaged by plain writes; commands in this process.
 */
class ToolsTest {
    private static final int BYTES = 300_001;
    private static final String FAMILY = HexFormat.of()
            .formatHex(PromptKeys.family("file", "orbitkv-file", 16 << 10).id());

    private final TestFolders folders = new TestFolders();
    private Path work;
    private Path data;
    private String dataFlag;
    private byte[] content;

    @BeforeEach
    void fill() throws IOException {
        work = folders.make("tools");
        data = work.resolve("data");
        dataFlag = "--data=" + data;
        content = new byte[BYTES];
        new SplittableRandom(7).nextBytes(content);
        Files.write(work.resolve("f.bin"), content);
        good(
                "put",
                dataFlag,
                "--block-bytes=16kb",
                "--cap=24mb",
                work.resolve("f.bin").toString());
    }

    @AfterEach
    void remove() {
        folders.close();
    }

    private static CommandRun good(String... args) {
        return ends(0, args);
    }

    private static CommandRun ends(int exitCode, String... args) {
        CommandRun run = CommandRun.of(args);
        assertEquals(exitCode, run.exitCode(), () -> String.join(" ", args) + ": " + run.err() + run.out());
        assertFalse(run.err().contains("\tat "), run.err());
        return run;
    }

    private void requireContent(Path folder) throws IOException {
        Path out = work.resolve("out.bin");
        good("get", "--data=" + folder, "--block-bytes=16kb", "--prompt=f.bin", "--out=" + out);
        assertArrayEquals(content, Files.readAllBytes(out));
    }

    private void write(Path file, long at, byte[] bytes) throws IOException {
        try (RandomAccessFile opened = new RandomAccessFile(file.toFile(), "rw")) {
            opened.seek(at);
            opened.write(bytes);
        }
    }

    private void damageCatalog() throws IOException {
        for (int page = 2; page < 40; page++) {
            write(data.resolve("catalog/data.mdb"), page * 4096L + 8, new byte[] {-1, -1, -1, -1});
        }
    }

    /** Every file with its bytes, to see that nothing was changed. The lock's page is written by whoever locks. */
    private List<String> state() throws IOException {
        try (Stream<Path> files = Files.walk(data)) {
            return files.filter(Files::isRegularFile)
                    .sorted()
                    .map(file -> {
                        try {
                            return file + " " + Arrays.hashCode(Files.readAllBytes(file));
                        } catch (IOException e) {
                            return file + " " + e;
                        }
                    })
                    .toList();
        }
    }

    @Test
    void inspectGoesDownToTheBytes() throws IOException {
        List<String> before = state();
        CommandRun whole = good("inspect", dataFlag, "--json");
        assertTrue(whole.lastLine().contains("\"whole\":true"), whole.out());
        assertTrue(whole.lastLine().contains(FAMILY) && whole.lastLine().contains("\"blocks\":19"), whole.out());
        assertTrue(good("inspect", dataFlag, "--segment=0").out().contains("its footer counts"));
        assertTrue(good("inspect", dataFlag, "--segment=0", "--batch=1", "--json")
                .lastLine()
                .contains("\"page\":2,"));
        CommandRun block = good("inspect", dataFlag, "--block=0:2", "--json");
        assertTrue(block.lastLine().contains("\"matches\":true"), block.out());
        ends(1, "inspect", dataFlag, "--block=0:3");
        ends(2, "inspect", dataFlag, "--segment=5000");
        ends(2, "inspect", dataFlag, "--batch=1");
        ends(2, "inspect", dataFlag, "--block=x");
        assertEquals(before, state());
    }

    @Test
    void explainNamesTheReasonOfEachMiss() throws IOException {
        CommandRun hits = good("explain", dataFlag, "--prompt=f.bin", "--block-bytes=16kb", "--blocks=19", "--json");
        assertEquals(19, hits.number("hit_blocks"));
        String[] none = {"explain", dataFlag, "--prompt=other", "--block-bytes=16kb", "--blocks=1"};
        assertTrue(ends(1, none).out().contains("never stored"));
        String[] family = {"explain", dataFlag, "--prompt=f.bin", "--block-bytes=32kb", "--blocks=1"};
        assertTrue(ends(1, family).out().contains("differs in block bytes"));
        try (KvStore store =
                KvStore.open(StoreOptions.in(data).poolBytes(16 << 20).capBytes(0))) {
            store.clear(store.openFamily(PromptKeys.family("file", "orbitkv-file", 16 << 10)));
        }
        String[] cleared = {"explain", dataFlag, "--prompt=f.bin", "--block-bytes=16kb", "--blocks=1"};
        CommandRun run = ends(1, cleared);
        assertTrue(run.out().contains("cleared") || run.out().contains("given up"), run.out());
    }

    @Test
    void reported_LMCache_2273_verifyRepairsWhatCanBeDerivedAndQuarantinesTheRest() throws IOException {
        Path segment = data.resolve("segments/000000000000.seg");
        write(segment, 2 * 4096 + 5, new byte[] {1, 2, 3});
        write(segment, 0, new byte[4096]);
        CommandRun found = ends(1, "verify", dataFlag, "--json");
        assertEquals(2, found.number("problems_found"));
        assertTrue(found.lastLine().contains("\"file_offset\":8192"), found.out());
        CommandRun repaired = good("verify", dataFlag, "--repair");
        assertTrue(repaired.out().contains("put the block in quarantine"), repaired.out());
        assertEquals(0, good("verify", dataFlag, "--json").number("problems_found"));
        String[] explain = {"explain", dataFlag, "--prompt=f.bin", "--block-bytes=16kb", "--blocks=1"};
        assertTrue(ends(1, explain).out().contains("quarantine"));
    }

    @Test
    void recoverLooksMeasuresAndMakesALostCatalogAgain() throws IOException {
        List<String> before = state();
        assertTrue(good("recover", dataFlag, "--json").lastLine().contains("\"last_end\":\"clean\""));
        good("recover", dataFlag, "--rebuild-catalog");
        assertEquals(before, state());
        assertTrue(good("recover", dataFlag, "--time", "--json").number("index_blocks") == 19);
        damageCatalog();
        before = state();
        assertTrue(ends(3, "recover", dataFlag).err().contains("--rebuild-catalog"));
        assertTrue(ends(1, "recover", dataFlag, "--rebuild-catalog", "--json")
                .lastLine()
                .contains("\"applied\":false"));
        assertEquals(before, state());
        good("recover", dataFlag, "--rebuild-catalog", "--apply");
        good("verify", dataFlag);
        requireContent(data);
        try (Stream<Path> files = Files.list(data.resolve("catalog"))) {
            assertTrue(files.anyMatch(file -> file.toString().contains("data.mdb.old-")));
        }
        Files.delete(data.resolve("catalog/data.mdb"));
        good("recover", dataFlag, "--rebuild-catalog", "--apply");
        requireContent(data);
    }

    @Test
    void aCatalogIsNotRebuiltWhereWhatWasClearedCouldComeBack() throws IOException {
        Path spare = data.resolve("catalog/SPARE");
        byte[] old = Files.readAllBytes(spare);
        requireContent(data); // another life, whose epoch stands in the lock page
        byte[] now = Files.readAllBytes(spare);
        damageCatalog();
        Files.write(spare, old);
        List<String> before = state();
        CommandRun stale = ends(3, "recover", dataFlag, "--rebuild-catalog", "--apply");
        assertTrue(stale.err().contains("what was cleared could come back"), stale.err());
        now[40] ^= 1;
        Files.write(spare, now);
        ends(3, "recover", dataFlag, "--rebuild-catalog", "--apply");
        now[40] ^= 1;
        Files.write(spare, old);
        assertEquals(before, state());
        Files.write(spare, now);
        good("recover", dataFlag, "--rebuild-catalog", "--apply");
        requireContent(data);
    }

    @Test
    void aStoreOfAFutureVersionIsRefusedUnharmed() throws IOException {
        assertTrue(good("migrate", dataFlag).out().contains("nothing is to be done"));
        Path future = work.resolve("future");
        Files.createDirectories(future.resolve("catalog"));
        CatalogIdentity identity = new CatalogIdentity(3, 1, 2, 1 << 20, 8, 16 << 20, 0);
        Catalog.create(future.resolve("catalog").toString(), identity, 1 << 20, WindowProbe.NONE)
                .close();
        data = future;
        List<String> before = state();
        for (String command : List.of("migrate", "inspect", "verify", "recover")) {
            CommandRun run = ends(3, command, "--data=" + future);
            assertTrue(run.err().contains("OKV-204") && run.err().contains("program that wrote it"), run.err());
        }
        Files.delete(future.resolve("LOCK"));
        assertEquals(before, state());
    }

    @Test
    void aFamilyMovesBetweenStoresOfOtherSizes() throws IOException {
        Path file = work.resolve("family.okv");
        CommandRun exported = good("export", dataFlag, "--family=" + FAMILY.substring(0, 8), "--out=" + file, "--json");
        assertEquals(19, exported.number("blocks"));
        Path other = work.resolve("other");
        CommandRun first = good("import", "--data=" + other, "--cap=100mb", "--json", file.toString());
        assertEquals(19, first.number("imported_blocks"));
        requireContent(other);
        CommandRun again = good("import", "--data=" + other, "--json", file.toString());
        assertEquals(19, again.number("present_blocks"));
        ends(2, "import", "--data=" + other, "--family=00", file.toString());
        ends(2, "export", dataFlag, "--family=00", "--out=" + file);

        byte[] bytes = Files.readAllBytes(file);
        Path cut = Files.write(work.resolve("cut"), Arrays.copyOf(bytes, bytes.length - 30));
        CommandRun half = ends(2, "import", "--data=" + work.resolve("third"), "--cap=24mb", cut.toString());
        assertTrue(half.err().contains("cut off"), half.err());
        bytes[bytes.length - 100] ^= 1;
        Path rotten = Files.write(work.resolve("rotten"), bytes);
        CommandRun wrong =
                ends(1, "import", "--data=" + work.resolve("fourth"), "--cap=24mb", "--json", rotten.toString());
        assertEquals(1, wrong.number("wrong_blocks"));
        assertEquals(18, wrong.number("imported_blocks"));
    }

    @Test
    void badFoldersAreRefusedByEveryTool() throws IOException {
        Path empty = Files.createDirectory(work.resolve("empty"));
        Path foreign = Files.createDirectory(work.resolve("foreign"));
        Files.writeString(foreign.resolve("notes.txt"), "x");
        Path plain = Files.writeString(work.resolve("plain"), "x");
        String out = "--out=" + work.resolve("x.okv");
        for (Path bad : List.of(work.resolve("none"), empty, foreign, plain)) {
            String flag = "--data=" + bad;
            for (String command : List.of("inspect", "verify", "recover", "migrate")) {
                ends(3, command, flag);
            }
            ends(3, "verify", flag, "--repair");
            ends(3, "recover", flag, "--rebuild-catalog", "--apply");
            ends(3, "explain", flag, "--prompt=p");
            ends(3, "export", flag, "--family=" + FAMILY, out);
        }
        assertEquals(0, Files.list(empty).count());
        assertEquals(1, Files.list(foreign).count());
    }

    @Test
    void aSegmentFileThatIsCutOrNoFileIsNamed() throws IOException {
        Path segment = data.resolve("segments/000000000000.seg");
        try (RandomAccessFile file = new RandomAccessFile(segment.toFile(), "rw")) {
            file.setLength(1 << 20);
        }
        for (String command : List.of("inspect", "verify", "recover", "migrate")) {
            CommandRun run = ends(1, command, dataFlag);
            assertTrue((run.err() + run.out()).contains("000000000000.seg"), run.err() + run.out());
        }
        Files.delete(segment);
        Files.createDirectory(segment);
        ends(3, "inspect", dataFlag);
        ends(3, "verify", dataFlag);
        damageCatalog();
        for (String command : List.of("inspect", "recover", "migrate")) {
            assertTrue(ends(3, command, dataFlag).err().contains("OKV-401"));
        }
        ends(1, "verify", dataFlag);
    }

    @Test
    void toolsThatWriteRefuseAStoreThatIsOpen() {
        try (KvStore store =
                KvStore.open(StoreOptions.in(data).poolBytes(16 << 20).capBytes(0))) {
            assertTrue(good("inspect", dataFlag, "--json").lastLine().contains("\"in_use\":true"));
            good("recover", dataFlag);
            for (String[] args : new String[][] {
                {"verify", dataFlag, "--repair"},
                {"recover", dataFlag, "--time"},
                {"recover", dataFlag, "--rebuild-catalog", "--apply"}
            }) {
                assertTrue(ends(3, args).err().contains("OKV-202"), args[0]);
            }
            assertEquals(0, store.stats().corruptBlocks());
        }
    }
}
