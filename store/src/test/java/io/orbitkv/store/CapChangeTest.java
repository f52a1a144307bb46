package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.recovery.OpeningKind;
import io.orbitkv.store.Modelled.Model;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Goal: a store follows its cap, at openings and while it runs, keeps what the new cap holds, and says where it can't.
 * Method: real folders, one and two, whose st_blocks are looked at; every restored byte is judged.
 */
@Tag("long")
class CapChangeTest {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;
    private static final int BLOCK_BYTES = 7_000;
    private static final int PROMPT_BLOCKS = 8;
    private static final long WAIT_MILLIS = 60_000;

    private final Gen gen = new Gen(Seed.of(CapChangeTest.class));
    private final TestFolders folders = new TestFolders();
    private final List<Prompt> prompts = new ArrayList<>();
    private final Model model = new Model();

    @AfterEach
    void removeFolders() {
        folders.close();
    }

    private static StoreOptions options(long capBytes, Path... paths) {
        return StoreOptions.inFolders(List.of(paths))
                .poolBytes(MIB)
                .capBytes(capBytes)
                .segmentBytes(64 * KIB)
                .blockBytesLargest(8 * KIB)
                .pageKind(PageKind.SMALL);
    }

    private Modelled modelled(KvStore store) {
        return new Modelled(
                store, store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0), model, PROMPT_BLOCKS);
    }

    private void save(Modelled modelled, long bytes) {
        for (long done = 0; done < bytes; done += (long) PROMPT_BLOCKS * BLOCK_BYTES) {
            Prompt prompt = Prompt.random(gen, PROMPT_BLOCKS);
            prompts.add(prompt);
            modelled.saveAll(prompt, 0, PROMPT_BLOCKS);
        }
        modelled.written();
    }

    /** How many blocks are there, each of them right. */
    private int found(Modelled modelled) {
        int found = 0;
        for (Prompt prompt : prompts) {
            found += modelled.restore(prompt, 0, PROMPT_BLOCKS, gen);
        }
        return found;
    }

    private static long allocated(Path... paths) {
        long bytes = 0;
        for (Path path : paths) {
            try (HostFolder folder = HostFolder.open(path)) {
                bytes += folder.allocatedBytes("");
            }
        }
        return bytes;
    }

    private static void await(String what, BooleanSupplier reached) {
        long start = System.nanoTime();
        while (!reached.getAsBoolean()) {
            assertTrue(System.nanoTime() - start < WAIT_MILLIS * 1_000_000, what);
            LockSupport.parkNanos(2_000_000);
        }
    }

    private static void requireExact(KvStore store) {
        assertTrue(store.openReport().accounting().isWhole());
    }

    private void followsItsCap(Path... paths) {
        int each = paths.length;
        long large = 16L * MIB * each;
        long small = 6L * MIB * each;
        try (KvStore store = WholeStore.open(options(large, paths));
                Modelled modelled = modelled(store)) {
            save(modelled, 2 * large);
            int before = found(modelled);
            CapState state = store.capBytes(small, WAIT_MILLIS);
            assertEquals(CapCondition.WITHIN, state.condition(), state::toString);
            assertTrue(state.isWithin() && state.capBytes() == small, state::toString);
            assertTrue(allocated(paths) <= small, () -> allocated(paths) + " bytes");
            assertTrue(state.ownBytes() > small * 9 / 10, state::toString);
            int after = found(modelled);
            assertTrue(after < before && after > before / 5, after + " blocks of " + before);
            save(modelled, small);
            assertTrue(allocated(paths) <= small, () -> allocated(paths) + " bytes");
            assertTrue(found(modelled) > 0);
        }
        try (KvStore store = WholeStore.open(options(0, paths));
                Modelled modelled = modelled(store)) {
            assertEquals(OpeningKind.CLEAN, store.openReport().kind());
            requireExact(store);
            assertEquals(small, store.stats().capBytes(), "the cap survives");
            int before = found(modelled);
            assertTrue(before > 0);
            CapState state = store.capBytes(large, WAIT_MILLIS);
            assertEquals(CapCondition.WITHIN, state.condition(), state::toString);
            assertTrue(state.isWithin() && state.ownBytes() > large * 9 / 10, state::toString);
            assertEquals(before, found(modelled), "growing costs nothing");
            save(modelled, 2 * large);
            assertTrue(allocated(paths) <= large);
        }
        try (KvStore store = WholeStore.open(options(small, paths));
                Modelled modelled = modelled(store)) {
            requireExact(store);
            assertTrue(allocated(paths) <= small, () -> allocated(paths) + " bytes when opened");
            assertTrue(found(modelled) > 0);
        }
        try (KvStore store = WholeStore.open(options(2 * large, paths));
                Modelled modelled = modelled(store)) {
            requireExact(store);
            await(
                    "grown",
                    () -> store.stats().capCondition() == CapCondition.WITHIN && allocated(paths) > 2 * large * 9 / 10);
            save(modelled, 3 * large);
            assertTrue(allocated(paths) <= 2 * large);
            assertTrue(found(modelled) * (long) BLOCK_BYTES > large, "more than the old cap held");
        }
        try (KvStore store = WholeStore.open(options(0, paths));
                Modelled modelled = modelled(store)) {
            assertEquals(OpeningKind.CLEAN, store.openReport().kind());
            requireExact(store);
            assertTrue(found(modelled) * (long) BLOCK_BYTES > large);
        }
    }

    @Test
    void aStoreOfOneFolderFollowsItsCap() {
        followsItsCap(folders.make("one"));
    }

    @Test
    void aStoreOfTwoFoldersFollowsItsCap() {
        followsItsCap(folders.make("first"), folders.make("second"));
    }

    /** Each folder keeps its own share: what is foreign in one does not count in the other. */
    @Test
    void aForeignFileInOneFolderCountsThere() throws Exception {
        Path first = folders.make("first");
        Path second = folders.make("second");
        long cap = 16L * MIB;
        try (KvStore store = WholeStore.open(options(cap, first, second));
                Modelled modelled = modelled(store)) {
            save(modelled, 2 * cap);
            Files.write(second.resolve("foreign"), new byte[4 * MIB]);
            await("within its share again", () -> allocated(second) <= cap / 2);
            assertTrue(allocated(first) > cap / 2 * 9 / 10, "the other one is left alone");
            save(modelled, cap);
            assertTrue(found(modelled) > 0);
            assertEquals(4 * MIB, store.stats().foreignBytes());
        }
    }

    @Test
    void foreignFilesThatFillTheCapLeaveHostMemory() throws Exception {
        Path folder = folders.make("full");
        long cap = 8L * MIB;
        try (KvStore store = WholeStore.open(options(cap, folder));
                Modelled modelled = modelled(store)) {
            save(modelled, cap);
            Path foreign = folder.resolve("foreign");
            Files.write(foreign, new byte[9 * MIB]);
            await("starved", () -> store.stats().capCondition() == CapCondition.STARVED);
            Prompt prompt = Prompt.random(gen, PROMPT_BLOCKS);
            SaveResult result = modelled.save(prompt, 0, PROMPT_BLOCKS);
            assertEquals(PROMPT_BLOCKS, result.accepted(), result::toString);
            assertEquals(0, result.admitted(), "it stays in host memory");
            assertEquals(PROMPT_BLOCKS, modelled.restore(prompt, 0, PROMPT_BLOCKS, gen));
            assertTrue(
                    store.stats().ownBytes() < 2 * MIB,
                    () -> "it keeps " + store.stats().ownBytes());
            Files.delete(foreign);
            await("grown back", () -> store.stats().capCondition() == CapCondition.WITHIN);
            save(modelled, cap);
            assertTrue(allocated(folder) <= cap);
        }
        try (KvStore store = WholeStore.open(options(0, folder))) {
            assertEquals(OpeningKind.CLEAN, store.openReport().kind());
            requireExact(store);
        }
    }

    @Test
    void aStarvedStoreStopsCleanly() throws Exception {
        Path folder = folders.make("starved");
        try (KvStore store = WholeStore.open(options(8L * MIB, folder));
                Modelled modelled = modelled(store)) {
            save(modelled, MIB);
            Files.write(folder.resolve("foreign"), new byte[9 * MIB]);
            await("starved", () -> store.stats().capCondition() == CapCondition.STARVED);
        }
        try (KvStore store = WholeStore.open(options(0, folder))) {
            requireExact(store);
            assertEquals(CapCondition.STARVED, store.stats().capCondition());
        }
    }

    @Test
    void aCapThatIsTooSmallIsRefusedAndChangesNothing() {
        Path folder = folders.make("small");
        try (KvStore store = WholeStore.open(options(8L * MIB, folder))) {
            long before = allocated(folder);
            OrbitKvException e = Refusals.refused(ErrorCode.CAP_TOO_SMALL, () -> store.capBytes(MIB, 0));
            assertTrue(e.getMessage().contains("at least"), e::getMessage);
            assertEquals(8L * MIB, store.stats().capBytes());
            assertEquals(before, allocated(folder));
            Refusals.refused(ErrorCode.BAD_ARGUMENT, () -> store.capBytes(8L * MIB, -1));
        }
        Refusals.refused(ErrorCode.CAP_TOO_SMALL, () -> KvStore.open(options(MIB, folder)));
        try (KvStore store = WholeStore.open(options(0, folder))) {
            assertEquals(8L * MIB, store.stats().capBytes());
        }
    }

    /** On a drive that is full the store says so, and takes what is there once there is room. */
    @Test
    void aLargerCapOnAFullDriveIsSaid() {
        SimulatedFolder folder = new SimulatedFolder(3, folders.make("drive"));
        folder.capacityBytes(16L * MIB);
        StoreOptions options = options(8L * MIB, Path.of("simulated"));
        try (KvStore store = KvStore.openStepped(options, DataFolders.of(folder), folder.clock(), 3)) {
            store.capBytes(4L * MIB, WAIT_MILLIS);
            folder.capacityBytes(6L * MIB);
            CapState full = store.capBytes(8L * MIB, WAIT_MILLIS);
            assertEquals(CapCondition.DRIVE_FULL, full.condition(), full::toString);
            folder.capacityBytes(16L * MIB);
            await("grown", () -> {
                store.step();
                folder.clock().advance(100_000_000);
                return store.stats().capCondition() == CapCondition.WITHIN;
            });
            assertFalse(store.stats().ownBytes() < 7L * MIB);
        }
    }

    /** A process is killed at any moment of a change; the next opening is exact, and goes on with it. */
    @Test
    void aKillInTheMiddleOfAChangeLeavesAnExactStore() throws Exception {
        Path folder = folders.make("kill");
        long large = 32L * MIB;
        long small = 12L * MIB;
        for (int round = 0; round < Integer.getInteger("orbitkv.capKills", 8); round++) {
            Process child = ChildJvm.start(CapChild.class, folder.toString(), "" + large);
            try {
                ChildJvm.awaitLineThatStarts(child, "open ");
                var out = child.outputWriter();
                out.write("save " + 2 * large + "\n");
                out.flush();
                ChildJvm.awaitLineThatStarts(child, "saved ");
                out.write("cap " + (round % 2 == 0 ? small : 2 * large) + " 60000\n");
                out.flush();
                LockSupport.parkNanos(gen.between(1, 60) * 1_000_000L);
            } finally {
                child.destroyForcibly().waitFor();
            }
            try (KvStore store = WholeStore.open(CapChild.options(folder, 0))) {
                requireExact(store);
                assertEquals(OpeningKind.KILL, store.openReport().kind());
                long cap = store.stats().capBytes();
                assertTrue(cap == small || cap == large || cap == 2 * large, "cap " + cap);
                assertTrue(allocated(folder) <= cap, () -> allocated(folder) + " bytes, cap " + cap);
            }
        }
    }
}
