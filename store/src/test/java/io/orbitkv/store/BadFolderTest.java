package io.orbitkv.store;

import static io.orbitkv.store.Refusals.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.ErrorCode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/**
 * Goal: a folder or a size that can't work is refused with a code, the name of what is wrong and a remedy, and what is
 * there stays as it was. Method: one wrong thing each, the rest as it should be.
 */
class BadFolderTest {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;

    private final TestFolders folders = new TestFolders();

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private static StoreOptions options(Path folder) {
        return WholeStore.optionsIn(folder)
                .poolBytes(MIB)
                .capBytes(4 * MIB)
                .segmentBytes(64 * KIB)
                .blockBytesLargest(8 * KIB);
    }

    @Test
    void aPathThatCanNotBeAFolderIsRefused() throws Exception {
        Path file = Files.createFile(folders.make("file").resolve("plain"));
        refused(
                ErrorCode.FOLDER_UNUSABLE,
                () -> KvStore.open(options(file)),
                file.toString(),
                "not a folder",
                "choose another path");
        refused(
                ErrorCode.FOLDER_UNUSABLE,
                () -> KvStore.open(options(file.resolve("below"))),
                file.toString(),
                "is not a folder",
                "choose another path");
        Path missing = file.resolveSibling("missing");
        refused(
                ErrorCode.FOLDER_UNUSABLE,
                () -> KvStore.open(options(missing.resolve("below"))),
                missing.toString(),
                "does not exist",
                "create it first");
        refused(ErrorCode.FOLDER_UNUSABLE, () -> KvStore.open(options(Path.of("/proc/orbitkv"))), "/proc/orbitkv");
        assertEquals(0, Files.size(file));
    }

    /** Root may write anywhere, so the folder is made immutable, where the file system knows that. */
    @Test
    void aFolderThatCanNotBeWrittenIsRefused() throws Exception {
        Path folder = folders.make("immutable");
        Assumptions.assumeTrue(chattr("+i", folder), "needs chattr and the right to use it");
        try {
            refused(
                    ErrorCode.FOLDER_UNUSABLE,
                    () -> KvStore.open(options(folder)),
                    folder.toString(),
                    "not writable",
                    "change its owner or mode");
        } finally {
            assertTrue(chattr("-i", folder));
        }
        KvStore.open(options(folder)).close();
    }

    private static boolean chattr(String flag, Path folder) throws InterruptedException {
        try {
            Process chattr = new ProcessBuilder("chattr", flag, folder.toString())
                    .redirectErrorStream(true)
                    .start();
            return chattr.waitFor(10, TimeUnit.SECONDS) && chattr.exitValue() == 0;
        } catch (java.io.IOException e) {
            return false;
        }
    }

    @Test
    void aFolderThatHoldsOtherThingsIsRefusedAndTheyStay() throws Exception {
        Path folder = folders.make("foreign");
        Files.writeString(folder.resolve("thesis.tex"), "priceless");
        Map<String, String> before = Damage.contents(folder);
        refused(
                ErrorCode.FOREIGN_FILE,
                () -> KvStore.open(options(folder)),
                folder.toString(),
                "thesis.tex",
                "choose an empty folder");
        assertEquals(before, Damage.contents(folder));
    }

    @Test
    void aFolderInUseByThisProcessIsRefusedAndGoesOnServing() {
        Path folder = folders.make("in-use");
        try (KvStore store = WholeStore.open(options(folder))) {
            refused(
                    ErrorCode.FOLDER_IN_USE,
                    () -> KvStore.open(options(folder)),
                    folder.toString(),
                    "process " + ProcessHandle.current().pid(),
                    "stop that process or choose another folder");
            serves(store);
        }
    }

    /** Holds a store open until its input ends. */
    static final class Holder {
        private Holder() {}

        public static void main(String[] args) throws Exception {
            try (KvStore store = WholeStore.open(options(Path.of(args[0])))) {
                serves(store);
                System.out.println("open");
                System.in.read();
                serves(store);
            }
        }
    }

    @Test
    void aFolderInUseByAnotherProcessIsRefusedAndThatOneGoesOn() throws Exception {
        Path folder = folders.make("in-use");
        Process holder = ChildJvm.start(Holder.class, folder.toString());
        try {
            ChildJvm.awaitLine(holder, "open");
            refused(
                    ErrorCode.FOLDER_IN_USE,
                    () -> KvStore.open(options(folder)),
                    folder.toString(),
                    "process " + holder.pid(),
                    "stop that process or choose another folder");
            holder.outputWriter().close();
            assertTrue(holder.waitFor(30, TimeUnit.SECONDS));
            assertEquals(0, holder.exitValue());
            try (KvStore store = WholeStore.open(options(folder))) {
                serves(store);
            }
        } finally {
            holder.destroyForcibly();
        }
    }

    private static void serves(KvStore store) {
        Gen gen = new Gen(3);
        ShardHandle shard = store.openFamily(Modelled.family(8 * KIB).build()).shard(0);
        try (Modelled modelled = new Modelled(store, shard, new Modelled.Model(), 8)) {
            Prompt prompt = Prompt.random(gen, 8);
            modelled.saveAll(prompt, 0, 8);
            modelled.written();
            assertEquals(8, modelled.restore(prompt, 0, 8, gen));
        }
    }

    @Test
    void sizesThatAreTooSmallAreRefusedWithTheSmallestThatWork() {
        Path folder = folders.make("sizes");
        long[] smallest = {1};
        String refusal = refused(
                        ErrorCode.CAP_TOO_SMALL,
                        () -> KvStore.open(options(folder).capBytes(smallest[0])),
                        "cap of 1 bytes",
                        "at least")
                .getMessage();
        smallest[0] = Long.parseLong(refusal.replaceAll(".*cap of at least (\\d+) bytes.*", "$1"));
        refused(
                ErrorCode.CAP_TOO_SMALL,
                () -> KvStore.open(options(folder).capBytes(smallest[0] - 64 * KIB)),
                "give a cap of at least " + smallest[0]);
        refused(
                ErrorCode.POOL_TOO_SMALL,
                () -> KvStore.open(options(folder).segmentBytes(256 * KIB)),
                "pool of " + MIB,
                "at least " + 2 * MIB,
                "segments smaller");
        refused(
                ErrorCode.NO_SPACE,
                () -> KvStore.open(options(folder)
                        .capBytes(1L << 55)
                        .segmentBytes(64 * MIB)
                        .poolBytes(512 * MIB)),
                folder.toString(),
                "are missing",
                "smaller cap");
        Map<String, String> before = Damage.contents(folder);
        assertTrue(before.size() <= 1, () -> "nothing was made: " + before);
        try (KvStore store = WholeStore.open(options(folder).capBytes(smallest[0]))) {
            serves(store);
            assertTrue(store.stats().ownBytes() <= smallest[0], store.stats()::toString);
        }
    }

    @Test
    void otherSizesThanTheStoreHasAreRefusedAndChangeNothing() {
        Path folder = folders.make("geometry");
        KvStore.open(options(folder)).close();
        Map<String, String> before = Damage.contents(folder);
        refused(
                ErrorCode.OTHER_GEOMETRY,
                () -> KvStore.open(options(folder).segmentBytes(128 * KIB)),
                folder.toString(),
                "segments of " + 64 * KIB,
                "another folder");
        assertEquals(before, Damage.contents(folder));
        try (KvStore store = WholeStore.open(options(folder).segmentBytes(0))) {
            serves(store); // without a size it takes the store's own
        }
    }
}
